// Rows picked by their ids on a GPU: what fetching features from a store on the same GPU is.
//
// Derivation: a row reads its id, 8 bytes, and s f bytes, and writes 4 f:
//
//     bytes = rows (8 + s f + 4 f)
//
// Verification: bit for bit against a loop.
#include "espalier/dense/gather.hpp"

#include "gpu_rates.hpp"

namespace espalier::bench {
namespace {

void measure_gather(GpuBench& bench, const Cuda& cuda, std::int64_t rows, std::int64_t f) {
  const auto from = random_matrix(2 * rows, f, 1);
  Buffer<std::int64_t> ids(static_cast<std::size_t>(rows));
  std::minstd_rand random(2);
  for (auto& id : ids) id = static_cast<std::int64_t>(random()) % from.rows;
  Matrix<float> expected(rows, f);
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(from.row(ids[static_cast<std::size_t>(i)]), f, expected.row(i));
  const auto device_from = on_gpu(cuda, from);
  const auto device_ids = upload(cuda, ids);
  Matrix<float, Cuda> to(rows, f);
  const auto run = [&] { gather_rows<float>(cuda, device_from, device_from, device_ids.data(), to); };
  run();
  const auto bytes = static_cast<double>(rows * (8 + 8 * f));
  bench.measure(cuda, {fmt::format("gather_rows float32 f={}", f), "GB/s", 1e-9 * bytes, bytes, 0,
                       count_different(download(cuda, to).data, expected.data), run});
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  GpuBench bench(argc, argv, "gather of rows; bound: device-to-device copy, bytes read + written");
  if (!bench.has_gpu()) return 0;
  const Cuda cuda(0);
  for (const std::int64_t f : {100, 256, 47})
    measure_gather(bench, cuda, bench.size<std::int64_t>(1 << 20, 301), f);
  return bench.finish();
}
