// Chunks of 4 KiB here and there in a file, as minibatches read rows from a disk, in four ways: one
// after another by pread; by kThreads threads; by reads under way together (ParallelReads), with
// io_uring and without it. TMPDIR says on which disk.
//
// Derivation: from the disk (the system forgets the file before), a disk gives most where it is
// asked for many chunks at once; the bound is what kThreads threads get that each ask for a chunk.
// From the system's memory a read is a copy and a system call; the bound is the copy alone.
//
// Verification: every byte that each way reads is that of the file.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "espalier/base/parallel_reads.hpp"
#include "rates.hpp"

namespace espalier::bench {
namespace {

// Of the file; one of 8 is read.
constexpr std::int64_t kChunk = 4096, kChunks = 1 << 16, kApart = 8;
constexpr int kThreads = 32;

class Reads {
 public:
  explicit Reads(const std::string& folder) : file_(RangedFile::unnamed(folder)), all_(kChunk * kChunks) {
    for (std::size_t k = 0; k < all_.size(); k += sizeof(std::uint64_t)) {
      const auto word = static_cast<std::uint64_t>(k) * 0x9e3779b97f4a7c15u;
      std::memcpy(all_.data() + k, &word, sizeof word);
    }
    file_.write(0, all_.data(), std::ssize(all_));
    file_.sync();
    choose(0);
    to_.resize(wanted_.size() * kChunk);
  }

  double gigabytes() const { return 1e-9 * static_cast<double>(to_.size()); }

  // Other chunks each time: a disk may have memory of its own.
  void choose(std::uint64_t time) {
    wanted_.clear();
    for (std::int64_t k = 0; k < kChunks; k += kApart)
      wanted_.push_back(k +
                        static_cast<std::int64_t>(mulhi(mix(static_cast<std::uint64_t>(k) + time), kApart)));
  }
  void prepare(bool cold) {
    choose(++times_);
    file_.forget();
    if (!cold) one_after_another();
  }

  void one_after_another() {
    for (std::int64_t k = 0; k < std::ssize(wanted_); ++k) file_.read(at(k), to(k), kChunk);
  }
  void by_threads() {
    std::atomic<std::int64_t> next = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (auto k = next++; k < std::ssize(wanted_); k = next++) file_.read(at(k), to(k), kChunk);
      });
    for (auto& thread : threads) thread.join();
  }
  void together(bool by_ring) {
    setenv("ESPALIER_NO_IO_URING", by_ring ? "0" : "1", 1);
    ParallelReads reads(file_);
    for (std::int64_t begun = 0, ended = 0; ended < std::ssize(wanted_); ++ended) {
      for (; begun < std::ssize(wanted_) && reads.under_way() < ParallelReads::kMostUnderWay; ++begun)
        reads.begin(at(begun), to(begun), kChunk);
      reads.finish();
    }
  }
  void copy() {
    for (std::int64_t k = 0; k < std::ssize(wanted_); ++k) std::memcpy(to(k), all_.data() + at(k), kChunk);
  }

  std::int64_t count_wrong() const {
    std::int64_t wrong = 0;
    for (std::size_t k = 0; k < to_.size(); ++k)
      wrong += to_[k] != all_[static_cast<std::size_t>(wanted_[k / kChunk]) * kChunk + k % kChunk];
    return wrong;
  }
  void clear() { std::ranges::fill(to_, std::byte{0x77}); }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 32)) * 0xbf58476d1ce4e5b9u;
    return (x ^ (x >> 29)) * 0x94d049bb133111ebu;
  }
  std::int64_t at(std::int64_t k) const { return wanted_[static_cast<std::size_t>(k)] * kChunk; }
  std::byte* to(std::int64_t k) { return to_.data() + k * kChunk; }

  RangedFile file_;
  Buffer<std::byte> all_, to_;
  std::vector<std::int64_t> wanted_;
  std::uint64_t times_ = 0;
};

using Way = std::function<void(Reads&)>;

Comparison compared(const std::shared_ptr<Reads>& reads, const std::string& name, bool cold, const Way& way) {
  const auto seconds = [=](const Way& work) {
    reads->prepare(cold);
    return seconds_of([&] { work(*reads); });
  };
  const double gigabytes = reads->gigabytes();
  reads->clear();
  seconds(way);
  const auto wrong = reads->count_wrong();
  const Way bound = [=](Reads& of) { cold ? of.by_threads() : of.copy(); };
  return {(cold ? "disk    " : "memory  ") + name, gigabytes, [=] { return seconds(way); },
          [=] { return gigabytes / seconds(bound); }, wrong};
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto reads = std::make_shared<Reads>(std::filesystem::temp_directory_path().string());
  const auto words = ParallelReads::in_words();
  std::vector<Comparison> comparisons;
  for (const bool cold : {true, false})
    for (const auto& [name, way] : std::vector<std::pair<std::string, Way>>{
             {"one after another", [](Reads& of) { of.one_after_another(); }},
             {fmt::format("{} threads", kThreads), [](Reads& of) { of.by_threads(); }},
             {"by io_uring", [](Reads& of) { of.together(true); }},
             {"without, told ahead", [](Reads& of) { of.together(false); }}})
      comparisons.push_back(compared(reads, name, cold, way));
  return compare(
      argc, argv,
      fmt::format("Chunks of 4 KiB here and there, read {}; bound: {} threads, or a copy", words, kThreads),
      "GB/s", comparisons);
}
