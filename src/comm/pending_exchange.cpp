#include "espalier/comm/pending_exchange.hpp"

#include <unistd.h>

#include <utility>

#include "espalier/base/clock.hpp"
#include "espalier/base/progress.hpp"
#include "mpi_check.hpp"

namespace espalier {

namespace {

bool all_done(std::vector<MPI_Request>& requests) {
  int done = 0;
  ESPALIER_MPI(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE));
  if (done != 0) requests.clear();
  return done != 0;
}

}  // namespace

PendingExchange::~PendingExchange() {
  constexpr double kPatienceSeconds = 10;
  if (requests_.empty()) return;
  const double deadline = now() + kPatienceSeconds;
  while (!all_done(requests_)) {
    ESPALIER_CHECK(now() < deadline, "an exchange was dropped and {} messages do not arrive",
                   requests_.size());
    usleep(1000);
  }
}

PendingExchange::PendingExchange(PendingExchange&& other) noexcept
    : requests_(std::exchange(other.requests_, {})), label_(std::move(other.label_)), ranks_(other.ranks_) {}

PendingExchange& PendingExchange::operator=(PendingExchange&& other) noexcept {
  ESPALIER_CHECK(requests_.empty(), "an exchange of {} messages is under way", requests_.size());
  requests_.swap(other.requests_);
  label_.swap(other.label_);
  ranks_ = other.ranks_;
  return *this;
}

void PendingExchange::progress() {
  if (!requests_.empty()) all_done(requests_);
}

void PendingExchange::finish() {
  if (requests_.empty()) return;
  const InCollective here("all-to-all-v", label_, ranks_);
  ESPALIER_MPI(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
  requests_.clear();
}

}  // namespace espalier
