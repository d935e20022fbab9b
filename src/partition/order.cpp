// The file of an order. All ranks write it, each an even range of the vertices; rank 0 reads it,
// as it may be damaged, and tells the others.
#include "espalier/partition/order.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/base/host_device.hpp"
#include "espalier/comm/communicator.hpp"
#include "sidecar.hpp"

namespace espalier {

namespace {

constexpr const char* kPartitionLabel = "order";
constexpr const char* kFormat = "espalier-order";
constexpr std::int64_t kVersion = 1;
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
  write_rows<std::uint16_t>(output, "/cluster", {info.nodes}, 1, range.begin, mine, kPartitionLabel);
  // The weights are the same on every rank; rank 0 writes them.
  const auto weights = comm.rank() == 0 ? numbers_of(info.weights) : std::span<const std::int64_t>();
  write_rows<std::int64_t>(output, "/weights", {info.clusters(), kWeights}, kWeights, 0, weights,
                           kPartitionLabel);
  if (const auto kinds = 2 * std::ssize(info.types); kinds > 0)
    write_rows<std::int64_t>(
        output, "/type_weights", {info.clusters(), kinds}, kinds, 0,
        comm.rank() == 0 ? std::span(info.type_weights) : std::span<const std::int64_t>(), kPartitionLabel);
  const auto& root = output.file();
  bool good = hdf5::write_text_attribute(root, "format", kFormat);
  good = hdf5::write_integer_attribute(root, "version", kVersion) && good;
  good = hdf5::write_text_attribute(root, "method", info.method) && good;
  if (!info.types.empty())
    good = hdf5::write_text_attribute(root, "types", fmt::format("{}", fmt::join(info.types, ","))) && good;
  if (info.pattern) good = hdf5::write_text_attribute(root, "pattern", hex(*info.pattern)) && good;
  output.require(good, "an attribute");
  output.commit();
}

// ---- reading, on rank 0 ----

namespace {

class VertexPartitionReader {
 public:
  explicit VertexPartitionReader(const std::string& path)
      : sidecar_("order", path, "make one with `espalier partition GRAPH -o ORDER`") {}

  Order read() {
    Order order;
    auto& info = order.info;
    const auto head = sidecar_.open(kFormat, [&](const SidecarHead&) { return look(info); });
    info.method = head.method;
    info.pattern = head.pattern;
    read_arrays(order);
    check_clusters(order);
    return order;
  }

 private:
  // What is wrong with the structure, or nothing.
  std::string look(VertexPartitionInfo& info) {
    if (auto wrong = read_types(info); !wrong.empty()) return wrong;
    cluster_ = hdf5::open_dataset(sidecar_.file(), "/cluster");
    weights_ = hdf5::open_dataset(sidecar_.file(), "/weights");
    if (auto wrong = check_shapes(info); !wrong.empty() || info.types.empty()) return wrong;
    type_weights_ = hdf5::open_dataset(sidecar_.file(), "/type_weights");
    return check_type_weights(info);
  }

  std::string read_types(VertexPartitionInfo& info) {
    std::string names;
    if (!hdf5::read_text_attribute(sidecar_.file(), "types", names)) return "";
    for (std::size_t begin = 0; begin <= names.size();) {
      const auto comma = std::min(names.find(',', begin), names.size());
      info.types.push_back(names.substr(begin, comma - begin));
      begin = comma + 1;
    }
    return info.types.size() > kMostTypes
               ? fmt::format("has {} types; {} are possible", info.types.size(), kMostTypes)
               : "";
  }

  std::string check_type_weights(VertexPartitionInfo& info) {
    const auto kinds = 2 * std::ssize(info.types);
    if (!type_weights_.exists()) return "has types, but there is no dataset /type_weights";
    if (!hdf5::text_attribute_is_sound(type_weights_.handle, "digest"))
      return "the attribute digest of /type_weights is damaged";
    if (!type_weights_.is_integer() || type_weights_.shape.size() != 2 || type_weights_.columns() != kinds ||
        type_weights_.type_size != 8 || type_weights_.rows() != info.clusters())
      return fmt::format("/type_weights is not int64 [{}, {}]", info.clusters(), kinds);
    if (info.clusters() * kinds * 8 > sidecar_.size()) return "is cut off, or compressed";
    info.type_weights.resize(info.weights.size() * 2 * info.types.size());
    return "";
  }

  std::string check_shapes(VertexPartitionInfo& info) {
    for (const auto* dataset : {&cluster_, &weights_})
      if (auto wrong = sidecar_.check_integers(*dataset); !wrong.empty()) return wrong;
    if (cluster_.shape.size() != 1 || cluster_.type_size != 2 || cluster_.type_signed)
      return "/cluster is not one row of uint16";
    if (weights_.shape.size() != 2 || weights_.columns() != kWeights || weights_.type_size != 8)
      return fmt::format("/weights is not int64 [clusters, {}]", kWeights);
    info.nodes = cluster_.rows();
    if (info.nodes < 1) return "has no vertex";
    if (weights_.rows() < 1 || weights_.rows() > kMostClusters)
      return fmt::format("has {} clusters; between 1 and {} is possible", weights_.rows(), kMostClusters);
    const auto bytes = info.nodes * 2 + weights_.rows() * kWeights * 8, size = sidecar_.size();
    if (info.nodes > size / 2 || bytes > size)
      return fmt::format("is cut off, or compressed: {} bytes, and its arrays have {}", size, bytes);
    info.weights.resize(static_cast<std::size_t>(weights_.rows()));
    return "";
  }

  void read_arrays(Order& order) {
    order.cluster.resize(static_cast<std::size_t>(order.info.nodes));
    std::span numbers(order.info.weights[0].data(), order.info.weights.size() * kBalanceNames.size());
    sidecar_.read_array(cluster_, std::span(order.cluster), 1);
    sidecar_.read_array(weights_, numbers, kWeights);
    if (!order.info.types.empty())
      sidecar_.read_array(type_weights_, std::span(order.info.type_weights),
                          2 * std::ssize(order.info.types));
  }

  void check_clusters(const Order& order) {
    const auto out_of_range = [](auto weight) { return weight < 0 || weight > kMostWeight; };
    std::vector<std::int64_t> sizes(order.info.weights.size(), 0);
    for (std::size_t v = 0; v < order.cluster.size(); ++v) {
      if (order.cluster[v] >= sizes.size())
        sidecar_.fail(fmt::format("vertex {} is in cluster {} of {}", v, order.cluster[v], sizes.size()));
      ++sizes[order.cluster[v]];
    }
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const auto& weights = order.info.weights[k];
      if (weights[0] != sizes[k])
        sidecar_.fail(
            fmt::format("/weights says that cluster {} has {} vertices; it has {}", k, weights[0], sizes[k]));
      if (std::ranges::any_of(weights, out_of_range))
        sidecar_.fail(fmt::format("the weights of cluster {} are out of range", k));
    }
    if (std::ranges::any_of(order.info.type_weights, out_of_range))
      sidecar_.fail("weights of types are out of range");
  }

  SidecarReader sidecar_;
  hdf5::Dataset cluster_, weights_, type_weights_;
};

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
  hdf5::silence();
  Order order;
  agree(comm, [&] {
    if (comm.rank() == 0) order = VertexPartitionReader(path).read();
  });
  share(comm, order);
  return order;
}

}  // namespace espalier
