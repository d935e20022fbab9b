// The transpose of a training step's blocks against the rate of a plain copy.
//
//     transpose_bench [--scale N]      scale of the R-MAT the blocks are sampled from (default 18)
//
// Blocks of GraphSAGE 15,10,5 with 1024 seeds on a symmetrised R-MAT (rmat.hpp).
//
// Derivation: an entry's id is read and its row written in its stead, 4 + 4 bytes, its value
// likewise; every row and every column has an 8-byte offset:
//
//     bytes = entries 16 + rows 8 + columns 8
//
// The bound moves these bytes at the rate (read + written) of a memcpy. The ratio stays below 1:
// columns are counted before entries are placed, so ids are read twice, and places are scattered.
//
// Verification: every entry against a stable sort by column.
#include "espalier/comm/session.hpp"
#include "espalier/sparse/transpose.hpp"
#include "rates.hpp"
#include "rmat.hpp"

namespace espalier::bench {
namespace {

struct Entry {
  std::int32_t row, column;
  float value;
};

std::int64_t count_wrong(const BlockView<>& block, const Block& transposed) {
  std::vector<Entry> entries;
  for (std::int64_t i = 0; i < block.rows; ++i)
    for (auto e = block.row_begin(i); e < block.row_end(i); ++e)
      entries.push_back({static_cast<std::int32_t>(i), block.indices[e], block.values[e]});
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& x, const Entry& y) { return x.column < y.column; });
  if (transposed.rows != block.columns || transposed.columns != block.rows ||
      transposed.entries() != block.entries() || transposed.row_end(transposed.rows - 1) != block.entries())
    return block.entries() + 1;
  std::int64_t wrong = 0;
  for (std::int64_t j = 0; j < transposed.rows; ++j)
    for (auto e = static_cast<std::size_t>(transposed.row_begin(j));
         e < static_cast<std::size_t>(transposed.row_end(j)); ++e)
      wrong += !(entries[e].column == j && entries[e].row == transposed.indices[e] &&
                 entries[e].value == transposed.values[e]);
  return wrong;
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto scale = take_scale(argc, argv, 18);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto step = sample_step(make_rmat(scale), grid);
  std::vector<Comparison> comparisons;
  for (std::size_t layer = 1; layer <= 3; ++layer)
    for (const int threads : thread_counts()) {
      const auto& block = step.blocks[layer - 1];
      const auto result = std::make_shared<Block>();
      transpose(Cpu{threads}, block, *result);
      comparisons.push_back(
          {fmt::format("layer {}, {} entries {} thr", layer, block.entries(), threads),
           1e-9 * static_cast<double>(block.entries() * 16 + (block.rows + block.columns) * 8),
           [&block, result, threads] { return seconds_of([&] { transpose(Cpu{threads}, block, *result); }); },
           [threads] { return copy_rate(threads); }, count_wrong(block, *result), threads});
    }
  return compare(argc, argv, "Transpose of a step's blocks; bound: memcpy, bytes read + written", "GB/s",
                 comparisons);
}
