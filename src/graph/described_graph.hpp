// A graph as files say it: which file has what of each type and of each relation. Makers fill it, a
// GraphSource reads what it names. A graph without types is the case of one type and one relation,
// which have no names.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edge_text.hpp"
#include "espalier/file/npy_file.hpp"
#include "espalier/graph/edge_list.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "espalier/graph/link_file.hpp"
#include "espalier/graph/schema.hpp"
#include "labelled_splits.hpp"
#include "renumbered_edges.hpp"

namespace espalier {

/// Edges from vertices of type `head` to vertices of type `tail`.
struct Triplet {
  std::string head, relation, tail;
  std::string inverse = {};  ///< the relation from tail to head that is added; empty: none

  bool operator==(const Triplet& other) const {
    return head == other.head && relation == other.relation && tail == other.tail;
  }
  /// "author___writes___paper", as OGB names files and arrays.
  std::string joined() const { return head + "___" + relation + "___" + tail; }
};

/// The triplet of such a name, with PyTorch Geometric's name of its inverse, "rev_writes", where
/// that is to be added; three empty names where it is none.
Triplet split_triplet(const std::string& joined, bool inverse = false);

/// Numbers or texts: an array of numpy's, or a text without a header, plain or packed, a line for
/// each thing. None where the path is empty.
struct DescribedFile {
  std::string path;
  std::string member = {};  ///< of an .npz
  std::string by = {};      ///< who names it, for messages: "graph.toml:5: types.item.features";
                            ///< empty: the file itself says enough
  bool array = false;       ///< whatever its name says
  std::optional<std::int64_t> column = {}, without = {};  ///< only this column, all but this one

  bool given() const { return !path.empty(); }
  bool is_array() const { return array || !member.empty() || path.ends_with(".npy"); }
  std::string name() const { return member.empty() ? path : path + ": " + member; }
};

/// Vertices of train, valid and test: ids, or a mask.
struct DescribedSplit {
  std::string name;  ///< empty: it has none
  std::array<DescribedFile, 3> parts = {};
  std::array<bool, 3> empty = {};  ///< there is that part, of no vertex
};

struct DescribedType {
  std::string name, by;                    ///< by: as a file's
  std::optional<std::int64_t> count = {};  ///< else as many as a file has rows
  std::string counted_by = {};             ///< of a graph without types: "num-node-list says
                                           ///< 5 vertices"
  DescribedFile features = {}, labels = {}, ids = {}, times = {};
  /// Whose ids are the vertices', and those of splits.
  const VertexNumbers* numbers = nullptr;
  std::function<std::vector<std::string>()> names = {};  ///< hands over the ids, where it is there
  std::vector<DescribedSplit> splits = {};

  /// A row of each is of a vertex.
  std::array<const DescribedFile*, 4> of_vertices() const { return {&features, &labels, &ids, &times}; }
};

/// Edges of a relation: [2, m] or, where a user names it, [m, 2], with ids within the types; lines
/// of a text; or a table of OGB's.
struct DescribedEdges {
  DescribedFile file;
  PairForm form = {};  ///< of a text
  bool table = false;
  std::string announced = {};  ///< a table with the number of its lines; empty: there is none
  std::shared_ptr<const EdgeSource> source = {};  ///< reads them, where it is there
};

struct DescribedRelation {
  Triplet triplet;
  std::string by;
  /// One after the other; texts have the same fields.
  std::vector<DescribedEdges> edges = {};
  DescribedFile weights = {}, times = {}, features = {};  ///< of edges in that order
  /// Each edge is also one the other way round.
  bool both_ways = false;
  std::string things = "edges";  ///< for messages
};

/// Ids of the ends count within their types where relations are the graph's, else in the whole
/// graph.
struct DescribedLinks {
  struct OfSplit {
    DescribedFile heads, tails, relations, negative_heads, negative_tails, non_links;
    std::function<Links()> read = {};  ///< makes them, of the whole graph, where it is there
  };
  std::string by;
  bool directed = true;
  std::vector<std::string> relations = {};  ///< names; empty: one without a name
  std::vector<int> graph_relations = {};    ///< of each its place in the graph; empty: by its name
  std::array<std::optional<OfSplit>, 3> splits = {};
};

/// How a graph is made of what is read.
struct ImportOptions {
  std::string place;                       ///< what is imported, for messages
  EdgeOptions edges = {};                  ///< symmetrize: of a graph without types
  bool half = false;                       ///< as float16 also features that are not
  std::vector<std::string> splits = {""};  ///< names in the graph file; empty: the one
                                           ///< without a name
  bool by_keys = false;                    ///< keys of a description say all this, not options
                                           ///< of a command
};

/// Makers add types, then relations.
struct DescribedGraph {
  GraphDescription about = {};  ///< directed: whatever the edges say
  ImportOptions options = {};
  std::string place = {};             ///< the folder or file, for messages
  const char* line = "line";          ///< what an edge is in its file
  std::string one_direction_by = {};  ///< who says that only one direction of each edge is listed;
                                      ///< empty: nobody
  NoClass no_class = NoClass::kNan;
  HiddenTests hidden = HiddenTests::kLeave;
  std::vector<DescribedType> types = {};
  std::vector<DescribedRelation> relations = {};
  std::optional<DescribedLinks> links = {};

  /// Without types the one type and the one relation have no names.
  bool typed() const { return !types[0].name.empty(); }
  /// The place of a type, or -1.
  int type_of(const std::string& name) const;
  /// By the count of each; -1: edges say how many.
  std::vector<VertexType> counted_types() const;
  /// Throws UserError(kInput) that starts with `at`, else with who names it, where one of its
  /// triplet is there, or its types are not.
  void add_relation(DescribedRelation relation, std::string at = "");
  /// Of a graph with types, before a path is made of any name: throws UserError(kInput) that starts
  /// with `at` where they are no schema.
  void check_names(const std::string& at) const;
};

/// Of a graph whose types are counted: the relations of its triplets, in their order, and with
/// `inverses` then those that are added, in the same order. Throws UserError(kInput) that starts
/// with `place` where such a name is taken.
Schema schema_of(const DescribedGraph& graph, const std::string& place, bool inverses);

/// Of a file in TOML (docs/data.md has the language); nothing that it names was opened yet. Throws
/// UserError(kInput) with file, line and key.
DescribedGraph read_graph_toml(const std::string& path);
/// Such a file, with absolute paths.
std::string as_toml(const DescribedGraph& graph);

}  // namespace espalier
