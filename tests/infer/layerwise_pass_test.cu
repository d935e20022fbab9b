// The pass on GPUs against the pass on the CPU: the same rows, but for the rounding of products,
// and the same bytes, on every grid and in any chunks.
// ranks: 1 4
#include "espalier/infer/layerwise_pass.hpp"

#include "cuda_test.hpp"
#include "espalier/product/dist_csr.hpp"
#include "mpi_test.hpp"
#include "train/dense_network.hpp"
#include "train/small_job.hpp"

namespace espalier {
namespace {

class LayerwisePassOnGpu : public CudaTest {};

// My share of every layer.
template <class Space>
std::vector<Matrix<float>> share_of_layers(const Space& space, const GridOn<Space>& grid,
                                           SamplerOn<Space>& whole_rows, RowStoreOn<Space> features,
                                           const Network<float, Space>& network, const EntriesOfRows& entries,
                                           std::int64_t chunk_bytes) {
  const LayerwisePassOn<Space> pass(grid, whole_rows, features.ownership(), entries, chunk_bytes);
  std::vector<KeptRowsOn<Space>> kept;
  for (int layer = 1; layer <= network.shape().layers; ++layer)
    kept.emplace_back(pass.rows(), network.output_width(layer));
  std::vector<RowSinkOn<Space>*> sinks;
  for (auto& one : kept) sinks.push_back(&one);
  EXPECT_TRUE(pass.run(space, network, InputStoresOn<Space>(std::move(features)), sinks, {}));
  std::vector<Matrix<float>> layers;
  for (auto& one : kept) {
    const auto rows = one.release();
    layers.emplace_back(rows.rows, rows.columns);
    layers.back().data = copy_from(space, rows.data);
  }
  return layers;
}

TEST_F(LayerwisePassOnGpu, IsThatOfTheCpuOnEveryGridInAnyChunks) {
  auto problem = small_problem(301, 7, 4, 8);
  std::mt19937_64 random(8);
  for (const std::string kind : {"sage", "gcn"}) {
    const auto network = network_of({kind, 2, 7, 9, 4, 0, 0, "batch"}, random);
    Network<float, Cuda> on_gpu(gpu(), network.shape(), 9);
    copy_weights(gpu(), network, on_gpu);
    for (const int c : divisors(test_world().size()))
      for (const std::int64_t chunk_bytes : {1, 1 << 30}) {
        problem.owned = chunk_bytes == 1 ? Owned::kAtRandom : Owned::kInRanges;
        SCOPED_TRACE(fmt::format("{} c {} chunk_bytes {}", kind, c, chunk_bytes));
        const Grid host(test_world(), c);
        const DeviceGrid grid(gpu(), host);
        const SmallJob job(host, problem, kind, {1}, 1);
        host.traffic().clear();
        const auto expected = share_of_layers(Cpu{1}, host, *job.whole_rows, small_features(host, problem),
                                              network, EntriesOfRows(job.a), chunk_bytes);
        const auto bytes = host.traffic().of_stage("evaluate").bytes_received;
        const auto a = to_device(gpu(), grid, job.a, Placement::kDevice);
        const auto whole_rows = make_sampler(gpu(), "graphsage", a, small_shape(kind, {-1}, "evaluate"));
        host.traffic().clear();
        const auto found = share_of_layers(
            gpu(), grid, *whole_rows, to_device(gpu(), grid, job.input.features()[0], Placement::kDevice),
            on_gpu, EntriesOfRows(a), chunk_bytes);
        EXPECT_EQ(host.traffic().of_stage("evaluate").bytes_received, bytes);
        for (std::size_t layer = 0; layer < 2; ++layer) {
          const auto &ours = found[layer], &theirs = expected[layer];
          ASSERT_EQ(ours.data.size(), theirs.data.size());
          for (std::size_t k = 0; k < ours.data.size(); ++k)
            EXPECT_NEAR(ours.data[k], theirs.data[k], 1e-5 * (1 + std::abs(theirs.data[k])));
        }
      }
  }
}

}  // namespace
}  // namespace espalier
