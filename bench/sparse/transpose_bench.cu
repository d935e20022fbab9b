// The transpose of a block on a GPU, which the backward pass of SpMM multiplies by.
//
// Derivation, for a block with e entries, r rows and c columns: every entry is read, column 4 and
// value 4, and written, row 4 and value 4; offsets are read and written, 8 each:
//
//     bytes = 16 e + 8 (r + c + 2)
//
// That is what no transpose can do without. A sort by columns passes over the pairs several times,
// and a scatter writes to places in no order, in sectors of 32 bytes for 4.
//
// Verification: equal to the CPU's, entry for entry.
#include "espalier/sparse/transpose.hpp"

#include "gpu_rates.hpp"

namespace espalier::bench {
namespace {

void measure_transpose(GpuBench& bench, const Cuda& cuda, const char* name, std::int64_t rows,
                       std::int64_t columns, std::int64_t picks) {
  const auto block = random_block(rows, columns, picks, true);
  const auto expected = transpose(block);
  const auto device_block = on_gpu(cuda, block);
  Csr<std::int32_t, Cuda> result;
  const auto run = [&] { transpose(cuda, BlockView<Cuda>(device_block), result); };
  run();
  const auto wrong = count_different(download(cuda, result.indptr), expected.indptr) +
                     count_different(download(cuda, result.indices), expected.indices) +
                     count_different(download(cuda, result.values), expected.values);
  const auto bytes = static_cast<double>(16 * block.entries() + 8 * (rows + columns + 2));
  bench.measure(cuda, {fmt::format("{}, {} entries", name, block.entries()), "GB/s", 1e-9 * bytes, bytes, 0,
                       wrong, run});
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  GpuBench bench(argc, argv,
                 "transpose of a block; bound: device-to-device copy of what it reads and writes");
  if (!bench.has_gpu()) return 0;
  const Cuda cuda(0);
  measure_transpose(bench, cuda, "layer 1", bench.size<std::int64_t>(1 << 17, 120),
                    bench.size<std::int64_t>(1 << 19, 470), 5);
  measure_transpose(bench, cuda, "layer 2", bench.size<std::int64_t>(1 << 14, 60),
                    bench.size<std::int64_t>(1 << 17, 200), 10);
  measure_transpose(bench, cuda, "layer 3", bench.size<std::int64_t>(1 << 10, 33),
                    bench.size<std::int64_t>(1 << 14, 99), 15);
  return bench.finish();
}
