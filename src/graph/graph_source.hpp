// What an import reads, whatever the layout, of the files that a description names: names and
// numbers first, then edges, features, labels and splits, type by type, then links. One rank reads;
// every member throws UserError that names the place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "described_graph.hpp"
#include "espalier/file/csv.hpp"
#include "espalier/graph/edge_source.hpp"
#include "espalier/graph/import.hpp"
#include "espalier/graph/link_file.hpp"
#include "feature_rows.hpp"
#include "labelled_splits.hpp"

namespace espalier {

// What a described file holds, read by one rank: rows of features, whole numbers, ids, and a number
// for each edge. Every function throws UserError(kInput) that names the file and the place.

/// `texts`: may it hold texts? The error of one that cannot be opened begins with who names it.
std::unique_ptr<NpyArray> open_array(const DescribedFile& file, bool texts = false);
/// How many rows an array has, or lines a text.
std::int64_t count_rows(const DescribedFile& file, bool texts = false);

/// A row for each of so many `things`; null where there is no file.
std::unique_ptr<FeatureRows> open_rows(const DescribedFile& file, std::int64_t count,
                                       const std::string& things);
/// Whole numbers, [rows, columns].
Matrix<std::int64_t> read_whole_numbers(const DescribedFile& file);

/// What vertices are called, each by another id.
struct VertexIds {
  bool given = false;    ///< else these are their numbers
  bool numbers = false;  ///< a text whose lines are all whole numbers has numbers
  Buffer<std::int64_t> of_numbers = {};
  std::vector<std::string> of_texts = {};
};
VertexIds read_vertex_ids(const DescribedFile& file, std::int64_t count, const std::string& things);

/// A number for each edge, in their order.
class EdgeColumn {
 public:
  explicit EdgeColumn(const DescribedFile& file);
  /// The next ones: so many, or fewer where the file ends.
  const std::vector<float>& next_weights(std::size_t count, std::int64_t& vanished);
  const std::vector<std::int64_t>& next_times(std::size_t count);
  /// After the last of so many edges of `by`: throws UserError where they are more or fewer.
  void finish(std::int64_t edges, const std::string& by);

 private:
  template <class T, class Read>
  void fill(std::vector<T>& values, std::size_t count, Read read);
  bool has_next();
  std::string place() const;

  DescribedFile file_;
  std::unique_ptr<NpyArray> array_;
  std::optional<CsvReader> csv_;
  std::int64_t read_ = 0, columns_ = 1;  // lines; fields of each
  std::vector<double> row_;
  std::vector<float> weights_;
  std::vector<std::int64_t> times_;
};

/// The links of a split.
struct GivenLinks {
  Links links;
  Matrix<std::int64_t> negative_heads, negative_tails, non_links;  ///< of 0 columns: there are none
};

class GraphSource {
 public:
  /// Opens every array once, so that what headers say is checked.
  explicit GraphSource(DescribedGraph graph);

  const std::vector<VertexType>& types() const { return types_; }
  int relations() const { return static_cast<int>(graph_.relations.size()); }
  bool typed() const { return graph_.typed(); }
  /// Of a graph with types: the relations of the source are the first.
  Schema schema() const { return schema_of(graph_, graph_.options.place, true); }
  /// Of a graph without types: how many vertices it has, where its edges say so.
  void set_vertices(std::int64_t count) { types_[0].end = count; }

  const DescribedGraph& graph() const { return graph_; }

  /// Calls `use` for piece after piece, in the order of the file, the same each time: heads and
  /// tails, ids within the types. A share of several ranks only of edges that are in_parts().
  void read_edges(int triplet, const RankShare& share,
                  const std::function<void(const EdgePiece&)>& use) const;
  /// Can ranks that have such a source each read a share of the edges?
  bool in_parts() const;
  /// Have edges of the triplet weights, times?
  bool weighted(int triplet) const;
  bool timed(int triplet) const;
  /// Is each edge of the triplet, within one type of a graph with types, also one the other way
  /// round?
  bool both_ways(int triplet) const { return typed() && relation(triplet).both_ways; }
  /// Where edge e of a triplet stands: "FILE:LINE".
  std::string edge_place(int triplet, std::int64_t edge) const;
  /// Null where the edges of the triplet, so many, have none.
  std::unique_ptr<FeatureRows> open_edge_features(int triplet, std::int64_t edges) const {
    return open_rows(relation(triplet).features, edges, relation(triplet).things);
  }

  /// Null where the type has none.
  std::unique_ptr<FeatureRows> open_features(int type) const { return open(type, described(type).features); }
  std::unique_ptr<FeatureRows> open_labels(int type) const { return open(type, described(type).labels); }
  /// The ids that vertices had in the file. Is asked once for each type.
  VertexIds read_ids(int type) const;
  /// When each vertex was; none: nobody knows.
  Buffer<std::int64_t> read_times(int type) const;
  /// Has the type this part of a split, of those that were asked for the one at this place?
  bool has_split(int type, std::size_t place, Split part) const {
    const auto* split = find_split(type, place);
    const auto s = static_cast<std::size_t>(part);
    return split != nullptr && (split->parts[s].given() || split->empty[s]);
  }
  Splits read_splits(int type, const OgbLabels& labels, std::size_t place) const;

  /// Of `splits` that some have links counts.
  LinkInfo links() const;
  GivenLinks read_links(Split split) const;

 private:
  const DescribedType& described(int type) const { return graph_.types[type]; }
  const DescribedRelation& relation(int triplet) const { return graph_.relations[triplet]; }
  std::unique_ptr<FeatureRows> open(int type, const DescribedFile& file) const {
    return open_rows(file, types()[type].size(), things(type));
  }
  std::string things(int type) const {
    return described(type).by.empty() ? "vertices" : "vertices by " + counts_[type].by;
  }
  /// Those of a type, and the types of a triplet's ends.
  VertexCount vertices(int type) const;
  VertexCount heads(int r) const { return vertices(graph_.type_of(relation(r).triplet.head)); }
  VertexCount tails(int r) const { return vertices(graph_.type_of(relation(r).triplet.tail)); }
  const DescribedSplit* find_split(int type, std::size_t place) const;
  void read_file(int triplet, const DescribedEdges& edges, const RankShare& share,
                 const std::function<void(const EdgePiece&)>& use) const;
  void count_types();
  void check_lengths(const DescribedRelation& of) const;
  void check_files() const;
  void find_link_relations();

  VertexType type_of_end(LinkEnd end, std::int64_t relation) const;
  void check_rows_of_links(const DescribedFile& file, const Matrix<std::int64_t>& rows,
                           const DescribedLinks::OfSplit& of, std::int64_t links) const;
  template <class EndOf>
  void number_ends(const DescribedFile& file, Matrix<std::int64_t>& rows,
                   const Matrix<std::int64_t>& relations, EndOf end_of) const;

  DescribedGraph graph_;
  std::vector<VertexType> types_;
  std::vector<VertexCount> counts_;                        // [types]
  mutable std::vector<std::vector<std::int64_t>> begins_;  // [triplets] of each file its first edge
  // Of links: the graph's; empty: none of them.
  std::vector<int> link_relations_;
};

/// How what is asked for is read.
struct ImportPlan {
  std::function<DescribedGraph()> describe;
  /// Files that are no output: these, or those of a folder, of which all in `parts` are.
  std::vector<std::string> inputs = {};
  std::string folder = {};
  std::vector<std::string> parts = {"raw", "split"};
  bool shared = false;                                 ///< other ranks may describe it, too
  std::function<DescribedGraph()> in_toml = describe;  ///< for whoever wants no more than that
};

/// One for each kind. Nothing is read yet, but of a description.
ImportPlan plan_of(const OgbFolder& folder);
ImportPlan plan_of(const Mag240mFolder& folder);
ImportPlan plan_of(const TripleFiles& files);
ImportPlan plan_of(const EdgeListFile& file);
ImportPlan plan_of(const MatrixMarketFile& file);
ImportPlan plan_of(const DescriptionFile& file);

}  // namespace espalier
