// Collectives of device memory: the CUDA implementation of Communicator.
//
// Two ways. Where every rank of the job has a GPU of its own, NCCL moves the data from GPU to GPU:
// an all-to-all-v is one group of sends and receives, or, where GPUs share PCIe links, a group for
// each round of exchange_rounds.hpp: the same bytes. Ranks that share a GPU, which NCCL refuses,
// exchange through pinned host memory. Either way the Communicator's ledger has the same bytes.
//
// All are collective over the group and run in the order of the compute stream: they see what was
// launched before, and what is launched after sees their results. Counts are in elements of T.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/cuda.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/grid.hpp"

namespace espalier {

struct NodePlace;

/// The GPU for the rank at this place of its node, whose ranks take them in turn; 0: there is none.
int gpu_for(const NodePlace& place);

/// An all-to-all-v on its way. As of PendingExchange, arrays stay as they are until finish().
class DevicePendingExchange {
 public:
  DevicePendingExchange();
  ~DevicePendingExchange();
  DevicePendingExchange(DevicePendingExchange&&) noexcept;
  DevicePendingExchange& operator=(DevicePendingExchange&&) noexcept;

  /// What is launched from here on sees what was received; with NCCL the host does not wait.
  void finish();

  /// Through host buffers: gives the MPI library an opportunity to move messages. Local.
  void progress();

 private:
  friend class DeviceCommunicator;
  struct State;
  std::unique_ptr<State> state_;
};

class DeviceCommunicator {
 public:
  /// Collective over `comm`, which must outlive it. `by_nccl`: on all ranks, each with a GPU of its
  /// own. Pairs go in rounds where it is known that GPUs share links.
  DeviceCommunicator(const Cuda& cuda, const Communicator& comm, bool by_nccl);
  ~DeviceCommunicator();
  DeviceCommunicator(DeviceCommunicator&&) noexcept;

  int rank() const { return host().rank(); }
  int size() const { return host().size(); }
  const Communicator& host() const { return *comm_; }
  /// Rounds of an exchange, the same on every rank: 1 where all pairs go together.
  int exchange_rounds() const;

  /// values[0 .. count) become their sum (largest, least). T: float, double, int64_t, uint64_t.
  template <class T>
  void all_reduce(T* values, std::int64_t count, Reduction reduction, std::string_view label) const;

  /// `send` has the pieces for ranks 0 .. p-1 one after another, `received` those of them.
  template <class T>
  void all_to_all_v(const T* send, std::span<const std::int64_t> send_counts, T* received,
                    std::span<const std::int64_t> receive_counts, std::string_view label) const {
    begin_all_to_all_v(send, send_counts, received, receive_counts, label).finish();
  }
  template <class T>
  [[nodiscard]] DevicePendingExchange begin_all_to_all_v(const T* send,
                                                         std::span<const std::int64_t> send_counts,
                                                         T* received,
                                                         std::span<const std::int64_t> receive_counts,
                                                         std::string_view label) const {
    return begin_bytes(send, send_counts, received, receive_counts, sizeof(T), label);
  }

  /// values[0 .. count) of `root` on every rank.
  template <class T>
  void broadcast(T* values, std::int64_t count, int root, std::string_view label) const {
    broadcast_bytes(values, count * static_cast<std::int64_t>(sizeof(T)), root, label);
  }

  /// all = the arrays of all ranks one after another, counts[r] elements of rank r.
  template <class T>
  void all_gather_v(const T* mine, std::span<const std::int64_t> counts, T* all,
                    std::string_view label) const {
    all_gather_v_bytes(mine, counts, all, sizeof(T), label);
  }

 private:
  DevicePendingExchange begin_bytes(const void* send, std::span<const std::int64_t> send_counts,
                                    void* received, std::span<const std::int64_t> receive_counts,
                                    std::size_t item, std::string_view label) const;
  void broadcast_bytes(void* values, std::int64_t bytes, int root, std::string_view label) const;
  void all_gather_v_bytes(const void* mine, std::span<const std::int64_t> counts, void* all, std::size_t item,
                          std::string_view label) const;

  struct Nccl;
  struct Staging;
  struct Turns;
  friend class DevicePendingExchange;
  Cuda cuda_;
  const Communicator* comm_;
  std::unique_ptr<Nccl> nccl_;        ///< null: through the host, or no other rank
  std::unique_ptr<Turns> turns_;      ///< whose turn is when, by NCCL
  std::shared_ptr<Staging> staging_;  ///< the host's memory for that
};

/// How a grid exchanges device memory.
enum class Transport {
  kBest,  ///< by NCCL where every rank has a GPU of its own
  kHost,  ///< through the host in any case: for a thread beside the one that took the GPU. NCCL's
          ///< operations of two threads could wait for each other when ranks begin them in
          ///< different orders, so that all of them are the first thread's
};

/// The three communicators of a grid.
class DeviceGrid {
 public:
  /// Collective over the grid, which must outlive it. Finds out whether ranks share a GPU.
  /// ESPALIER_NO_NCCL=1 in the environment of any rank: as if they did.
  DeviceGrid(const Cuda& cuda, const Grid& grid, Transport transport = Transport::kBest);

  const Grid& host() const { return *grid_; }
  int rows() const { return grid_->rows(); }
  int row() const { return grid_->row(); }
  int column() const { return grid_->column(); }
  int replication() const { return grid_->replication(); }
  Traffic& traffic() const { return grid_->traffic(); }
  const DeviceCommunicator& world() const { return world_; }
  const DeviceCommunicator& row_comm() const { return row_comm_; }
  const DeviceCommunicator& column_comm() const { return column_comm_; }
  /// "NCCL" or "host buffers and MPI".
  const char* transport() const { return by_nccl_ ? "NCCL" : "host buffers and MPI"; }
  /// The same, and how the exchanges of rows take turns: "NCCL, in 5 rounds over PCIe switches".
  std::string transport_in_words() const;

 private:
  const Grid* grid_;
  bool by_nccl_;
  DeviceCommunicator world_, row_comm_, column_comm_;
};

/// What moves data of a space.
template <class Space>
using CommunicatorOn = ForSpace<Space, Communicator, DeviceCommunicator>;
template <class Space>
using GridOn = ForSpace<Space, Grid, DeviceGrid>;
template <class Space>
using PendingExchangeOn = ForSpace<Space, PendingExchange, DevicePendingExchange>;

}  // namespace espalier
