// The file of an order. All ranks write it, each an even range of the vertices; rank 0 reads it,
// as it may be damaged, and tells the others.
#include "espalier/partition/order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "espalier/base/crash_guard.hpp"
#include "espalier/base/mix.hpp"
#include "espalier/comm/agree.hpp"
#include "sidecar.hpp"

namespace espalier {

namespace {

constexpr const char* kOrderLabel = "order";
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

void write_order(const Communicator& comm, const OutputFile& output_file, const OrderInfo& info,
                 std::span<const std::uint16_t> mine) {
  const auto range = even_range(info.nodes, comm.size(), comm.rank());
  ESPALIER_CHECK(std::ssize(mine) == range.size(), "{} clusters for {} vertices", mine.size(), range.size());
  hdf5::Output output(comm, output_file);
  write_rows<std::uint16_t>(output, "/cluster", {info.nodes}, 1, range.begin, mine, kOrderLabel);
  // The weights are the same on every rank; rank 0 writes them.
  const auto weights = comm.rank() == 0 ? numbers_of(info.weights) : std::span<const std::int64_t>();
  write_rows<std::int64_t>(output, "/weights", {info.clusters(), kWeights}, kWeights, 0, weights,
                           kOrderLabel);
  if (const auto kinds = 2 * std::ssize(info.types); kinds > 0)
    write_rows<std::int64_t>(
        output, "/type_weights", {info.clusters(), kinds}, kinds, 0,
        comm.rank() == 0 ? std::span(info.type_weights) : std::span<const std::int64_t>(), kOrderLabel);
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

class OrderReader {
 public:
  explicit OrderReader(const std::string& path) : path_(path) {}

  Order read() {
    check_is_file();
    Order order;
    std::string wrong;
    // What is wrong is thrown outside: nothing may leave the guarded part by an exception.
    run_crash_guarded(kSeconds, kBytes, message_of("its structure is damaged"),
                      [&] { wrong = open(order.info); });
    if (!wrong.empty()) fail(wrong);
    read_arrays(order);
    check_clusters(order);
    return order;
  }

 private:
  static constexpr double kSeconds = 2;
  static constexpr std::int64_t kBytes = std::int64_t{1} << 30;

  std::string message_of(const std::string& what) const {
    return fmt::format("order {}: {}; make one with `espalier partition GRAPH -o ORDER`", path_, what);
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(ExitCode::kInput, message_of(what));
  }

  void check_is_file() {
    std::error_code error;
    const auto status = std::filesystem::status(path_, error);
    if (!std::filesystem::exists(status))
      fail(fmt::format("no such file (seen from {})", std::filesystem::current_path(error).string()));
    if (const auto other = other_than_file(path_); !other.empty())
      fail(fmt::format("is a {}, not a file", other));
    if (!std::ifstream(path_, std::ios::binary))
      fail(fmt::format("cannot be opened: {}", std::strerror(errno)));
    size_ = static_cast<std::int64_t>(std::filesystem::file_size(path_, error));
  }

  // What is wrong with the structure, or nothing.
  std::string open(OrderInfo& info) {
    file_ = hdf5::open_file_unlocked(path_);
    if (!file_.valid()) return fmt::format("is not an HDF5 file, or is cut off ({})", hdf5::reason());
    for (const char* name : {"format", "method", "pattern", "types"})
      if (!hdf5::text_attribute_is_sound(file_, name))
        return fmt::format("its attribute {} is damaged", name);
    if (auto wrong = read_attributes(info); !wrong.empty()) return wrong;
    cluster_ = hdf5::open_dataset(file_, "/cluster");
    weights_ = hdf5::open_dataset(file_, "/weights");
    if (auto wrong = check_shapes(info); !wrong.empty() || info.types.empty()) return wrong;
    type_weights_ = hdf5::open_dataset(file_, "/type_weights");
    return check_type_weights(info);
  }

  std::string read_attributes(OrderInfo& info) {
    std::string format, pattern;
    std::int64_t version = 0;
    if (!hdf5::read_text_attribute(file_, "format", format) || format != kFormat)
      return fmt::format("is HDF5 but not an order (its attribute format is {}, not \"{}\")",
                         format.empty() ? hdf5::describe_attribute(file_, "format") : '"' + format + '"',
                         kFormat);
    if (!hdf5::read_integer_attribute(file_, "version", version))
      return fmt::format("its attribute version is {}, not a whole number",
                         hdf5::describe_attribute(file_, "version"));
    if (version != kVersion)
      return fmt::format("has format version {}; this program reads version {}", version, kVersion);
    if (!hdf5::read_text_attribute(file_, "method", info.method)) return "has no attribute method";
    if (auto wrong = read_types(info); !wrong.empty()) return wrong;
    if (!hdf5::read_text_attribute(file_, "pattern", pattern)) return "";
    info.pattern = digest_from_hex(pattern);
    return info.pattern ? "" : fmt::format("its attribute pattern is \"{}\", not 16 hex digits", pattern);
  }

  std::string read_types(OrderInfo& info) {
    std::string names;
    if (!hdf5::read_text_attribute(file_, "types", names)) return "";
    for (std::size_t begin = 0; begin <= names.size();) {
      const auto comma = std::min(names.find(',', begin), names.size());
      info.types.push_back(names.substr(begin, comma - begin));
      begin = comma + 1;
    }
    return info.types.size() > kMostTypes
               ? fmt::format("has {} types; {} are possible", info.types.size(), kMostTypes)
               : "";
  }

  std::string check_type_weights(OrderInfo& info) {
    const auto kinds = 2 * std::ssize(info.types);
    if (!type_weights_.exists()) return "has types, but there is no dataset /type_weights";
    if (!hdf5::text_attribute_is_sound(type_weights_.handle, "digest"))
      return "the attribute digest of /type_weights is damaged";
    if (!type_weights_.is_integer() || type_weights_.shape.size() != 2 || type_weights_.columns() != kinds ||
        type_weights_.type_size != 8 || type_weights_.rows() != info.clusters())
      return fmt::format("/type_weights is not int64 [{}, {}]", info.clusters(), kinds);
    if (info.clusters() * kinds * 8 > size_) return "is cut off, or compressed";
    info.type_weights.resize(info.weights.size() * 2 * info.types.size());
    return "";
  }

  std::string check_shapes(OrderInfo& info) {
    for (const auto* dataset : {&cluster_, &weights_}) {
      if (!dataset->exists()) return fmt::format("there is no dataset {}", dataset->name);
      if (!dataset->is_integer()) return fmt::format("{} does not hold integers", dataset->name);
      if (!hdf5::text_attribute_is_sound(dataset->handle, "digest"))
        return fmt::format("the attribute digest of {} is damaged", dataset->name);
    }
    if (cluster_.shape.size() != 1 || cluster_.type_size != 2 || cluster_.type_signed)
      return "/cluster is not one row of uint16";
    if (weights_.shape.size() != 2 || weights_.columns() != kWeights || weights_.type_size != 8)
      return fmt::format("/weights is not int64 [clusters, {}]", kWeights);
    info.nodes = cluster_.rows();
    if (info.nodes < 1) return "has no vertex";
    if (weights_.rows() < 1 || weights_.rows() > kMostClusters)
      return fmt::format("has {} clusters; between 1 and {} is possible", weights_.rows(), kMostClusters);
    const auto bytes = info.nodes * 2 + weights_.rows() * kWeights * 8;
    if (info.nodes > size_ / 2 || bytes > size_)
      return fmt::format("is cut off, or compressed: {} bytes, and its arrays have {}", size_, bytes);
    info.weights.resize(static_cast<std::size_t>(weights_.rows()));
    return "";
  }

  void read_arrays(Order& order) {
    order.cluster.resize(static_cast<std::size_t>(order.info.nodes));
    std::span numbers(order.info.weights[0].data(), order.info.weights.size() * kBalanceNames.size());
    read_array(cluster_, std::span(order.cluster), 1);
    read_array(weights_, numbers, kWeights);
    if (!order.info.types.empty())
      read_array(type_weights_, std::span(order.info.type_weights), 2 * std::ssize(order.info.types));
  }

  template <class T>
  void read_array(const hdf5::Dataset& dataset, std::span<T> values, std::int64_t width) {
    if (!hdf5::read_slab(dataset, hdf5::memory_type<T>(), {0, dataset.rows(), width}, values.data()))
      fail(fmt::format("cannot read {}: {}", dataset.name, hdf5::reason()));
    std::string stated;
    if (!hdf5::read_text_attribute(dataset.handle, "digest", stated)) return;
    const auto found = hex(content_digest(std::span<const T>(values), 0));
    if (stated != found)
      fail(fmt::format("{} is not what was written: its digest is {}, the file says {}", dataset.name, found,
                       stated));
  }

  void check_clusters(const Order& order) {
    const auto out_of_range = [](auto weight) { return weight < 0 || weight > kMostWeight; };
    std::vector<std::int64_t> sizes(order.info.weights.size(), 0);
    for (std::size_t v = 0; v < order.cluster.size(); ++v) {
      if (order.cluster[v] >= sizes.size())
        fail(fmt::format("vertex {} is in cluster {} of {}", v, order.cluster[v], sizes.size()));
      ++sizes[order.cluster[v]];
    }
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const auto& weights = order.info.weights[k];
      if (weights[0] != sizes[k])
        fail(
            fmt::format("/weights says that cluster {} has {} vertices; it has {}", k, weights[0], sizes[k]));
      if (std::ranges::any_of(weights, out_of_range))
        fail(fmt::format("the weights of cluster {} are out of range", k));
    }
    if (std::ranges::any_of(order.info.type_weights, out_of_range)) fail("weights of types are out of range");
  }

  std::string path_;
  std::int64_t size_ = 0;
  hdf5::Handle file_;
  hdf5::Dataset cluster_, weights_, type_weights_;
};

// Collective. What rank 0 has, on every rank.
void share(const Communicator& comm, Order& order) {
  auto& info = order.info;
  std::array<std::int64_t, 4> head = {info.nodes, info.clusters(), info.pattern.has_value(),
                                      static_cast<std::int64_t>(info.pattern.value_or(0))};
  comm.broadcast(head.data(), std::ssize(head), 0, kOrderLabel);
  info.nodes = head[0];
  info.method = comm.broadcast_text(info.method, 0, kOrderLabel);
  if (head[2] != 0) info.pattern = static_cast<std::uint64_t>(head[3]);
  info.weights.resize(static_cast<std::size_t>(head[1]));
  order.cluster.resize(static_cast<std::size_t>(head[0]));
  comm.broadcast(std::span(info.weights), 0, kOrderLabel);
  auto types = static_cast<std::int64_t>(info.types.size());
  comm.broadcast(&types, 1, 0, kOrderLabel);
  info.types.resize(static_cast<std::size_t>(types));
  for (auto& name : info.types) name = comm.broadcast_text(name, 0, kOrderLabel);
  info.type_weights.resize(info.weights.size() * 2 * info.types.size());
  if (types > 0) comm.broadcast(std::span(info.type_weights), 0, kOrderLabel);
  comm.broadcast(std::span(order.cluster), 0, kOrderLabel);
}

}  // namespace

Order read_order(const Communicator& comm, const std::string& path) {
  hdf5::silence();
  Order order;
  agree(comm, [&] {
    if (comm.rank() == 0) order = OrderReader(path).read();
  });
  share(comm, order);
  return order;
}

}  // namespace espalier
