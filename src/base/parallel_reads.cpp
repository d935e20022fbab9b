#include "espalier/base/parallel_reads.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <vector>

#ifdef ESPALIER_WITH_LIBURING
#include <liburing.h>
#endif

#include "espalier/base/error.hpp"
#include "espalier/base/process.hpp"

namespace espalier {

// ---- a ring of the kernel ----

#ifdef ESPALIER_WITH_LIBURING

class ParallelReads::Ring {
 public:
  Ring() : refusal_(-io_uring_queue_init(kMostUnderWay, &ring_, 0)), owner_(getpid()) {
    if (refusal_ != 0 || can_read()) return;
    io_uring_queue_exit(&ring_);
    refusal_ = EOPNOTSUPP;
  }
  ~Ring() {
    if (refusal_ == 0) io_uring_queue_exit(&ring_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Why there is none, as errno; 0: there is.
  int refusal() const { return refusal_; }
  /// A child of fork shares its parent's ring, and must not use it.
  bool is_mine() const { return owner_ == getpid(); }

  /// Says it to the kernel with others, some at a time.
  void add(int file, Read& read) {
    constexpr int kTogether = 16;
    constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
    // There is room: fewer than its entries under way.
    auto* const entry = io_uring_get_sqe(&ring_);
    io_uring_prep_read(entry, file, read.to, static_cast<unsigned>(std::min(read.count, kMostBytes)),
                       static_cast<std::uint64_t>(read.at));
    io_uring_sqe_set_data(entry, &read);
    if (++unsaid_ >= kTogether) enter(0);
  }

  void wait_for(const Read& read) {
    take_results();
    while (!read.done) {
      enter(1);
      take_results();
    }
  }

 private:
  // Linux 5.1 to 5.5 have rings, but not this.
  bool can_read() {
    auto* const probe = io_uring_get_probe_ring(&ring_);
    const bool can = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
    if (probe != nullptr) io_uring_free_probe(probe);
    return can;
  }

  // What it could not take now, for a signal or want of memory, it is asked again.
  void enter(unsigned results) {
    const int taken = results == 0 ? io_uring_submit(&ring_) : io_uring_submit_and_wait(&ring_, results);
    const bool again = taken == -EINTR || taken == -EAGAIN || taken == -EBUSY;
    ESPALIER_CHECK(taken >= 0 || again, "io_uring: {}; ESPALIER_NO_IO_URING=1 does without",
                   std::strerror(-taken));
    unsaid_ = static_cast<int>(io_uring_sq_ready(&ring_));
  }

  void take_results() {
    io_uring_cqe* result = nullptr;
    unsigned head = 0, count = 0;
    io_uring_for_each_cqe(&ring_, head, result) {
      auto& read = *static_cast<Read*>(io_uring_cqe_get_data(result));
      read.got = result->res;
      read.done = true;
      ++count;
    }
    io_uring_cq_advance(&ring_, count);
  }

  io_uring ring_ = {};
  int refusal_, unsaid_ = 0;
  pid_t owner_;
};

#else

class ParallelReads::Ring {
 public:
  int refusal() const { return ENOSYS; }
  bool is_mine() const { return true; }
  void add(int /*file*/, Read& /*read*/) {}
  void wait_for(const Read& /*read*/) {}
};

#endif

// Rings that nobody uses just now: one is made in 0.2 ms.
class ParallelReads::Rings {
 public:
  /// Null, with the reason as errno, where there is none.
  std::unique_ptr<Ring> take(int& refusal) {
    const std::scoped_lock lock(mutex_);
    while (!free_.empty()) {
      auto ring = std::move(free_.back());
      free_.pop_back();
      if (ring->is_mine()) return ring;
    }
    auto ring = std::make_unique<Ring>();
    refusal = ring->refusal();
    return refusal == 0 ? std::move(ring) : nullptr;
  }
  void give_back(std::unique_ptr<Ring> ring) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(ring));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Ring>> free_;
};

ParallelReads::Rings& ParallelReads::rings() {
  static Rings all;
  return all;
}

// ---- reads ----

ParallelReads::ParallelReads(const RangedFile& file) : file_(file) {
  int refusal = 0;
  if (!is_set("ESPALIER_NO_IO_URING")) ring_ = rings().take(refusal);
}

ParallelReads::~ParallelReads() {
  if (!ring_) return;
  for (; finished_ < begun_; ++finished_) ring_->wait_for(reads_[finished_ % kMostUnderWay]);
  rings().give_back(std::move(ring_));
}

void ParallelReads::begin(std::int64_t at, void* to, std::int64_t count) {
  ESPALIER_CHECK(under_way() < kMostUnderWay, "{} reads under way", under_way());
  auto& read = reads_[begun_++ % kMostUnderWay];
  read = {at, count, to, 0, count <= 0};
  if (read.done) return;
  if (ring_)
    ring_->add(file_.descriptor(), read);
  else
    file_.expect(at, count);
}

std::int64_t ParallelReads::finish() {
  ESPALIER_CHECK(under_way() > 0, "no read under way");
  const auto& read = reads_[finished_ % kMostUnderWay];
  if (ring_) ring_->wait_for(read);
  ++finished_;
  const auto got = std::max<std::int64_t>(0, read.got);
  return got + file_.read(read.at + got, static_cast<char*>(read.to) + got, read.count - got);
}

std::string ParallelReads::in_words() {
  int refusal = 0;
  std::unique_ptr<Ring> ring;
  if (!is_set("ESPALIER_NO_IO_URING")) ring = rings().take(refusal);
  if (ring) {
    rings().give_back(std::move(ring));
    return fmt::format("by io_uring, up to {} at once", kMostUnderWay);
  }
#ifdef ESPALIER_WITH_LIBURING
  const std::string why = refusal == 0 ? "ESPALIER_NO_IO_URING is set"
                                       : fmt::format("io_uring is refused here ({})", std::strerror(refusal));
#else
  const std::string why = "this program was built without liburing (liburing-dev)";
#endif
  return fmt::format("one after another, the system told of {} ahead: {}", kMostUnderWay, why);
}

}  // namespace espalier
