// Sparse features of an open graph file. Collective; throw UserError(kInput) on every rank.
#pragma once

#include "espalier/dense/matrix.hpp"
#include "espalier/graph/content_digest.hpp"
#include "open_graph_file.hpp"

namespace espalier {

/// VertexInfo::pairs of a type, where its features are sparse.
void find_pairs(OpenGraphFile& h, std::size_t type);

/// Rows [begin, end) of the type as rows of pairs. Checks: columns ascend and are those of the
/// features, numbers are finite.
Matrix<float> read_pairs(OpenGraphFile& h, std::size_t type, std::int64_t begin, std::int64_t end);

/// How many columns sparse features have stands in an attribute of `indices`, which counts as one
/// more data set in the digest of a file: it changes what the entries say.
inline DatasetContent columns_of(const std::string& indices, std::int64_t columns) {
  return {indices + "/columns", {columns}, 0};
}

}  // namespace espalier
