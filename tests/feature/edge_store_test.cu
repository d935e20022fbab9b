// ranks: 1 2 3 4
// Law: on GPUs blocks point to the features that the host's store gives, bit for bit, from device
// memory and from pinned memory, by both transports, and the same bytes move.
#include "comm/device_transports.hpp"
#include "dense/device_matrices.hpp"
#include "dense/relation_blocks.hpp"
#include "edge_store_cases.hpp"

namespace espalier {
namespace {

class EdgeStoreOnGpu : public CudaTest {};

struct DeviceMinibatch {
  DeviceArray<std::int64_t> vertices;
  std::vector<SharedDeviceBlock> storage;
  std::vector<DeviceArray<std::uint8_t>> relations;
  MinibatchOn<Cuda> shown;

  DeviceMinibatch(const Cuda& gpu, const EdgeMinibatch& of, std::size_t blocks) {
    constexpr std::int64_t kBefore = 5;
    vertices = upload(gpu, of.vertices);
    shown.vertices = {vertices.data(), of.vertices.size()};
    for (std::size_t l = 0; l < blocks; ++l) {
      storage.emplace_back(gpu, of.storage[l], kBefore);
      relations.push_back(upload(gpu, behind(kBefore, of.relations[l])));
      shown.blocks.push_back(storage.back().block);
      shown.blocks.back().relations = Beside<const std::uint8_t>(relations.back());
    }
  }
};

void expect_edges(const Cuda& gpu, const MinibatchOn<Cuda>& minibatch, const EdgeMinibatch& of) {
  for (std::size_t l = 0; l < minibatch.blocks.size(); ++l) {
    const auto& edges = minibatch.blocks[l].edges;
    ASSERT_EQ(edges.count, std::ssize(of.entries[l]));
    Buffer<std::int32_t> entries(static_cast<std::size_t>(edges.count));
    Buffer<float> rows(static_cast<std::size_t>(edges.count * edges.width));
    copy_bytes_to_host(gpu, edges.entries, entries.data(), entries.size() * sizeof(std::int32_t));
    copy_bytes_to_host(gpu, edges.rows, rows.data(), rows.size() * sizeof(float));
    EXPECT_TRUE(std::ranges::equal(entries, of.entries[l]));
    EXPECT_TRUE(std::ranges::equal(rows, of.rows[l]));
  }
}

TEST_F(EdgeStoreOnGpu, FetchesAndBooksWhatTheHostsStoreDoes) {
  const auto& world = test_world();
  const auto path = test_folder("edge-store-gpu") + "/a.h5";
  write_edges<float>(path, world);
  GraphView view;
  view.apart = true;
  const GraphFile file(world, path, view);
  const auto a = edge_matrix();
  const auto& gpu = own_gpu();
  for_every_device_grid(transports(), [&](const Grid& grid, const DeviceGrid& device, bool) {
    for (const auto placement : {Placement::kDevice, Placement::kHost}) {
      const auto ownership = ownership_of(grid.replication() == 1 ? Owned::kAtRandom : Owned::kInRanges,
                                          kEdgeVertices, grid.rows());
      const auto host = read_edges(grid, file, ownership);
      const auto store = to_device(gpu, device, host, edge_schema(), placement);
      const EdgeMinibatch of(a, static_cast<std::uint64_t>(world.rank()));
      const DeviceMinibatch shown(gpu, of, 2);
      std::vector<MinibatchOn<Cuda>> minibatches = {shown.shown};
      std::vector<Minibatch> on_host = {of.minibatch()};
      PendingEdgesOn<Cuda> pending;
      EdgesOn<Cuda> edges;
      PendingEdgesOn<Cpu> host_pending;
      grid.traffic().clear();
      host.begin_counts(Cpu{1}, on_host, host_pending, "host");
      host.advance(Cpu{1}, host_pending, FetchMove::kRows, "host");
      EdgesOn<Cpu> host_edges;
      host.finish(Cpu{1}, host_pending, on_host, host_edges);
      store.begin_counts(gpu, minibatches, pending, "device");
      store.advance(gpu, pending, FetchMove::kRows, "device");
      store.finish(gpu, pending, minibatches, edges);
      expect_edges(gpu, minibatches[0], of);
      expect_same_traffic({{"x", grid.traffic().of("device")}}, {{"x", grid.traffic().of("host")}});

      const auto mine = vertices_of(ownership, grid.row());
      if (mine.empty()) continue;
      const EdgeMinibatch own(a, 7, mine);
      const DeviceMinibatch of_own(gpu, own, 1);
      minibatches = {of_own.shown};
      store.read(gpu, minibatches, edges);
      expect_edges(gpu, minibatches[0], own);
    }
  });
}

}  // namespace
}  // namespace espalier
