// What an import reads of numpy's arrays: edges, features, labels, splits. Every function throws
// UserError(kInput) that names the array and the entry.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/file/npy_file.hpp"
#include "feature_rows.hpp"
#include "labelled_splits.hpp"
#include "renumbered_edges.hpp"

namespace espalier {

/// edge_index, [2, m]: heads, then tails; with `pairs` also [m, 2]. `open` opens the array, twice
/// where heads and tails lie apart. Of several ranks one reads its share.
void read_edge_pairs(const std::function<std::unique_ptr<NpyArray>()>& open, const VertexCount& heads,
                     const VertexCount& tails, const RankShare& share,
                     const std::function<void(const EdgePiece&)>& use, bool pairs = false);
/// Its m.
std::int64_t count_edges(const NpyArray& array, bool pairs = false);
/// Calls use(ids, number of the first) for pieces of the next `count` entries of an array.
void for_each_piece(NpyArray& array, std::int64_t count,
                    const std::function<void(const std::vector<std::int64_t>&, std::int64_t)>& use);
/// Throws UserError where the entry of the array, its `what` of this number, is none of
/// the vertices.
void check_id(std::int64_t id, const VertexCount& of, const NpyArray& array, std::int64_t entry,
              const char* what);
/// The only entry of an array: a number of things of the only graph.
std::int64_t read_only_count(NpyArray& array);
/// "ARRAY: edge 5", for messages.
std::string edge_of_array(const std::string& array, std::int64_t edge);

/// [n, f], or [n] of one column, of n things.
std::unique_ptr<FeatureRows> open_feature_array(std::unique_ptr<NpyArray> array, std::int64_t count,
                                                const std::string& things = "vertices");

/// One split: its vertices, or a mask, a truth value for each vertex. `numbers`: they go by the ids
/// that these are the numbers of.
void read_split_array(NpyArray& array, const VertexCount& vertices, Split split, SplitCollector& splits,
                      const VertexNumbers* numbers = nullptr);

/// The .npy of one split in a folder of them.
std::string split_array(const std::filesystem::path& folder, Split split);

}  // namespace espalier
