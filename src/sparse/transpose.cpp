#include "espalier/sparse/transpose.hpp"

namespace espalier {
namespace {

/// Row starts of the transpose: how many entries each column has, summed up.
void count_columns(const Block& block, Buffer<std::int64_t>& indptr) {
  indptr.assign(static_cast<std::size_t>(block.columns) + 1, 0);
  for (const std::int32_t column : block.indices) ++indptr[static_cast<std::size_t>(column) + 1];
  for (std::size_t j = 1; j < indptr.size(); ++j) indptr[j] += indptr[j - 1];
}

}  // namespace

void transpose(const Block& block, Block& result) {
  result.rows = block.columns;
  result.columns = block.rows;
  result.indices.resize(block.indices.size());
  result.values.resize(block.values.size());
  count_columns(block, result.indptr);
  Buffer<std::int64_t> next(result.indptr.begin(), result.indptr.end() - 1);
  for (std::int64_t i = 0; i < block.rows; ++i) {
    for (std::int64_t e = block.row_begin(i); e < block.row_end(i); ++e) {
      const auto column = static_cast<std::size_t>(block.indices[static_cast<std::size_t>(e)]);
      const auto place = static_cast<std::size_t>(next[column]++);
      result.indices[place] = static_cast<std::int32_t>(i);
      if (block.has_values()) result.values[place] = block.values[static_cast<std::size_t>(e)];
    }
  }
}

Block transpose(const Block& block) {
  Block result;
  transpose(block, result);
  return result;
}

}  // namespace espalier
