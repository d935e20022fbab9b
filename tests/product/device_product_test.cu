// ranks: 1 2 3 4 6
// Laws of the distributed product on GPUs: by pull and by push, by either transport, on every grid, it gives the rows that
// the CPU's gives, bit for bit, and books the same bytes, messages and predictions under the same labels.
#include "espalier/product/device_product.hpp"

#include <fmt/format.h>

#include "comm/device_transports.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/product/device_dist_csr.hpp"
#include "product/product_cases.hpp"

namespace espalier {
namespace {

class DeviceProduct : public CudaTest {};

// The twin of keep_some.
struct KeepRule {
  std::int64_t n;
  __device__ std::uint64_t word(const RowKey& key) const {
    const RandomStream stream = {.seed = 77,
                                 .batch = static_cast<std::uint64_t>(key.batch),
                                 .row = static_cast<std::uint64_t>(key.vertex)};
    return random64(stream, 0);
  }
  template <class Index, class Visit>
  __device__ void visit(const RowView<Index>& row, const RowKey& key, const Visit& visit) const {
    const auto w = word(key);
    for (std::int64_t k = 0; k < row.size; ++k)
      if ((w >> (k % 61)) & 1)
        visit(row.indices[k], (row.values == nullptr ? 0.0f : row.values[k]) + static_cast<float>(w % 1024));
    if (w >> 63) visit(static_cast<Index>(w % static_cast<std::uint64_t>(n)), 0.5f);
  }
};

template <class Index>
void count_kept(const Cuda& gpu, KeepRule rule, const RowView<Index>* rows, const RowKey* keys,
                std::int64_t count, std::int64_t* sizes) {
  for_each(gpu, "count_kept", count, [=] __device__(std::int64_t r) {
    std::int64_t size = 0;
    rule.visit(rows[r], keys[r], [&](Index, float) { ++size; });
    sizes[r] = size;
  });
}

template <class Index>
void write_kept(const Cuda& gpu, KeepRule rule, const RowView<Index>* rows, const RowKey* keys,
                std::int64_t count, const std::int64_t* offsets, Index* indices, float* values) {
  for_each(gpu, "write_kept", count, [=] __device__(std::int64_t r) {
    auto at = offsets[r];
    rule.visit(rows[r], keys[r], [&](Index index, float value) {
      indices[at] = index;
      if (values != nullptr) values[at] = value;
      ++at;
    });
  });
}

template <class Index>
class DeviceKeepSome final : public DeviceRowOperation<Index> {
 public:
  DeviceKeepSome(std::int64_t n, bool values) : rule_{n}, values_(values) {}
  bool has_values() const override { return values_; }
  void apply(const Cuda& gpu, const RowView<Index>* rows, const RowKey* keys, std::int64_t count,
             DeviceRowEntries<Index>& out) const override {
    DeviceArray<std::int64_t> sizes(static_cast<std::size_t>(count));
    count_kept(gpu, rule_, rows, keys, count, sizes.data());
    out.offsets.resize(static_cast<std::size_t>(count) + 1);
    exclusive_sum(gpu, sizes.data(), out.offsets.data(), count);
    const auto entries = static_cast<std::size_t>(download(gpu, out.offsets.data() + count, 1)[0]);
    out.indices.resize(entries);
    out.values.resize(values_ ? entries : 0);
    write_kept(gpu, rule_, rows, keys, count, out.offsets.data(), out.indices.data(),
               values_ ? out.values.data() : nullptr);
  }

 private:
  KeepRule rule_;
  bool values_;
};

std::vector<Batch> batches_with_rows(int rank, std::int64_t n) {
  auto batches = batches_of(rank, n);
  std::erase_if(batches, [](const Batch& batch) { return batch.frontier.empty(); });
  return batches;
}

Buffer<RowKey> keys_of(const std::vector<Batch>& batches) {
  Buffer<RowKey> keys;
  for (const auto& batch : batches)
    for (const auto v : batch.frontier) keys.push_back({v, batch.number});
  return keys;
}

void expect_same_traffic(const std::map<std::string, Volume, std::less<>>& device,
                         const std::map<std::string, Volume, std::less<>>& host) {
  for (const char* label : {"x/ids", "x/rows"}) {
    const auto a = device.contains(label) ? device.at(label) : Volume{};
    const auto b = host.contains(label) ? host.at(label) : Volume{};
    EXPECT_EQ(a.messages, b.messages) << label;
    EXPECT_EQ(a.bytes_sent, b.bytes_sent) << label;
    EXPECT_EQ(a.bytes_received, b.bytes_received) << label;
    EXPECT_EQ(a.predicted_messages, b.predicted_messages) << label;
    EXPECT_EQ(a.predicted_bytes, b.predicted_bytes) << label;
  }
  EXPECT_EQ(device.size(), host.size()) << "no other label";
}

template <class Index>
void expect_product(const DeviceGrid& device_grid, const DistCsr<Index>& a, Placement placement,
                    Schedule schedule, bool values) {
  const auto& gpu = own_gpu();
  const auto n = a.rows();
  const auto batches = batches_with_rows(test_world().rank(), n);
  auto& traffic = a.grid->traffic();
  traffic.clear();
  const auto q = stack(batches);
  const auto expected = open_product({1}, q, a, schedule, "x")->apply({1}, KeepSome<Index>(n, values));
  const auto expected_traffic = traffic.all();

  const auto on_device = to_device(gpu, a, placement);
  const auto keys = upload(gpu, keys_of(batches));
  DeviceRowEntries<Index> out;
  for (int round = 0; round < 2; ++round) {  // the second finds memory in `out`
    traffic.clear();
    apply_product(gpu, device_grid, keys.data(), static_cast<std::int64_t>(keys.size()), on_device, schedule,
                  "x", DeviceKeepSome<Index>(n, values), out);
    EXPECT_EQ(download(gpu, out.offsets), expected.offsets);
    EXPECT_EQ(download(gpu, out.indices), expected.indices);
    EXPECT_EQ(download(gpu, out.values), expected.values);
    expect_same_traffic(traffic.all(), expected_traffic);
  }
}

template <class Index>
void expect_products(std::int64_t n, bool weighted) {
  const auto whole = random_graph<Index>(n, 6, weighted, test_seed(3));
  for (const bool by_nccl : transports())
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      setenv("ESPALIER_NO_NCCL", by_nccl ? "0" : "1", 1);
      const DeviceGrid device(own_gpu(), grid);
      unsetenv("ESPALIER_NO_NCCL");
      for (const auto topology : {Topology::kPartitioned, Topology::kReplicated}) {
        const auto a = distribute(grid, whole, topology);
        for (const auto schedule : {Schedule::kPull, Schedule::kPush})
          for (const auto placement : {Placement::kDevice, Placement::kHost}) {
            if (placement == Placement::kHost && (topology == Topology::kReplicated || c > 1)) continue;
            SCOPED_TRACE(fmt::format("{} nccl {} c {} n {} {} bytes, values {}, replicated {}, pinned {}",
                                     name_of(schedule), by_nccl, c, n, sizeof(Index), weighted,
                                     topology == Topology::kReplicated, placement == Placement::kHost));
            expect_product(device, a, placement, schedule, placement == Placement::kDevice);
          }
      }
    }
}

TEST_F(DeviceProduct, EqualsTheHostsAndMovesTheSameBytes) {
  expect_products<std::int32_t>(97, true);
  expect_products<std::int64_t>(60, false);
}

// Fewer vertices than ranks: empty block rows, some parts own nothing.
TEST_F(DeviceProduct, OfTinyGraphsEqualsTheHosts) {
  expect_products<std::int32_t>(3, false);
  expect_products<std::int64_t>(5, true);
}

}  // namespace
}  // namespace espalier
