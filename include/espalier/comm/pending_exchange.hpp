// An all-to-all-v whose messages are on their way: what Communicator::begin_all_to_all_v returns.
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// Buffers must stay as they are until finish(). Belongs to one thread at a time.
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

  /// Lets the MPI library move messages; without it, many libraries do not. Local.
  void progress();

  /// Returns when all was received and what was sent may be reused.
  void finish();

 private:
  friend class Communicator;
  PendingExchange(std::string_view label, int ranks) : label_(label), ranks_(ranks) {}

  std::vector<MPI_Request> requests_;
  std::string label_;  ///< for the watchdog, as `ranks_`
  int ranks_ = 0;
};

}  // namespace espalier
