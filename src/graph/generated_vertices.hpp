// Labels, features and splits of generated vertices, each a function of (seed, vertex), and
// features of edges, of (seed, relation, row, column).
#pragma once

#include <array>
#include <functional>
#include <span>

#include "espalier/base/row_range.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/graph/generate.hpp"

namespace espalier {

/// The class of a vertex.
using ClassOf = std::function<std::int64_t(std::int64_t vertex)>;

/// Throws UserError(kUsage) for numbers that make no sense.
void check_vertex_options(const VertexOptions& options);

/// [range.size()]
Buffer<std::int32_t> generate_labels(const RowRange& range, const ClassOf& class_of);

/// [range.size(), options.labels]: 0, 1 or kUnknownLabel. `classes`: of the vertices of `range`.
Matrix<std::uint8_t> generate_several_labels(const RowRange& range, std::span<const std::int32_t> classes,
                                             const VertexOptions& options);

/// [range.size(), options.features], float or Half: centroid of the vertex's class + noise of
/// deviation 1 per column. Centroids lie 1.7 deviations apart on average, whatever the number
/// of columns. `type`: of the vertices, where there are several; `range` is counted within it.
template <class T>
Matrix<T> generate_features(const RowRange& range, std::span<const std::int32_t> labels,
                            const VertexOptions& options, int type = 0);

/// The features of the edge (row, column) of a relation: generate.hpp says what they are.
template <class T>
void generate_edge_features(std::uint64_t seed, int relation, std::int64_t row, std::int64_t column,
                            bool one_class, std::span<T> features);

/// The ids of `range` in train, valid, test: 60, 20, 20 %.
std::array<Buffer<std::int64_t>, 3> generate_splits(const RowRange& range, std::uint64_t seed);

}  // namespace espalier
