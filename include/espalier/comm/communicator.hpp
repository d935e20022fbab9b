// A group of ranks and its collectives: typed, with 64-bit counts, every byte booked under a label.
//
// A Communicator owns its MPI communicator, whose errors end the job. Members marked *collective*
// are called by every rank of the group in the same order. Counts are in elements of T, T trivially
// copyable. Nothing is limited to 2^31: large messages travel in pieces of 1 GiB. Two threads never
// use one communicator, nor two that share a ledger: `duplicate` is for them.
//
// And agree(): the user error of one rank becomes that of all.
#pragma once

#include <mpi.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/traffic.hpp"

namespace espalier {

enum class Reduction { kSum, kMin, kMax };

/// What one rank got from an all-to-all-v: the pieces of ranks 0..p-1 one after another.
template <class T>
struct Received {
  Buffer<T> data;
  std::vector<std::int64_t> counts;  ///< elements from each rank, size p
};

/// An all-to-all-v whose messages are on their way. Buffers must stay as they are until finish().
/// Belongs to one thread at a time.
class PendingExchange {
 public:
  /// Nothing under way.
  PendingExchange() = default;
  /// An exchange that is dropped, by an exception on its way out, waits for its messages; when they
  /// do not come within ten seconds the job ends, as the other ranks may be waiting elsewhere.
  ~PendingExchange();
  PendingExchange(PendingExchange&& other) noexcept;
  /// Takes the place of a finished exchange.
  PendingExchange& operator=(PendingExchange&& other) noexcept;

  /// Lets the MPI library move messages; without it, many libraries do not (or a ProgressThread
  /// does). Local.
  void progress();
  /// Are there messages that nobody has seen arrive?
  bool under_way() const { return !requests_.empty(); }

  /// Returns when all was received and what was sent may be reused.
  void finish();

 private:
  friend class Communicator;
  PendingExchange(std::string_view label, int ranks) : label_(label), ranks_(ranks) {}
  bool all_done();

  std::vector<MPI_Request> requests_;
  std::string label_;  ///< for the watchdog, as `ranks_`
  int ranks_ = 0;
};

/// How many of this process are.
int exchanges_under_way();

class Communicator {
 public:
  /// Takes over `handle`; frees it at the end when `owned`.
  Communicator(MPI_Comm handle, bool owned, std::shared_ptr<Traffic> traffic);
  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Communicator& operator=(Communicator&&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  Traffic& traffic() const { return *traffic_; }
  /// The communicator of host memory: itself.
  const Communicator& host() const { return *this; }

  /// The handle, for libraries that do their own communication (parallel HDF5).
  MPI_Comm native() const { return handle_; }
  /// The hints to give such a library beside the handle: none.
  static MPI_Info native_info();

  /// Collective. Ranks with the same color form a group, ordered by key.
  Communicator split(int color, int key) const;

  /// Collective. The same ranks with a communicator and a ledger of their own, so that another
  /// thread may use it beside this one (where threads_may_communicate()).
  Communicator duplicate() const;

  /// Collective. Returns when all ranks have called it.
  void barrier() const;

  /// Collective. Element-wise, in place; all ranks get the result. Sums of uint64 wrap.
  template <class T>
  void all_reduce(std::span<T> values, Reduction reduction, std::string_view label) const;

  /// Collective. The same for one value.
  template <class T>
  T all_reduce(T value, Reduction reduction, std::string_view label) const {
    all_reduce(std::span<T>(&value, 1), reduction, label);
    return value;
  }

  /// Collective. `values` of `root` on every rank; the span has the same length everywhere.
  template <class T>
  void broadcast(std::span<T> values, int root, std::string_view label) const {
    broadcast_bytes(std::as_writable_bytes(values), root, label);
  }

  template <class T>
  void broadcast(T* values, std::int64_t count, int root, std::string_view label) const {
    broadcast(std::span<T>(values, static_cast<std::size_t>(count)), root, label);
  }

  /// Collective. The text of `root` on every rank, any length.
  std::string broadcast_text(std::string text, int root, std::string_view label) const;

  /// Collective. One value of every rank, in rank order.
  template <class T>
  std::vector<T> all_gather(const T& value, std::string_view label) const {
    std::vector<T> all(size_);
    all_gather_bytes(&value, all.data(), sizeof(T), label);
    return all;
  }

  /// Collective. The arrays of all ranks one after another, in rank order.
  template <class T>
  Buffer<T> all_gather_v(std::span<const T> mine, std::string_view label) const {
    const auto counts = all_gather(static_cast<std::int64_t>(mine.size()), label);
    Buffer<T> all(static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
    all_gather_v_bytes(mine.data(), all.data(), counts, sizeof(T), label);
    return all;
  }

  /// Collective. The same where all ranks know the counts; `all` is resized to their sum.
  template <class T>
  void all_gather_v(std::span<const T> mine, std::span<const std::int64_t> counts, Buffer<T>& all,
                    std::string_view label) const {
    all.resize(static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
    all_gather_v_bytes(mine.data(), all.data(), {counts.begin(), counts.end()}, sizeof(T), label);
  }

  /// Collective. `send` holds the pieces for ranks 0..p-1 one after another, send_counts[r]
  /// elements for rank r. The receive counts are exchanged first.
  template <class T>
  Received<T> all_to_all_v(std::span<const T> send, std::span<const std::int64_t> send_counts,
                           std::string_view label) const {
    Received<T> received;
    received.counts = exchange_counts(send_counts, label);
    all_to_all_v(send, send_counts, received.counts, received.data, label);
    return received;
  }

  /// Collective. The same where receivers know the counts; `received` is resized to their sum.
  template <class T>
  void all_to_all_v(std::span<const T> send, std::span<const std::int64_t> send_counts,
                    std::span<const std::int64_t> receive_counts, Buffer<T>& received,
                    std::string_view label) const {
    begin_all_to_all_v(send, send_counts, receive_counts, received, label).finish();
  }

  /// Collective. The same without waiting: neither `send` nor `received` may be touched before
  /// finish() of what is returned. Any number may be under way, and other collectives: messages of
  /// a pair of ranks are matched in the order in which they were begun.
  template <class T>
  [[nodiscard]] PendingExchange begin_all_to_all_v(std::span<const T> send,
                                                   std::span<const std::int64_t> send_counts,
                                                   std::span<const std::int64_t> receive_counts,
                                                   Buffer<T>& received, std::string_view label) const {
    received.resize(static_cast<std::size_t>(
        std::accumulate(receive_counts.begin(), receive_counts.end(), std::int64_t{0})));
    return begin_all_to_all_v(send.data(), send_counts, received.data(), receive_counts, label);
  }

  /// Collective. Both between arrays that the caller has sized: what DeviceCommunicator has too.
  template <class T>
  void all_to_all_v(const T* send, std::span<const std::int64_t> send_counts, T* received,
                    std::span<const std::int64_t> receive_counts, std::string_view label) const {
    begin_all_to_all_v(send, send_counts, received, receive_counts, label).finish();
  }
  template <class T>
  [[nodiscard]] PendingExchange begin_all_to_all_v(const T* send, std::span<const std::int64_t> send_counts,
                                                   T* received, std::span<const std::int64_t> receive_counts,
                                                   std::string_view label) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return begin_all_to_all_v_bytes(send, send_counts, received, receive_counts, sizeof(T), label);
  }

  /// Collective. Rank r's entry of the result is what rank r had for me.
  std::vector<std::int64_t> exchange_counts(std::span<const std::int64_t> send_counts,
                                            std::string_view label) const;

 private:
  friend class DeviceCommunicator;  // of whose bytes the host does not know the type
  template <class T>
  friend class PendingAllReduce;  // which is two exchanges

  void broadcast_bytes(std::span<std::byte> bytes, int root, std::string_view label) const;
  void broadcast_pieces(std::span<std::byte> bytes, int root) const;  // not booked
  void all_gather_bytes(const void* mine, void* all, std::size_t bytes, std::string_view label) const;
  void all_gather_v_bytes(const void* mine, void* all, const std::vector<std::int64_t>& counts,
                          std::size_t item, std::string_view label) const;
  PendingExchange begin_all_to_all_v_bytes(const void* send, std::span<const std::int64_t> send_counts,
                                           void* received, std::span<const std::int64_t> receive_counts,
                                           std::size_t item, std::string_view label) const;
  /// to(r): what rank r is sent, from(r): where what it sends will be; messages of other tags may
  /// be begun in another order by other ranks. Not booked.
  template <class To, class From>
  PendingExchange begin_messages(const To& to, const From& from, int tag, std::string_view label) const;

  MPI_Comm handle_;
  bool owned_;
  int rank_ = 0;
  int size_ = 1;
  std::shared_ptr<Traffic> traffic_;
};

// User errors that one rank meets (a bad line in its part of a file) become the error of all.

/// Collective. Runs `work` on every rank; when any of them threw a UserError, every rank throws the
/// error of the lowest such rank, so that all leave together, with one message. Other exceptions
/// become a UserError with exit code 1. `work` may be collective if it fails on all or none.
void agree(const Communicator& comm, const std::function<void()>& work);

/// Calls read(begin, end), which may be collective, for this rank's share of n rows of so many
/// values, in pieces of bounded size, as often on every rank.
template <class Read>
void in_row_parts(const Communicator& comm, std::int64_t n, const Read& read, std::int64_t values = 1) {
  constexpr std::int64_t kValuesPerPart = std::int64_t{1} << 20;
  const auto mine = even_range(n, comm.size(), comm.rank());
  const auto parts = 1 + n * values / comm.size() / kValuesPerPart;
  for (std::int64_t part = 0; part < parts; ++part) {
    const auto rows = even_range(mine.size(), parts, part);
    read(mine.begin + rows.begin, mine.begin + rows.end);
  }
}

}  // namespace espalier
