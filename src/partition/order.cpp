// The file of an order. All ranks write it, each an even range of the vertices; rank 0 reads it,
// as it may be damaged, and tells the others.
#include "espalier/partition/order.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/base/host_device.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/archive.hpp"

namespace espalier {

namespace {

constexpr const char* kPartitionLabel = "order";
constexpr ArchiveFormat kFormat = {"espalier-order", "order",
                                   "make one with `espalier partition GRAPH -o ORDER`"};
constexpr auto kWeights = static_cast<std::int64_t>(kBalances);
constexpr std::size_t kMostTypes = 256;
constexpr std::int64_t kMostWeight = std::int64_t{1} << 46;  // so sums over clusters fit

std::span<const std::int64_t> numbers_of(const std::vector<ClusterWeights>& weights) {
  return {weights.empty() ? nullptr : weights[0].data(), weights.size() * kBalanceNames.size()};
}

}  // namespace

std::optional<std::uint64_t> pattern_digest(const ContentDigests& content) {
  const auto indptr = content.datasets.find("/graph/indptr"),
             indices = content.datasets.find("/graph/indices");
  if (indptr == content.datasets.end() || indices == content.datasets.end()) return std::nullopt;
  return mix(mix(indptr->second) ^ indices->second);
}

// ---- writing ----

void write_order(const Communicator& comm, const OutputFile& output_file, const VertexPartitionInfo& info,
                 std::span<const std::uint16_t> mine) {
  const auto range = even_range(info.nodes, comm.size(), comm.rank());
  ESPALIER_CHECK(std::ssize(mine) == range.size(), "{} clusters for {} vertices", mine.size(), range.size());
  hdf5::Output output(comm, output_file);
  write_array<std::uint16_t>(output, "/cluster", {info.nodes}, range.begin, mine, kPartitionLabel);
  // The weights are the same on every rank; rank 0 writes them.
  const auto weights = comm.rank() == 0 ? numbers_of(info.weights) : std::span<const std::int64_t>();
  write_array<std::int64_t>(output, "/weights", {info.clusters(), kWeights}, 0, weights, kPartitionLabel);
  if (const auto kinds = 2 * std::ssize(info.types); kinds > 0)
    write_array<std::int64_t>(
        output, "/type_weights", {info.clusters(), kinds}, 0,
        comm.rank() == 0 ? std::span(info.type_weights) : std::span<const std::int64_t>(), kPartitionLabel);
  ArchiveWriter archive(output.file(), kFormat);
  archive("method", info.method);
  if (!info.types.empty()) archive("types", fmt::format("{}", fmt::join(info.types, ",")));
  archive("pattern", info.pattern);
  output.require(archive.good(), "an attribute");
  output.commit();
}

// ---- reading ----

namespace {

std::vector<std::string> split_at_commas(const std::string& names) {
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin <= names.size();) {
    const auto comma = std::min(names.find(',', begin), names.size());
    found.push_back(names.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return found;
}

void check_clusters(const ArchiveReader& archive, const Order& order) {
  const auto out_of_range = [](auto weight) { return weight < 0 || weight > kMostWeight; };
  std::vector<std::int64_t> sizes(order.info.weights.size(), 0);
  for (std::size_t v = 0; v < order.cluster.size(); ++v) {
    if (order.cluster[v] >= sizes.size())
      archive.fail(fmt::format("vertex {} is in cluster {} of {}", v, order.cluster[v], sizes.size()));
    ++sizes[order.cluster[v]];
  }
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const auto& weights = order.info.weights[k];
    if (weights[0] != sizes[k])
      archive.fail(
          fmt::format("/weights says that cluster {} has {} vertices; it has {}", k, weights[0], sizes[k]));
    if (std::ranges::any_of(weights, out_of_range))
      archive.fail(fmt::format("the weights of cluster {} are out of range", k));
  }
  if (std::ranges::any_of(order.info.type_weights, out_of_range))
    archive.fail("weights of types are out of range");
}

Order read_on_this_rank(const std::string& path) {
  const auto archive = ArchiveReader::look_at(kFormat, path);
  Order order;
  auto& info = order.info;
  archive("method", info.method);
  archive("pattern", info.pattern);
  if (archive.has("types")) info.types = split_at_commas(archive.text("types"));
  if (info.types.size() > kMostTypes)
    archive.fail(fmt::format("has {} types; {} are possible", info.types.size(), kMostTypes));
  order.cluster = archive.array<std::uint16_t>("/cluster", {-1});
  const auto weights = archive.array<std::int64_t>("/weights", {-1, kWeights});
  info.nodes = std::ssize(order.cluster);
  info.weights.resize(weights.size() / kBalances);
  if (info.nodes < 1) archive.fail("has no vertex");
  if (weights.empty() || std::ssize(info.weights) > kMostClusters)
    archive.fail(
        fmt::format("has {} clusters; between 1 and {} is possible", info.weights.size(), kMostClusters));
  std::ranges::copy(weights, info.weights[0].data());
  if (!info.types.empty())
    info.type_weights =
        archive.array<std::int64_t>("/type_weights", {info.clusters(), 2 * std::ssize(info.types)});
  check_clusters(archive, order);
  return order;
}

// Collective. What rank 0 has, on every rank.
void share(const Communicator& comm, Order& order) {
  auto& info = order.info;
  std::array<std::int64_t, 4> head = {info.nodes, info.clusters(), info.pattern.has_value(),
                                      static_cast<std::int64_t>(info.pattern.value_or(0))};
  comm.broadcast(head.data(), std::ssize(head), 0, kPartitionLabel);
  info.nodes = head[0];
  info.method = comm.broadcast_text(info.method, 0, kPartitionLabel);
  if (head[2] != 0) info.pattern = static_cast<std::uint64_t>(head[3]);
  info.weights.resize(static_cast<std::size_t>(head[1]));
  order.cluster.resize(static_cast<std::size_t>(head[0]));
  comm.broadcast(std::span(info.weights), 0, kPartitionLabel);
  auto types = static_cast<std::int64_t>(info.types.size());
  comm.broadcast(&types, 1, 0, kPartitionLabel);
  info.types.resize(static_cast<std::size_t>(types));
  for (auto& name : info.types) name = comm.broadcast_text(name, 0, kPartitionLabel);
  info.type_weights.resize(info.weights.size() * 2 * info.types.size());
  if (types > 0) comm.broadcast(std::span(info.type_weights), 0, kPartitionLabel);
  comm.broadcast(std::span(order.cluster), 0, kPartitionLabel);
}

}  // namespace

Order read_order(const Communicator& comm, const std::string& path) {
  Order order;
  agree(comm, [&] {
    if (comm.rank() == 0) order = read_on_this_rank(path);
  });
  share(comm, order);
  return order;
}

}  // namespace espalier
