// What an import reads, whatever the layout: names and numbers first, then edges, features,
// labels and splits, type by type, then links. A graph without types is the case of one type and
// one relation, which have no names. One rank reads; every member throws UserError that names
// the place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "edge_report.hpp"
#include "espalier/graph/edge_source.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "espalier/graph/link_file.hpp"
#include "espalier/graph/schema.hpp"
#include "feature_rows.hpp"
#include "labelled_splits.hpp"

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

/// The links of a split.
struct GivenLinks {
  Links links;
  Matrix<std::int64_t> negative_heads, negative_tails, non_links;  ///< of 0 columns: there are none
};

/// The types and triplets of a graph; without types one of each, which have no names.
class GraphNames {
 public:
  /// Of a graph without types, of so many vertices; -1: edges say how many.
  static GraphNames plain(std::int64_t vertices);

  /// One after the other, in the order of the source.
  const std::vector<VertexType>& types() const { return types_; }
  /// The place of a type, or -1.
  int type_of(const std::string& name) const;
  /// In the order of the source, no two alike, of types that are there.
  const std::vector<Triplet>& triplets() const { return triplets_; }
  bool typed() const { return !types_[0].name.empty(); }
  const std::string& name(int type) const { return types_[type].name; }

  /// Appends a type with so many vertices.
  void add_type(const std::string& name, std::int64_t size);
  /// Throws UserError(kInput) that starts with `place` when one like it is there or its types are
  /// not.
  void add_triplet(const Triplet& triplet, const std::string& place);
  /// After all types and triplets, and before a path is made of any name: throws UserError(kInput)
  /// that starts with `place` when they are no schema.
  void check(const std::string& place) const;
  void set_vertices(std::int64_t count) { types_[0].end = count; }

 private:
  std::vector<VertexType> types_;
  std::vector<Triplet> triplets_;
};

class GraphSource {
 public:
  GraphSource(GraphDescription description, ImportOptions options)
      : description_(std::move(description)), options_(std::move(options)) {}
  virtual ~GraphSource() = default;

  const GraphNames& names() const { return names_; }
  const std::vector<VertexType>& types() const { return names_.types(); }
  const std::vector<Triplet>& triplets() const { return names_.triplets(); }
  bool typed() const { return names_.typed(); }
  /// Of a graph without types: how many vertices it has, where its edges say so.
  void set_vertices(std::int64_t count) { names_.set_vertices(count); }

  /// Of the file that it becomes.
  const GraphDescription& description() const { return description_; }
  const ImportOptions& options() const { return options_; }
  /// The folder or file, for messages.
  virtual std::string place() const = 0;

  /// Calls `use` for piece after piece, in the order of the file, the same each time: heads and
  /// tails, ids within the types.
  virtual void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const = 0;
  /// Have edges of the triplet weights, times?
  virtual bool weighted(int /*triplet*/) const { return false; }
  virtual bool timed(int /*triplet*/) const { return false; }
  /// Is each edge of the triplet, within one type of a graph with types, also one the other way
  /// round?
  virtual bool both_ways(int /*triplet*/) const { return false; }
  /// Where edge e of a triplet stands: "FILE:LINE".
  virtual std::string edge_place(int triplet, std::int64_t edge) const = 0;
  /// Of a graph without types: edges that other ranks may read, too; null: rank 0 reads them alone.
  virtual const EdgeSource* edges_of_ranks() const { return nullptr; }
  /// What an edge is in its file.
  virtual const char* line() const { return "line"; }
  /// Who says that only one direction of each edge is listed; empty: nobody.
  virtual std::string one_direction_by() const { return {}; }
  /// Null where the edges of the triplet, so many, have none.
  virtual std::unique_ptr<FeatureRows> open_edge_features(int /*triplet*/, std::int64_t /*edges*/) const {
    return nullptr;
  }

  /// Null where the type has none.
  virtual std::unique_ptr<FeatureRows> open_features(int type) const = 0;
  virtual std::unique_ptr<FeatureRows> open_labels(int type) const = 0;
  virtual NoClass no_class() const { return NoClass::kNan; }
  /// The ids that vertices had in the file, numbers or texts; both null: their numbers.
  virtual const Buffer<std::int64_t>* number_ids(int /*type*/) const { return nullptr; }
  virtual const std::vector<std::string>* text_ids(int /*type*/) const { return nullptr; }
  /// Has the type this part of a split, of those that were asked for the one at this place?
  virtual bool has_split(int type, std::size_t place, Split part) const = 0;
  virtual Splits read_splits(int type, const OgbLabels& labels, std::size_t place) const = 0;

  /// Of `splits` that some have links counts.
  virtual LinkInfo links() const { return {}; }
  virtual GivenLinks read_links(Split /*split*/) const { return {}; }

 protected:
  /// `by` says how many vertices a graph without types has.
  void set_names(GraphNames names, std::string by = {}) {
    names_ = std::move(names);
    counted_by_ = std::move(by);
  }
  int type_of(const std::string& name) const { return names_.type_of(name); }
  /// Those of a type, and the types of a triplet's ends.
  VertexCount vertices(int type) const;
  VertexCount heads(int triplet) const { return vertices(type_of(triplets()[triplet].head)); }
  VertexCount tails(int triplet) const { return vertices(type_of(triplets()[triplet].tail)); }

 private:
  GraphDescription description_;
  ImportOptions options_;
  GraphNames names_;
  std::string counted_by_;  // of a graph without types
};

/// The relations of triplets, in their order, and with `inverses` then those that are added, in the
/// same order. Throws UserError(kInput) that starts with `place` when such a name is taken.
Schema schema_of(const GraphNames& names, const std::string& place, bool inverses, bool by_keys = false);

/// Collective. `open` is called on rank 0, which reads alone, but for edges_of_ranks(), which are
/// what `open_share`, where it is given, opens on the other ranks: edges two times and more, never
/// in memory; that is the matrix that is written to `output`, each rank its even range of the rows,
/// and features of edges, one relation's at a time. Throws UserError(kInput) on every rank for
/// anything that does not fit; then there is no `output`. Throws UserError(kUsage) as
/// check_output() and put_in_place() do.
void import_graph(const Communicator& comm, const OutputFile& output,
                  const std::function<std::unique_ptr<GraphSource>()>& open,
                  const std::function<std::unique_ptr<EdgeSource>()>& open_share = {});

}  // namespace espalier
