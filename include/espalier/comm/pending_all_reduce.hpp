// An all-reduce that does not wait: its bytes travel while the caller does something else.
//
// It is a reduce-scatter and an all-gather, each one exchange of all pairs: rank r reduces part r
// (even_range) of the arrays of all ranks, in their order, and sends every rank the result. Those
// are 2 (p - 1) messages and 2 n (p-1)/p bytes of each rank, the least there is, in two rounds. The
// order is the ranks', so sums of floats are those of the number of ranks, with every MPI library.
//
// Nobody begins the second exchange but advance(); messages of either move in any MPI call, or by
// the calls of a ProgressThread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "espalier/base/buffer.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

/// T: float, int64 or uint64. Belongs to one thread at a time.
template <class T>
class PendingAllReduce {
 public:
  /// Collective. `values` and `comm` must stay until advance() has said that all is done; then
  /// `values` are the result on every rank. Those that are under way at once have different
  /// numbers, from 0 to below 4096, and ranks may begin them in any order. Booked as
  /// Communicator::all_reduce is.
  void begin(const Communicator& comm, std::span<T> values, Reduction reduction, int number,
             std::string_view label);

  /// Looks whether an exchange is done, or `waits` until it is, and goes on to the next. Is all
  /// done? true where nothing was begun. Local; whoever waits asks twice.
  bool advance(bool waits = false);

 private:
  enum class Stage { kDone, kScatter, kGather };

  std::span<T> part(int rank) const;
  void gather();

  Stage stage_ = Stage::kDone;
  const Communicator* comm_ = nullptr;
  std::span<T> values_;
  Reduction reduction_ = Reduction::kSum;
  int tag_ = 0;
  std::string label_;
  Buffer<T> others_;          ///< [ranks][my part]
  PendingExchange exchange_;  ///< last: it uses the arrays
};

}  // namespace espalier
