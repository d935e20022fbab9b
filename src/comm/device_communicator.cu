// Collectives of device memory, by NCCL or through the host.
//
// NCCL: all runs on the communication stream, which waits for what the compute stream was given
// before, as that does for results. The host waits for nothing. All communicators of a grid use the
// one stream, so operations run in the order of their calls, the same on all ranks.
//
// Host: the Communicator moves pieces in pinned memory. A piece of it may be taken again while a
// copy from it is under way: whoever takes it waits for the stream first.
#include "espalier/comm/device_communicator.hpp"

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <exception>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/base/process.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/exchange_rounds.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/comm/traffic.hpp"

namespace espalier {

namespace {

void check_nccl(ncclResult_t result, const char* call, const char* file, int line) {
  if (result == ncclSuccess) [[likely]]
    return;
  fail_check(file, line, call,
             fmt::format("NCCL: {}. {} NCCL_DEBUG=WARN in the environment says more; ESPALIER_NO_NCCL=1 does "
                         "without NCCL",
                         ncclGetErrorString(result), ncclGetLastError(nullptr)));
}
#define ESPALIER_NCCL(call) check_nccl((call), #call, __FILE__, __LINE__)

template <class T>
ncclDataType_t nccl_type() {
  if constexpr (std::is_same_v<T, float>) return ncclFloat32;
  if constexpr (std::is_same_v<T, double>) return ncclFloat64;
  if constexpr (std::is_same_v<T, std::int64_t>) return ncclInt64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return ncclUint64;
}

ncclRedOp_t nccl_operation(Reduction reduction) {
  return reduction == Reduction::kSum ? ncclSum : reduction == Reduction::kMin ? ncclMin : ncclMax;
}

void copy_on(cudaStream_t stream, const std::byte* from, std::byte* to, std::int64_t bytes) {
  if (bytes > 0)
    ESPALIER_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream));
}

// To the GPU, without a wait.
void copy_pinned(const Cuda& cuda, const DeviceArray<std::byte>& from, void* to) {
  copy_on(cuda.stream(), from.data(), static_cast<std::byte*>(to), std::ssize(from));
}

}  // namespace

int gpu_for(const NodePlace& place) {
  return place.place % std::max(count_gpus(), 1);
}

// ---- The two ways -------------------------------------------------------------------------------

struct DeviceCommunicator::Nccl {
  ncclComm_t handle = nullptr;

  /// Collective over `comm`.
  explicit Nccl(const Communicator& comm) {
    ncclUniqueId id = {};
    if (comm.rank() == 0) ESPALIER_NCCL(ncclGetUniqueId(&id));
    comm.broadcast(std::span<char>(id.internal), 0, "setup");
    ESPALIER_NCCL(ncclCommInitRank(&handle, comm.size(), id, comm.rank()));
  }
  // On the way out after an error the others may be waiting elsewhere, and both ways to end it, the
  // abort too, may wait for them: it ends with the process.
  ~Nccl() {
    if (std::uncaught_exceptions() == 0) ncclCommDestroy(handle);
  }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  /// An error that an earlier operation met while it ran, here or on another rank.
  void check() const {
    ncclResult_t earlier = ncclSuccess;
    ESPALIER_NCCL(ncclCommGetAsyncError(handle, &earlier));
    ESPALIER_NCCL(earlier);
  }
};

// The partners of this rank, round after round, itself among them once.
struct DeviceCommunicator::Turns {
  int rounds = 1;
  std::vector<std::vector<int>> partners;

  /// Collective over `comm`. Two ranks have nothing to put in order.
  Turns(const Cuda& cuda, const Communicator& comm) {
    std::vector<GpuPlace> places(static_cast<std::size_t>(comm.size()));
    if (comm.size() > 2) places = find_gpu_places(comm, cuda.bus_id());
    if (share_links(places)) rounds = static_cast<int>(espalier::exchange_rounds(places).size());
    partners = partners_by_round(places, comm.rank());
  }
};

// Pinned memory of the host, kept from one exchange to the next.
struct DeviceCommunicator::Staging {
  std::vector<DeviceArray<std::byte>> idle;

  /// The smallest that is large enough; or a larger one instead of the largest.
  DeviceArray<std::byte> take(std::int64_t bytes) {
    const auto wanted = static_cast<std::size_t>(bytes);
    DeviceArray<std::byte> taken(0, Placement::kHost);
    const auto fits = [&](const auto& x) { return x.capacity() >= wanted; };
    auto best = idle.begin();
    for (auto at = idle.begin(); at != idle.end(); ++at)
      if (fits(*best) ? fits(*at) && at->capacity() < best->capacity() : at->capacity() > best->capacity())
        best = at;
    if (best != idle.end()) {
      taken.swap(*best);
      idle.erase(best);
    }
    if (wanted > taken.capacity()) taken.reserve(wanted + wanted / 8);
    taken.resize(wanted);
    return taken;
  }
  void give_back(DeviceArray<std::byte>&& array) { idle.push_back(std::move(array)); }
};

// ---- What is under way --------------------------------------------------------------------------

struct DevicePendingExchange::State {
  Cuda cuda;
  // By NCCL: when everything has arrived.
  cudaEvent_t arrival = nullptr;
  // Through the host.
  std::shared_ptr<DeviceCommunicator::Staging> staging;
  DeviceArray<std::byte> sent, arrived;
  void* received = nullptr;
  PendingExchange exchange;  // last: it uses the arrays

  explicit State(const Cuda& cuda_) : cuda(cuda_) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  // An exchange that is dropped: the arrays that it uses go in the order of the compute stream.
  ~State() { wait_for_arrival(); }

  void wait_for_arrival() {
    if (arrival == nullptr) return;
    ESPALIER_CUDA(cudaStreamWaitEvent(cuda.stream(), arrival, 0));
    ESPALIER_CUDA(cudaEventDestroy(arrival));
    arrival = nullptr;
  }
  void finish() {
    wait_for_arrival();
    if (staging == nullptr) return;
    exchange.finish();
    copy_pinned(cuda, arrived, received);
    staging->give_back(std::move(sent));
    staging->give_back(std::move(arrived));
  }
};

DevicePendingExchange::DevicePendingExchange() = default;
DevicePendingExchange::~DevicePendingExchange() = default;
DevicePendingExchange::DevicePendingExchange(DevicePendingExchange&&) noexcept = default;
DevicePendingExchange& DevicePendingExchange::operator=(DevicePendingExchange&& other) noexcept {
  ESPALIER_CHECK(state_ == nullptr, "an exchange is under way{}", "");
  state_.swap(other.state_);
  return *this;
}

void DevicePendingExchange::progress() {
  if (state_ != nullptr && state_->staging != nullptr) state_->exchange.progress();
}

void DevicePendingExchange::finish() {
  if (state_ == nullptr) return;
  state_->finish();
  state_.reset();
}

// ---- The collectives ----------------------------------------------------------------------------

DeviceCommunicator::DeviceCommunicator(const Cuda& cuda, const Communicator& comm, bool by_nccl)
    : cuda_(cuda),
      comm_(&comm),
      nccl_(by_nccl && comm.size() > 1 ? std::make_unique<Nccl>(comm) : nullptr),
      turns_(nccl_ != nullptr ? std::make_unique<Turns>(cuda, comm) : nullptr),
      staging_(std::make_shared<Staging>()) {}
DeviceCommunicator::~DeviceCommunicator() = default;
DeviceCommunicator::DeviceCommunicator(DeviceCommunicator&&) noexcept = default;

int DeviceCommunicator::exchange_rounds() const {
  return turns_ != nullptr ? turns_->rounds : 1;
}

template <class T>
void DeviceCommunicator::all_reduce(T* values, std::int64_t count, Reduction reduction,
                                    std::string_view label) const {
  if (size() == 1) return;
  const ProfilerRange range("all_reduce");
  const auto items = static_cast<std::size_t>(count);
  const auto bytes = count * static_cast<std::int64_t>(sizeof(T));
  if (nccl_ != nullptr) {
    nccl_->check();
    const InCollective here("all-reduce by NCCL", label, size());
    cuda_.communication_waits_for_compute();
    ESPALIER_NCCL(ncclAllReduce(values, values, items, nccl_type<T>(), nccl_operation(reduction),
                                nccl_->handle, cuda_.communication_stream()));
    cuda_.compute_waits_for_communication();
    comm_->traffic().book(label, all_reduce_volume(bytes, size()));
    return;
  }
  auto staged = staging_->take(bytes);
  copy_bytes_to_host(cuda_, values, staged.data(), staged.size());
  comm_->all_reduce(std::span<T>(reinterpret_cast<T*>(staged.data()), items), reduction, label);
  copy_pinned(cuda_, staged, values);
  staging_->give_back(std::move(staged));
}
template void DeviceCommunicator::all_reduce(float*, std::int64_t, Reduction, std::string_view) const;
template void DeviceCommunicator::all_reduce(double*, std::int64_t, Reduction, std::string_view) const;
template void DeviceCommunicator::all_reduce(std::int64_t*, std::int64_t, Reduction, std::string_view) const;
template void DeviceCommunicator::all_reduce(std::uint64_t*, std::int64_t, Reduction, std::string_view) const;

DevicePendingExchange DeviceCommunicator::begin_bytes(const void* send,
                                                      std::span<const std::int64_t> send_counts,
                                                      void* received,
                                                      std::span<const std::int64_t> receive_counts,
                                                      std::size_t item, std::string_view label) const {
  ESPALIER_CHECK(
      static_cast<int>(send_counts.size()) == size() && static_cast<int>(receive_counts.size()) == size(),
      "{} and {} counts for {} ranks", send_counts.size(), receive_counts.size(), size());
  const auto width = static_cast<std::int64_t>(item);
  const auto* from = static_cast<const std::byte*>(send);
  auto* to = static_cast<std::byte*>(received);
  DevicePendingExchange begun;
  if (size() == 1) {
    copy_on(cuda_.stream(), from, to, send_counts[0] * width);
    return begun;
  }
  const ProfilerRange range("all_to_all_v");
  begun.state_ = std::make_unique<DevicePendingExchange::State>(cuda_);
  auto& state = *begun.state_;
  const auto send_begins = begins_of(send_counts, item), receive_begins = begins_of(receive_counts, item);
  if (nccl_ == nullptr) {
    state.staging = staging_;
    state.sent = staging_->take(send_begins.back());
    state.arrived = staging_->take(receive_begins.back());
    state.received = received;
    // Waits, also for nothing.
    copy_bytes_to_host(cuda_, send, state.sent.data(), state.sent.size());
    state.exchange = comm_->begin_all_to_all_v_bytes(state.sent.data(), send_counts, state.arrived.data(),
                                                     receive_counts, item, label);
    return begun;
  }
  nccl_->check();
  const InCollective here("all-to-all-v by NCCL", label, size());
  cuda_.communication_waits_for_compute();
  auto* const stream = cuda_.communication_stream();
  for (const auto& partners : turns_->partners) {
    ESPALIER_NCCL(ncclGroupStart());
    for (const int peer : partners) {
      const auto* const piece = from + send_begins[peer];
      auto* const place = to + receive_begins[peer];
      const auto sent = send_counts[peer] * width, arriving = receive_counts[peer] * width;
      if (peer == rank()) {
        copy_on(stream, piece, place, sent);
        continue;
      }
      if (sent > 0)
        ESPALIER_NCCL(
            ncclSend(piece, static_cast<std::size_t>(sent), ncclUint8, peer, nccl_->handle, stream));
      if (arriving > 0)
        ESPALIER_NCCL(
            ncclRecv(place, static_cast<std::size_t>(arriving), ncclUint8, peer, nccl_->handle, stream));
    }
    ESPALIER_NCCL(ncclGroupEnd());
  }
  ESPALIER_CUDA(cudaEventCreateWithFlags(&state.arrival, cudaEventDisableTiming));
  ESPALIER_CUDA(cudaEventRecord(state.arrival, stream));
  comm_->traffic().book(label, all_to_all_volume(send_counts, receive_counts, item, rank()));
  return begun;
}

void DeviceCommunicator::broadcast_bytes(void* values, std::int64_t bytes, int root,
                                         std::string_view label) const {
  if (size() == 1) return;
  const ProfilerRange range("broadcast");
  if (nccl_ == nullptr) {
    auto staged = staging_->take(bytes);
    // Waits, also where nothing is copied.
    copy_bytes_to_host(cuda_, values, staged.data(), rank() == root ? staged.size() : 0);
    comm_->broadcast(staged.data(), bytes, root, label);
    if (rank() != root) copy_pinned(cuda_, staged, values);
    staging_->give_back(std::move(staged));
    return;
  }
  nccl_->check();
  const InCollective here("broadcast by NCCL", label, size());
  cuda_.communication_waits_for_compute();
  ESPALIER_NCCL(ncclBroadcast(values, values, static_cast<std::size_t>(bytes), ncclUint8, root, nccl_->handle,
                              cuda_.communication_stream()));
  cuda_.compute_waits_for_communication();
  comm_->traffic().book(label, broadcast_volume(bytes, size(), root == rank()));
}

void DeviceCommunicator::all_gather_v_bytes(const void* mine, std::span<const std::int64_t> counts, void* all,
                                            std::size_t item, std::string_view label) const {
  ESPALIER_CHECK(static_cast<int>(counts.size()) == size(), "{} counts for {} ranks", counts.size(), size());
  const auto width = static_cast<std::int64_t>(item);
  const auto own = counts[rank()] * width;
  auto* to = static_cast<std::byte*>(all);
  if (size() == 1) return copy_on(cuda_.stream(), static_cast<const std::byte*>(mine), to, own);
  const ProfilerRange range("all_gather_v");
  if (nccl_ == nullptr) {
    auto sent = staging_->take(own), arrived = staging_->take(begins_of(counts, item).back());
    copy_bytes_to_host(cuda_, mine, sent.data(), sent.size());
    comm_->all_gather_v_bytes(sent.data(), arrived.data(), {counts.begin(), counts.end()}, item, label);
    copy_pinned(cuda_, arrived, all);
    staging_->give_back(std::move(sent));
    staging_->give_back(std::move(arrived));
    return;
  }
  nccl_->check();
  const InCollective here("all-gather-v by NCCL", label, size());
  cuda_.communication_waits_for_compute();
  std::vector<std::int64_t> bytes(counts.size());
  ESPALIER_NCCL(ncclGroupStart());
  for (int root = 0; root < size(); ++root) {
    bytes[root] = counts[root] * width;
    if (bytes[root] > 0)
      ESPALIER_NCCL(ncclBroadcast(root == rank() ? mine : to, to, static_cast<std::size_t>(bytes[root]),
                                  ncclUint8, root, nccl_->handle, cuda_.communication_stream()));
    to += bytes[root];
  }
  ESPALIER_NCCL(ncclGroupEnd());
  comm_->traffic().book(label, all_gather_v_volume(bytes, rank()));
  cuda_.compute_waits_for_communication();
}

// ---- The grid -----------------------------------------------------------------------------------

namespace {

// Does every rank have a GPU of its own, and may NCCL be used? It tells GPUs apart by their place
// on the bus, so that slices of one (MIG) are the same to it. Collective.
bool can_use_nccl(const Cuda& cuda, const Communicator& world) {
  struct Gpu {
    HostName host;
    char bus_id[32] = {};
    bool forbidden = false;
  } mine;
  cuda.bus_id().copy(mine.bus_id, sizeof mine.bus_id);
  mine.forbidden = is_set("ESPALIER_NO_NCCL");
  std::set<std::string> different;
  bool forbidden = false;
  for (const auto& gpu : world.all_gather(mine, "setup")) {
    different.insert(std::string(gpu.host.text) + std::string(gpu.bus_id, sizeof gpu.bus_id));
    forbidden = forbidden || gpu.forbidden;
  }
  return !forbidden && static_cast<int>(different.size()) == world.size();
}

}  // namespace

DeviceGrid::DeviceGrid(const Cuda& cuda, const Grid& grid, Transport transport)
    : grid_(&grid),
      by_nccl_(transport == Transport::kBest && can_use_nccl(cuda, grid.world())),
      world_(cuda, grid.world(), by_nccl_),
      row_comm_(cuda, grid.row_comm(), by_nccl_),
      column_comm_(cuda, grid.column_comm(), by_nccl_) {}

std::string DeviceGrid::transport_in_words() const {
  const int rounds = column_comm_.exchange_rounds();
  return rounds == 1 ? transport() : fmt::format("{}, in {} rounds over PCIe switches", transport(), rounds);
}

}  // namespace espalier
