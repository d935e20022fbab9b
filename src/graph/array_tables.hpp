// What an import reads of numpy's arrays: edges, features, labels, splits. Every function throws
// UserError(kInput) that names the array and the entry.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "feature_rows.hpp"
#include "labelled_splits.hpp"
#include "npy_file.hpp"
#include "renumbered_edges.hpp"
#include "typed_folder.hpp"

namespace espalier {

/// Vertices that ids are counted in.
struct ArrayVertices {
  std::int64_t count = 0;
  std::string by;  ///< who says so: "the graph has 5 vertices of type author"
};

/// edge_index, [2, m]: heads, then tails (or pairs, where it is stored by columns). `open` opens
/// the array, twice where heads and tails lie apart.
void read_edge_pairs(const std::function<std::unique_ptr<NpyArray>()>& open, const ArrayVertices& heads,
                     const ArrayVertices& tails, const std::function<void(const EdgePiece&)>& use);
/// Its m.
std::int64_t count_edges(const NpyArray& array);
/// The only entry of an array: a number of things of the only graph.
std::int64_t read_only_count(NpyArray& array);
/// "ARRAY: edge 5", for messages.
std::string edge_of_array(const std::string& array, std::int64_t edge);

/// [n, f], or [n] of one column, of n things.
std::unique_ptr<FeatureRows> open_feature_array(std::unique_ptr<NpyArray> array, std::int64_t count,
                                                const char* things = "vertices");

/// [n] or [n, 1] of classes, nan for none; [n, C] of 0 and 1, nan for unknown.
OgbLabels read_label_array(NpyArray& array, std::int64_t vertices, NoClass none = NoClass::kNan);

/// One split: its vertices, or a mask, a truth value for each vertex. `numbers`: they go by the ids
/// that these are the numbers of.
void read_split_array(NpyArray& array, const ArrayVertices& vertices, Split split, SplitCollector& splits,
                      const VertexNumbers* numbers = nullptr);

}  // namespace espalier
