// ranks: 1 2 3 4
// long ranks: 6
// The laws of the distributed product on GPUs, by either transport, with the matrix in memory of
// the GPU or pinned; and every call books the messages, bytes and predictions that the CPU's books,
// under the same labels.
#include "comm/device_transports.hpp"
#include "distribute_cut.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "product/product_laws.hpp"

namespace espalier {

template <class Index>
void count_kept(const Cuda& gpu, RowRule rule, const RowView<Index>* rows, const RowKey* keys,
                std::int64_t count, std::int64_t* sizes) {
  for_each(gpu, "count_kept", count, [=] __device__(std::int64_t r) {
    std::int64_t size = 0;
    for (std::int64_t k = 0; k <= rows[r].size; ++k) size += rule.entry(rows[r], keys[r], k).kept;
    sizes[r] = size;
  });
}

template <class Index>
void write_kept(const Cuda& gpu, RowRule rule, const RowView<Index>* rows, const RowKey* keys,
                std::int64_t count, const std::int64_t* offsets, Index* ids, float* values) {
  for_each(gpu, "write_kept", count, [=] __device__(std::int64_t r) {
    auto at = offsets[r];
    for (std::int64_t k = 0; k <= rows[r].size; ++k) {
      const auto entry = rule.entry(rows[r], keys[r], k);
      if (!entry.kept) continue;
      ids[at] = entry.id;
      if (values != nullptr) values[at] = entry.value;
      ++at;
    }
  });
}

template <class Index>
void keep_entries(const Cuda& gpu, RowRule rule, const RowView<Index>* rows, const RowKey* keys,
                  std::int64_t count, bool values, Entries<Index, Cuda>& out) {
  DeviceArray<std::int64_t> sizes(count);
  count_kept(gpu, rule, rows, keys, count, sizes.data());
  out.offsets.resize(count + 1);
  exclusive_sum(gpu, sizes.data(), out.offsets.data(), count);
  const auto entries = download(gpu, out.offsets.data() + count, 1)[0];
  out.ids.resize(entries);
  out.values.resize(values ? entries : 0);
  write_kept(gpu, rule, rows, keys, count, out.offsets.data(), out.ids.data(),
             values ? out.values.data() : nullptr);
}

namespace {

class DeviceProduct : public CudaTest {};

using Transports = std::vector<bool>;  // by NCCL?

/// Partitioned, in ranges and by a map in turn, on every grid by every transport; once also
/// replicated and in pinned memory; cut in every way, in turn.
struct Grids {
  Transports ways;
  mutable std::size_t cuts = 0;

  template <class Index, class Work>
  void for_each(const Csr<Index>& whole, bool has_values, const Work& work) const {
    int seen = 0;  // the first grid has c = 1
    for_every_device_grid(ways, [&](const Grid& grid, const DeviceGrid& device, bool by_nccl) {
      const auto where = fmt::format("c {} nccl {}", grid.replication(), by_nccl);
      const auto bring = [&](const Ownership& ownership, Placement placement, const char* how) {
        auto a = distribute(grid, whole, ownership);
        a.has_values = has_values;
        work(own_gpu(), to_device(own_gpu(), device, a, placement), where + how);
      };
      const auto ranges = block_partition(whole.rows, grid.rows());
      const auto cut = kAllCuts[cuts++ % 4];
      auto pieces =
          count_rows(distribute_cut<Index>(grid, whole, ranges, parts_of_entries(cut, whole, grid.rows())),
                     WholeRowFacts::kNone);
      pieces.has_values = has_values;
      work(own_gpu(), to_device(own_gpu(), device, pieces),
           fmt::format("{} cut {}", where, static_cast<int>(cut)));
      if (seen++ % 2 == 0)
        bring(ranges, Placement::kDevice, " in ranges");
      else
        bring(ownership_of(Owned::kAtRandom, whole.rows, grid.rows()), Placement::kDevice, " by a map");
      if (seen > 1) return;
      bring(block_partition(whole.rows, 1), Placement::kDevice, " replicated");
      bring(ranges, Placement::kHost, " pinned");
    });
  }
};

TEST_F(DeviceProduct, EqualsLoopsOverTheWholeMatrix) {
  expect_random_graph<std::int32_t>(Grids{transports()}, 97, 6, true);
  expect_random_graph<std::int64_t>(Grids{{transports().back()}}, 60, 6, false);
}

// Fewer vertices than ranks: empty block rows, some parts own nothing.
TEST_F(DeviceProduct, OfTinyGraphsEqualsLoops) {
  expect_random_graph<std::int32_t>(Grids{{transports().front()}}, 3, 6, false);
  expect_random_graph<std::int64_t>(Grids{{transports().back()}}, 5, 6, true);
}

TEST_F(DeviceProduct, OfAMatrixWithoutEntriesIsEmpty) {
  expect_matrix_without_entries(Grids{{transports().back()}}, true);
}

// ---- What is booked -----------------------------------------------------------------------------

template <class Index, class Space>
std::map<std::string, Ledger> ledgers_of(const Space& space, const DistCsr<Index, Space>& a,
                                         Schedule schedule, const std::vector<Batch>& batches) {
  std::map<std::string, Ledger> booked;
  book_calls(space, a, schedule, batches,
             [&](const std::string& call) { booked[call] = a.grid->traffic().all(); });
  return booked;
}

template <class Index>
void expect_same_bookings(const Transports& ways, std::int64_t n, bool weighted, Cut cut = Cut::kNone) {
  const auto whole = random_graph<Index>(n, 6, weighted, test_seed(3));
  const auto batches = batches_of(test_world().rank(), n);
  for_every_device_grid(ways, [&](const Grid& grid, const DeviceGrid& on_gpus, bool by_nccl) {
    const auto a = cut == Cut::kNone
                       ? distribute(grid, whole, Topology::kPartitioned)
                       : count_rows(distribute_cut<Index>(grid, whole, block_partition(n, grid.rows()),
                                                          parts_of_entries(cut, whole, grid.rows())),
                                    WholeRowFacts::kNone);
    const auto on_device = to_device(own_gpu(), on_gpus, a);
    for (const auto schedule : kSchedules) {
      if (a.cut && !takes_pieces(schedule, true)) continue;
      auto device = ledgers_of(own_gpu(), on_device, schedule, batches);
      for (const auto& [call, host] : ledgers_of(Cpu{1}, a, schedule, batches)) {
        SCOPED_TRACE(fmt::format("seed {} n {} values {} {} bytes {} c {} nccl {} {}", test_seed(3), n,
                                 weighted, sizeof(Index), name_of(schedule), grid.replication(), by_nccl,
                                 call));
        expect_same_traffic(device[call], host);
        if (call == "open" && grid.rows() > 1) EXPECT_FALSE(host.empty());
      }
    }
  });
}

TEST_F(DeviceProduct, BooksWhatTheCpuBooks) {
  expect_same_bookings<std::int32_t>(transports(), 97, true);
  expect_same_bookings<std::int64_t>({transports().back()}, 60, false);
  expect_same_bookings<std::int32_t>({transports().front()}, 3, true);
  expect_same_bookings<std::int32_t>({transports().back()}, 97, true, Cut::kAtRandom);
}

}  // namespace
}  // namespace espalier
