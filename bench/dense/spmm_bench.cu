// SpMM on a GPU: Y = B X, B^T dY, and B X[ids] straight from a feature store of float32, float16
// or bfloat16.
//
// B [rows, columns] has 10 entries per row at uniform columns, 4 columns per row: what layer 1 of a
// step of GraphSAGE 15,10,5 looks like, without its hubs. Widths: 100 (features of ogbn-products),
// 256 (hidden), 47 (classes; rows are not aligned).
//
// Derivation: an entry reads one row of the source, s f bytes (s: of a stored number), its column
// id, 4, and its value, 4, where there are values; and its row id, 8, where rows are picked by ids.
// A row of the result is written once, 4 f, and has an 8-byte offset:
//
//     bytes = entries (s f + 4 + 4 [weighted] + 8 [ids]) + rows (4 f + 8)
//
// A cache that still holds a row spares reading it again, so the ratio can pass 1: with 10 rows of
// 40 columns each source row is read 2.5 times, and the second-level cache of an H200 (60 MB) holds
// a seventh of X at f = 100. Each row is also read in sectors of 32 bytes, so f = 47 (188 bytes, at
// any offset) reads up to 1.2 times what is counted.
//
// Verification: bit for bit against the CPU; what cuSPARSE gives (train.sparse_products) by the
// bound of its rounding, (entries of the row + 1) 2^-24 times the sum of the magnitudes, here
// below (11 2^-24) 10. It reads a copy of the block, which is made, and counted as time, for
// each product.
#include "espalier/dense/spmm.hpp"

#include "espalier/sparse/transpose.hpp"
#include "gpu_rates.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kPicks = 10;

double bytes_of(const Block& block, std::int64_t f, std::size_t stored, bool by_ids) {
  const auto entry =
      static_cast<std::int64_t>(stored) * f + 4 + (block.has_values() ? 4 : 0) + (by_ids ? 8 : 0);
  return static_cast<double>(block.entries() * entry + block.rows * (4 * f + 8));
}

std::int64_t count_wrong(const Cuda& cuda, const Matrix<float>& y, const Matrix<float>& expected) {
  if (cuda.sparse_products() == SparseProducts::kOwn) return count_different(y.data, expected.data);
  std::int64_t wrong = 0;
  for (std::size_t e = 0; e < y.data.size(); ++e)
    wrong += !(std::abs(y.data[e] - expected.data[e]) <= 2 * 110 * 0x1p-24f);
  return wrong;
}

void measure_product(GpuBench& bench, const Cuda& cuda, const std::string& name, const Block& block,
                     std::int64_t f) {
  const auto x = random_matrix(block.columns, f, 8);
  Matrix<float> expected(block.rows, f);
  spmm<float>(all_cores(), block, x, expected);
  const auto device_block = on_gpu(cuda, block);
  const auto device_x = on_gpu(cuda, x);
  Matrix<float, Cuda> y(block.rows, f);
  const auto run = [&] { spmm<float>(cuda, BlockView<Cuda>(device_block), device_x, y); };
  run();
  const double bytes = bytes_of(block, f, sizeof(float), false);
  const bool own = cuda.sparse_products() == SparseProducts::kOwn;
  bench.measure(cuda, {fmt::format("{}{} f={}", name, own ? "" : ", cuSPARSE", f), "GB/s", 1e-9 * bytes,
                       bytes, 0, count_wrong(cuda, download(cuda, y), expected), run});
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  GpuBench bench(argc, argv, "SpMM; bound: device-to-device copy, bytes read + written");
  if (!bench.has_gpu()) return 0;
  const Cuda cuda(0), by_cusparse(0, Precision::kFp32, SparseProducts::kCusparse);
  const auto rows = bench.size<std::int64_t>(1 << 18, 150);
  const auto weighted = random_block(rows, 4 * rows, kPicks, true);
  const auto plain = random_block(rows, 4 * rows, kPicks, false);
  for (const std::int64_t f : {100, 256, 47}) {
    for (const auto* gpu : {&cuda, &by_cusparse}) {
      measure_product(bench, *gpu, "B X weighted", weighted, f);
      measure_product(bench, *gpu, "B X without values", plain, f);
      measure_product(bench, *gpu, "B^T dY", transpose(weighted), f);
    }
  }
  return bench.finish();
}
