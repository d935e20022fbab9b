#include "espalier/comm/communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "espalier/base/clock.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/grid.hpp"
#include "espalier/comm/pending_all_reduce.hpp"
#include "espalier/comm/traffic.hpp"
#include "mpi_check.hpp"

namespace espalier {

namespace {

constexpr int kExchangeTag = 7;
constexpr int kReduceTag = 8;  // and those behind it, two for each number

std::atomic<int> under_way = 0;

template <class T>
MPI_Datatype mpi_type() {
  if constexpr (std::is_same_v<T, float>) return MPI_FLOAT;
  if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return MPI_INT32_T;
  if constexpr (std::is_same_v<T, std::int64_t>) return MPI_INT64_T;
  if constexpr (std::is_same_v<T, std::uint64_t>) return MPI_UINT64_T;
}

MPI_Op mpi_op(Reduction reduction) {
  return reduction == Reduction::kSum ? MPI_SUM : reduction == Reduction::kMin ? MPI_MIN : MPI_MAX;
}

// Calls piece(offset, bytes) for consecutive pieces that fit an int count.
template <class Piece>
void for_each_piece(std::int64_t bytes, Piece piece) {
  for (std::int64_t offset = 0; offset < bytes; offset += kMessageBytes)
    piece(offset, static_cast<int>(std::min(kMessageBytes, bytes - offset)));
}

}  // namespace

int exchanges_under_way() {
  return under_way;
}

bool PendingExchange::all_done() {
  int done = 0;
  ESPALIER_MPI(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE));
  if (done == 0) return false;
  requests_.clear();
  --espalier::under_way;
  return true;
}

PendingExchange::~PendingExchange() {
  constexpr double kPatienceSeconds = 10;
  if (requests_.empty()) return;
  const double deadline = now() + kPatienceSeconds;
  while (!all_done()) {
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
  if (!requests_.empty()) all_done();
}

void PendingExchange::finish() {
  if (requests_.empty()) return;
  const InCollective here("all-to-all-v", label_, ranks_);
  ESPALIER_MPI(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
  requests_.clear();
  --espalier::under_way;
}

Communicator::Communicator(MPI_Comm handle, bool owned, std::shared_ptr<Traffic> traffic)
    : handle_(handle), owned_(owned), traffic_(std::move(traffic)) {
  ESPALIER_MPI(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN));
  ESPALIER_MPI(MPI_Comm_rank(handle_, &rank_));
  ESPALIER_MPI(MPI_Comm_size(handle_, &size_));
}

Communicator::~Communicator() {
  if (owned_ && handle_ != MPI_COMM_NULL) MPI_Comm_free(&handle_);
}

Communicator::Communicator(Communicator&& other) noexcept
    : handle_(std::exchange(other.handle_, MPI_COMM_NULL)),
      owned_(other.owned_),
      rank_(other.rank_),
      size_(other.size_),
      traffic_(std::move(other.traffic_)) {}

MPI_Info Communicator::native_info() {
  return MPI_INFO_NULL;
}

Communicator Communicator::split(int color, int key) const {
  MPI_Comm part = MPI_COMM_NULL;
  ESPALIER_MPI(MPI_Comm_split(handle_, color, key, &part));
  return Communicator(part, true, traffic_);
}

Communicator Communicator::duplicate() const {
  MPI_Comm copy = MPI_COMM_NULL;
  ESPALIER_MPI(MPI_Comm_dup(handle_, &copy));
  return Communicator(copy, true, std::make_shared<Traffic>());
}

void Communicator::barrier() const {
  const InCollective here("barrier", "", size_);
  ESPALIER_MPI(MPI_Barrier(handle_));
}

template <class T>
void Communicator::all_reduce(std::span<T> values, Reduction reduction, std::string_view label) const {
  constexpr std::size_t kPiece = kMessageBytes / sizeof(T);
  const InCollective here("all-reduce", label, size_);
  for (std::size_t at = 0; at < values.size(); at += kPiece)
    ESPALIER_MPI(MPI_Allreduce(MPI_IN_PLACE, values.data() + at,
                               static_cast<int>(std::min(kPiece, values.size() - at)), mpi_type<T>(),
                               mpi_op(reduction), handle_));
  if (size_ > 1)
    traffic_->book(label, all_reduce_volume(static_cast<std::int64_t>(values.size_bytes()), size_));
}
template void Communicator::all_reduce(std::span<float>, Reduction, std::string_view) const;
template void Communicator::all_reduce(std::span<double>, Reduction, std::string_view) const;
template void Communicator::all_reduce(std::span<std::int32_t>, Reduction, std::string_view) const;
template void Communicator::all_reduce(std::span<std::int64_t>, Reduction, std::string_view) const;
template void Communicator::all_reduce(std::span<std::uint64_t>, Reduction, std::string_view) const;

void Communicator::broadcast_bytes(std::span<std::byte> bytes, int root, std::string_view label) const {
  const InCollective here("broadcast", label, size_);
  broadcast_pieces(bytes, root);
  const auto total = static_cast<std::int64_t>(bytes.size());
  if (size_ > 1) traffic_->book(label, broadcast_volume(total, size_, rank_ == root));
}

void Communicator::broadcast_pieces(std::span<std::byte> bytes, int root) const {
  for_each_piece(static_cast<std::int64_t>(bytes.size()), [&](std::int64_t offset, int count) {
    ESPALIER_MPI(MPI_Bcast(bytes.data() + offset, count, MPI_BYTE, root, handle_));
  });
}

std::string Communicator::broadcast_text(std::string text, int root, std::string_view label) const {
  auto length = static_cast<std::int64_t>(text.size());
  broadcast(std::span<std::int64_t>(&length, 1), root, label);
  text.resize(length);
  broadcast(std::span<char>(text), root, label);
  return text;
}

void Communicator::all_gather_bytes(const void* mine, void* all, std::size_t bytes,
                                    std::string_view label) const {
  const InCollective here("all-gather", label, size_);
  ESPALIER_MPI(MPI_Allgather(mine, static_cast<int>(bytes), MPI_BYTE, all, static_cast<int>(bytes), MPI_BYTE,
                             handle_));
  if (size_ > 1) traffic_->book(label, all_gather_volume(static_cast<std::int64_t>(bytes), size_));
}

void Communicator::all_gather_v_bytes(const void* mine, void* all, const std::vector<std::int64_t>& counts,
                                      std::size_t item, std::string_view label) const {
  const auto starts = begins_of(counts, item);
  auto* out = static_cast<std::byte*>(all);
  const auto me = static_cast<std::size_t>(rank_);
  std::copy_n(static_cast<const std::byte*>(mine), starts[me + 1] - starts[me], out + starts[me]);
  if (size_ == 1) return;
  const InCollective here("all-gather-v", label, size_);
  std::vector<std::int64_t> bytes(counts.size());
  for (int root = 0; root < size_; ++root) {
    bytes[root] = starts[root + 1] - starts[root];
    broadcast_pieces({out + starts[root], static_cast<std::size_t>(bytes[root])}, root);
  }
  traffic_->book(label, all_gather_v_volume(bytes, rank_));
}

std::vector<std::int64_t> Communicator::exchange_counts(std::span<const std::int64_t> send_counts,
                                                        std::string_view label) const {
  ESPALIER_CHECK(static_cast<int>(send_counts.size()) == size_, "{} counts for {} ranks", send_counts.size(),
                 size_);
  std::vector<std::int64_t> receive_counts(send_counts.size());
  const InCollective here("exchange of counts", label, size_);
  ESPALIER_MPI(
      MPI_Alltoall(send_counts.data(), 1, MPI_INT64_T, receive_counts.data(), 1, MPI_INT64_T, handle_));
  if (size_ > 1) traffic_->book(label, all_gather_volume(sizeof(std::int64_t), size_));
  return receive_counts;
}

// Receives are posted before sends, and both sides cut a large message at the same places. Each
// rank begins with its neighbour, so that not all send to rank 0 first.
template <class To, class From>
PendingExchange Communicator::begin_messages(const To& to, const From& from, int tag,
                                             std::string_view label) const {
  PendingExchange exchange(label, size_);
  auto& requests = exchange.requests_;
  for (int step = 1; step < size_; ++step) {
    const int peer = (rank_ + size_ - step) % size_;
    const std::span<std::byte> in = from(peer);
    for_each_piece(std::ssize(in), [&](std::int64_t offset, int count) {
      ESPALIER_MPI(
          MPI_Irecv(in.data() + offset, count, MPI_BYTE, peer, tag, handle_, &requests.emplace_back()));
    });
  }
  for (int step = 1; step < size_; ++step) {
    const int peer = (rank_ + step) % size_;
    const std::span<const std::byte> out = to(peer);
    for_each_piece(std::ssize(out), [&](std::int64_t offset, int count) {
      ESPALIER_MPI(
          MPI_Isend(out.data() + offset, count, MPI_BYTE, peer, tag, handle_, &requests.emplace_back()));
    });
  }
  if (!requests.empty()) ++under_way;
  return exchange;
}

PendingExchange Communicator::begin_all_to_all_v_bytes(const void* send,
                                                       std::span<const std::int64_t> send_counts,
                                                       void* received,
                                                       std::span<const std::int64_t> receive_counts,
                                                       std::size_t item, std::string_view label) const {
  ESPALIER_CHECK(
      static_cast<int>(send_counts.size()) == size_ && static_cast<int>(receive_counts.size()) == size_,
      "{} and {} counts for {} ranks", send_counts.size(), receive_counts.size(), size_);
  const auto from = begins_of(send_counts, item), to = begins_of(receive_counts, item);
  const auto part_of = [](auto* bytes, const std::vector<std::int64_t>& begins, int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return std::span(bytes + begins[r], static_cast<std::size_t>(begins[r + 1] - begins[r]));
  };
  const auto out = [&](int peer) { return part_of(static_cast<const std::byte*>(send), from, peer); };
  const auto in = [&](int peer) { return part_of(static_cast<std::byte*>(received), to, peer); };
  auto exchange = begin_messages(out, in, kExchangeTag, label);
  std::ranges::copy(out(rank_), in(rank_).begin());
  traffic_->book(label, all_to_all_volume(send_counts, receive_counts, item, rank_));
  return exchange;
}

// ---- an all-reduce that does not wait ----

template <class T>
void PendingAllReduce<T>::begin(const Communicator& comm, std::span<T> values, Reduction reduction,
                                int number, std::string_view label) {
  ESPALIER_CHECK(stage_ == Stage::kDone, "an all-reduce of {} numbers is under way", values_.size());
  comm_ = &comm;
  values_ = values;
  reduction_ = reduction;
  tag_ = kReduceTag + 2 * number;
  label_ = label;
  const auto mine = part(comm.rank());
  others_.resize(mine.size() * static_cast<std::size_t>(comm.size()));
  const auto of_mine = [&](int peer) {
    return std::as_writable_bytes(
        std::span(others_).subspan(static_cast<std::size_t>(peer) * mine.size(), mine.size()));
  };
  exchange_ = comm.begin_messages([&](int peer) { return std::as_bytes(part(peer)); }, of_mine, tag_, label);
  if (comm.size() > 1)
    comm.traffic().book(label,
                        all_reduce_volume(static_cast<std::int64_t>(values.size_bytes()), comm.size()));
  stage_ = Stage::kScatter;
}

template <class T>
std::span<T> PendingAllReduce<T>::part(int rank) const {
  const auto range = even_range(std::ssize(values_), comm_->size(), rank);
  return values_.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
}

// My part of all ranks, in their order; then to all.
template <class T>
void PendingAllReduce<T>::gather() {
  const auto mine = part(comm_->rank());
  const auto own = static_cast<std::size_t>(comm_->rank()) * mine.size();
  std::ranges::copy(mine, others_.begin() + static_cast<std::ptrdiff_t>(own));
  const auto ranks = static_cast<std::size_t>(comm_->size());
  for (std::size_t k = 0; k < mine.size(); ++k) {
    T whole = others_[k];
    for (std::size_t r = 1; r < ranks; ++r) {
      const T next = others_[r * mine.size() + k];
      whole = reduction_ == Reduction::kSum   ? static_cast<T>(whole + next)
              : reduction_ == Reduction::kMin ? std::min(whole, next)
                                              : std::max(whole, next);
    }
    mine[k] = whole;
  }
  exchange_ =
      comm_->begin_messages([&](int) { return std::as_bytes(mine); },
                            [&](int peer) { return std::as_writable_bytes(part(peer)); }, tag_ + 1, label_);
  stage_ = Stage::kGather;
}

template <class T>
bool PendingAllReduce<T>::advance(bool waits) {
  if (stage_ == Stage::kDone) return true;
  if (waits)
    exchange_.finish();
  else
    exchange_.progress();
  if (exchange_.under_way()) return false;
  if (stage_ == Stage::kScatter)
    gather();
  else
    stage_ = Stage::kDone;
  return stage_ == Stage::kDone;
}

template class PendingAllReduce<float>;
template class PendingAllReduce<std::int64_t>;
template class PendingAllReduce<std::uint64_t>;

void agree(const Communicator& comm, const std::function<void()>& work) {
  ExitCode code = ExitCode::kDone;
  std::string message;
  try {
    work();
  } catch (const UserError& error) {
    code = error.code();
    message = error.what();
  } catch (const std::exception& error) {
    // A library's exception: not the user's error, but everyone's end.
    code = ExitCode::kInternal;
    message = error.what();
  }
  const int failed = code == ExitCode::kDone ? comm.size() : comm.rank();
  const int first = comm.all_reduce(failed, Reduction::kMin, "agree");
  if (first == comm.size()) return;
  auto number = static_cast<std::int32_t>(code);
  comm.broadcast(std::span<std::int32_t>(&number, 1), first, "agree");
  throw UserError(static_cast<ExitCode>(number), comm.broadcast_text(message, first, "agree"));
}

// ---- the grid ----

namespace {
int checked_replication(int ranks, int replication) {
  if (replication < 1 || ranks % replication != 0)
    usage_error("grid.replication = {} does not divide the number of ranks, {}; choose a divisor of {}",
                replication, ranks, ranks);
  return replication;
}
}  // namespace

Grid::Grid(const Communicator& world, int replication)
    : replication_(checked_replication(world.size(), replication)),
      world_(world.split(0, world.rank())),
      row_comm_(world_.split(world_.rank() / replication_, world_.rank())),
      column_comm_(world_.split(world_.rank() % replication_, world_.rank())) {}

}  // namespace espalier
