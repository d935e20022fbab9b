// Sampling on a GPU: GraphSAGE and LABOR 15,10,5, LADIES and FastGCN 512 per layer, batches of
// 1024, many in bulk, on a symmetrised R-MAT (rmat.hpp, 16 2^N undirected edges drawn); edges/s.
//
//     samplers_bench [--scale N]      one graph; default scales 20 and 22
//
// Derivation, counted from the minibatches: e sampled edges, r frontier rows over all layers, D
// entries of all rows of all frontiers. A place in memory that is met at random costs a sector
// of 32 bytes.
//
//     GraphSAGE         e (32 neighbour + 2 * 32 mark and look up its local id + 12 entry)
//                       + r (32 row offsets + 8 offset)
//     LABOR             looks at every neighbour:    D 4 + e (2 * 32 + 12) + r (32 + 8)
//     LADIES, FastGCN   LADIES reads ids and values for the sums, then ids again for the columns:
//                       12 D; FastGCN 4 D; + e 12
//
// The bound moves these bytes at the rate of a copy. It leaves out the random numbers (ten Philox
// rounds of 64-bit products for four draws; LABOR: for each neighbour), sorts and the launches.
//
// Verification: the sum of the digests of all minibatches is the CPU's.
#include "espalier/comm/device_communicator.hpp"
#include "espalier/comm/session.hpp"
#include "gpu_rates.hpp"
#include "rmat.hpp"

namespace espalier::bench {
namespace {

struct Kind {
  const char* name;
  std::vector<std::int64_t> fanout;
  double bytes_per_edge, bytes_per_row, bytes_per_neighbour;
  bool layer_wise;
};
const Kind kKinds[] = {{"graphsage", {15, 10, 5}, 108, 40, 0, false},
                       {"labor", {15, 10, 5}, 76, 40, 4, false},
                       {"ladies", {512, 512, 512}, 12, 8, 12, true},
                       {"fastgcn", {512, 512, 512}, 12, 8, 4, true}};

struct Counts {
  double edges = 0, rows = 0, neighbours = 0;
};

Counts count(const Csr<std::int32_t>& a, const std::vector<Minibatch>& minibatches) {
  Counts counts;
  for (const auto& minibatch : minibatches) {
    counts.edges += static_cast<double>(minibatch.sampled_edges());
    for (const auto& block : minibatch.blocks) {
      counts.rows += static_cast<double>(block.rows);
      for (std::int64_t r = 0; r < block.rows; ++r)
        counts.neighbours += static_cast<double>(a.row_size(minibatch.vertices[static_cast<std::size_t>(r)]));
    }
  }
  return counts;
}

void measure_kind(GpuBench& bench, const Cuda& cuda, const DeviceGrid& grid, std::int64_t scale,
                  const Kind& kind, const DistCsr<std::int32_t>& a, std::span<const SeedBatch> batches) {
  const SamplerShape shape{.fanout = kind.fanout, .batches_per_rank = static_cast<double>(batches.size())};
  const auto expected = make_sampler(kind.name, a, shape)->sample(all_cores(), batches, kSeed, 1);
  const auto device_a = to_device(cuda, grid, a);
  const auto sampler = make_sampler(cuda, kind.name, device_a, shape);
  const auto digest = sample_digests(cuda, sampler->sample(cuda, batches, kSeed, 1));
  const std::int64_t wrong = digest != sample_digests(all_cores(), expected);
  const auto counts = count(a.local, expected);
  const double bytes = kind.bytes_per_edge * counts.edges + kind.bytes_per_row * counts.rows +
                       kind.bytes_per_neighbour * counts.neighbours;
  bench.measure(cuda,
                {fmt::format("{} scale {}, {} batches", kind.name, scale, batches.size()), "Gedge/s",
                 1e-9 * counts.edges, bytes, 0, wrong, [&] { sampler->sample(cuda, batches, kSeed, 1); }});
}

void measure_scale(GpuBench& bench, const Cuda& cuda, const Grid& grid, std::int64_t scale) {
  const DeviceGrid device_grid(cuda, grid);
  const auto a = distribute(grid, make_rmat(scale), Topology::kReplicated);
  const auto mean = normalize_rows(a, false, false);
  const FirstBatches batches(a.local, bench.size(1024, 40), bench.size(64, 3));
  for (const auto& kind : kKinds)
    measure_kind(bench, cuda, device_grid, scale, kind, kind.layer_wise ? mean : a, batches.all());
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const Session session(&argc, &argv);
  GpuBench bench(argc, argv, "sampling; bound: device-to-device copy of what must be read and written");
  if (!bench.has_gpu()) return 0;
  const Grid grid(session.world(), 1);
  const Cuda cuda(0);
  measure_scale(bench, cuda, grid, bench.scale(20, 8));
  if (!bench.quick() && bench.scale(0, 0) == 0) measure_scale(bench, cuda, grid, 22);
  return bench.finish();
}
