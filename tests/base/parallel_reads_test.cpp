// Laws of reads that are under way together, by io_uring and without: what comes, and how much, is
// what pread gives, whatever the list, at the end of the file and beyond it, of a file that is cut
// meanwhile, with signals, in threads, and in a child while reads of its parent are under way; what
// cannot be read is the same error as one read alone gives; nothing is written to memory after
// the reads were given up. A kernel that refuses a ring is told of, and changes nothing.
#include "espalier/base/parallel_reads.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kFileBytes = (4 << 20) + 1234;
constexpr char kUnread = '\x5a';

struct Wanted {
  std::int64_t at, count;
};

/// A file of random bytes, and what they are.
class ParallelReadsOf : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const bool ring = GetParam();
    setenv("ESPALIER_NO_IO_URING", ring ? "0" : "1", 1);
    if (ring && !has_ring()) GTEST_SKIP() << "read " << ParallelReads::in_words();
    std::mt19937_64 words(7);
    bytes_.resize(kFileBytes);
    for (auto& byte : bytes_) byte = static_cast<char>(words());
    path_ = test_folder("parallel-reads") + "/file";
    auto file = RangedFile::create(path_);
    file.write(0, bytes_.data(), kFileBytes);
    file.sync();
    file_ = RangedFile::open(path_);
  }
  void TearDown() override { unsetenv("ESPALIER_NO_IO_URING"); }

  static bool has_ring() { return ParallelReads::in_words().starts_with("by io_uring"); }

  std::vector<Wanted> random_list(std::size_t count, std::uint64_t seed, std::int64_t longest) const {
    std::mt19937_64 random(test_seed(seed));
    std::vector<Wanted> list(count);
    for (auto& [at, bytes] : list) {
      at = static_cast<std::int64_t>(random() % (kFileBytes + 5000));
      bytes = random() % 9 == 0 ? 0 : static_cast<std::int64_t>(random() % longest);
      if (random() % 4 == 0) at = at / 4096 * 4096;
      if (random() % 4 == 0) bytes = 4096;
    }
    return list;
  }

  /// Reads them, so many under way at most; wrong ones of them, and where what was read ends.
  std::int64_t count_wrong(const std::vector<Wanted>& list,
                           std::int64_t most = ParallelReads::kMostUnderWay) const {
    std::vector<std::string> to(list.size());
    ParallelReads reads(file_);
    std::int64_t wrong = 0;
    for (std::size_t begun = 0, ended = 0; ended < list.size(); ++ended) {
      for (; begun < list.size() && reads.under_way() < most; ++begun) {
        to[begun].assign(static_cast<std::size_t>(list[begun].count) + 8, kUnread);
        reads.begin(list[begun].at, to[begun].data(), list[begun].count);
      }
      wrong += !is_right(list[ended], to[ended], reads.finish());
    }
    return wrong;
  }
  bool is_right(const Wanted& wanted, const std::string& to, std::int64_t got) const {
    const auto there = std::clamp<std::int64_t>(kFileBytes - wanted.at, 0, wanted.count);
    const auto end = static_cast<std::size_t>(there);
    return got == there && (there == 0 || to.compare(0, end, bytes_, wanted.at, end) == 0) &&
           to.find_first_not_of(kUnread, end) == std::string::npos;
  }

  std::string path_, bytes_;
  RangedFile file_;
};

TEST_P(ParallelReadsOf, RandomListsAreWhatTheFileHolds) {
  for (const std::int64_t most : {1, 2, 15, 17, 64}) {
    file_.forget();
    for (int again = 0; again < 2; ++again)  // from the disk, from memory
      EXPECT_EQ(count_wrong(random_list(700, 31 + most, 9000), most), 0) << most << " under way";
  }
  EXPECT_EQ(count_wrong(random_list(40, 32, 2 * kFileBytes)), 0) << "long ones";
  EXPECT_EQ(count_wrong(std::vector<Wanted>(3000, {4095, 2})), 0) << "the same";
  EXPECT_EQ(
      count_wrong({{kFileBytes, 1}, {kFileBytes - 1, 1}, {kFileBytes + 5, 9}, {0, 0}, {0, kFileBytes + 1}}),
      0);
  EXPECT_EQ(count_wrong({}), 0);
}

// Every file that cannot be read, beside one that can; a device that fails: /proc/self/mem has
// nothing at 0, and says EIO.
TEST_P(ParallelReadsOf, ErrorsAreThoseOfOneReadAlone) {
  auto closed = RangedFile::open(path_);
  const auto elsewhere = std::move(closed);
  const auto folder = RangedFile::open(test_folder("parallel-reads-folder")),
             failing = RangedFile::open("/proc/self/mem");
  char to[64];
  for (const auto& [file, words] :
       {std::pair(&folder, "cannot be read: Is a directory"),
        std::pair(&failing, "/proc/self/mem: cannot be read: Input/output error"),
        std::pair<const RangedFile*, const char*>(&closed, "Bad file descriptor")}) {
    const auto alone = message_of(ExitCode::kInput, [&] { file->read(0, to, 64); });
    ParallelReads reads(*file);
    for (int k = 0; k < 20; ++k) reads.begin(0, to, 64);
    for (int k = 0; k < 19; ++k) EXPECT_EQ(message_of(ExitCode::kInput, [&] { reads.finish(); }), alone);
    EXPECT_EQ(reads.under_way(), 1);
    expect_words(alone, {words});
  }
  EXPECT_NE(message_of(ExitCode::kInput,
                       [&] {
                         ParallelReads reads(file_);
                         reads.begin(0, reinterpret_cast<void*>(4096), 64);
                         reads.finish();
                       }),
            "");
  EXPECT_EQ(count_wrong(random_list(100, 33, 9000)), 0) << "after errors";
}

TEST_P(ParallelReadsOf, AFileThatIsCutMeanwhileEndsThere) {
  constexpr std::int64_t kLeft = 100000, kLength = 30000;
  file_.forget();
  std::vector<std::string> to(ParallelReads::kMostUnderWay, std::string(kLength, kUnread));
  ParallelReads reads(file_);
  const auto at = [](std::size_t k) { return static_cast<std::int64_t>(k) * 60000; };
  for (std::size_t k = 0; k < to.size(); ++k) reads.begin(at(k), to[k].data(), kLength);
  ASSERT_EQ(truncate(path_.c_str(), kLeft), 0);
  for (std::size_t k = 0; k < to.size(); ++k) {
    const auto got = reads.finish();
    EXPECT_GE(got, std::clamp<std::int64_t>(kLeft - at(k), 0, kLength));
    EXPECT_LE(got, kLength);
  }
  reads.begin(kLeft - 10, to[0].data(), kLength);
  EXPECT_EQ(reads.finish(), 10);
}

// A ring has read them all by then; without one, none was begun.
TEST_P(ParallelReadsOf, NothingIsWrittenAfterReadsWereGivenUp) {
  for (const std::int64_t count : {1, 15, 16, 40, 64}) {
    file_.forget();
    std::string to(static_cast<std::size_t>(count) * 60000, kUnread);
    {
      ParallelReads reads(file_);
      for (std::int64_t k = 0; k < count; ++k) reads.begin(60000 * k, to.data() + 60000 * k, 60000);
      if (count == 40)
        for (int k = 0; k < 7; ++k) reads.finish();
    }
    const auto there = static_cast<std::size_t>(GetParam() ? count : (count == 40 ? 7 : 0)) * 60000;
    EXPECT_EQ(to.compare(0, there, bytes_, 0, there), 0) << count;
    EXPECT_EQ(to.find_first_not_of(kUnread, there), std::string::npos) << count;
    EXPECT_EQ(count_wrong({{77, 5000}, {0, 12}}), 0) << "the next, of the same ring";
  }
}

TEST_P(ParallelReadsOf, ThreadsEachHaveTheirOwn) {
  file_.forget();
  std::atomic<std::int64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t again = 0; again < 4; ++again)
        wrong += count_wrong(random_list(300, 40 + 10 * t + again, 9000));
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// With and without SA_RESTART: a wait for a ring is interrupted by either.
TEST_P(ParallelReadsOf, SignalsInterruptNothing) {
  static std::atomic<int> noted;
  noted = 0;
  struct sigaction before = {}, action = {};
  action.sa_handler = [](int) { ++noted; };
  for (const int flags : {0, SA_RESTART}) {
    action.sa_flags = flags;
    sigaction(SIGALRM, &action, &before);
    const itimerval often = {{0, 100}, {0, 100}}, never = {};
    setitimer(ITIMER_REAL, &often, nullptr);
    const auto noted_before = noted.load();
    for (int again = 0; again < 100 && (again < 3 || noted < noted_before + 20); ++again) {
      file_.forget();
      EXPECT_EQ(count_wrong(random_list(700, 60, 9000)), 0);
    }
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before, nullptr);
    EXPECT_GT(noted, noted_before);
  }
}

/// What `work` returns in a child, and what it had to say if that is not 0.
int code_in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    int code = 99;
    try {
      code = work();
    } catch (const std::exception&) {
    }
    _exit(code);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

TEST_P(ParallelReadsOf, AChildReadsForItself) {
  file_.forget();
  const auto list = random_list(ParallelReads::kMostUnderWay, 71, 9000);
  std::vector<std::string> to;
  for (const auto& wanted : list) to.emplace_back(static_cast<std::size_t>(wanted.count) + 8, kUnread);
  EXPECT_EQ(count_wrong(list, 3), 0) << "whose ring the child inherits";
  ParallelReads reads(file_);
  for (std::size_t k = 0; k < 20; ++k) reads.begin(list[k].at, to[k].data(), list[k].count);
  EXPECT_EQ(code_in_child([&] { return static_cast<int>(count_wrong(random_list(300, 72, 9000))); }), 0);
  for (std::size_t k = 20; k < list.size(); ++k) reads.begin(list[k].at, to[k].data(), list[k].count);
  for (std::size_t k = 0; k < list.size(); ++k) EXPECT_TRUE(is_right(list[k], to[k], reads.finish())) << k;
}

INSTANTIATE_TEST_SUITE_P(, ParallelReadsOf, testing::Bool(),
                         [](const auto& of) { return of.param ? "ByARing" : "WithoutOne"; });

// ---- refused ------------------------------------------------------------------------------------

class RefusedRings : public ParallelReadsOf {
 protected:
  /// In a child, which asks for a ring of its own: is it refused for this reason, and read all
  /// the same?
  void expect_refused_in_child(const std::function<bool()>& forbid, const std::string& reason) {
    const auto code = code_in_child([&] {
      if (!forbid()) return 50;
      const auto words = ParallelReads::in_words();
      if (words.find(reason) == std::string::npos || !words.starts_with("one after another")) return 51;
      return count_wrong(random_list(300, 80, 9000)) == 0 ? 0 : 52;
    });
    if (code == 50) GTEST_SKIP() << "it cannot be forbidden here";
    EXPECT_EQ(code, 0) << reason;
  }
};

bool forbid_rings() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {static_cast<unsigned short>(std::size(rules)), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// As containers do.
TEST_P(RefusedRings, ByAFilterOfSystemCalls) {
  expect_refused_in_child(forbid_rings, "io_uring is refused here (Operation not permitted)");
}

TEST_P(RefusedRings, WhereNoFileCanBeOpened) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "sanitizers look at objects through a pipe of their own";
#endif
  expect_refused_in_child(
      [] {
        const rlimit none = {3, 3};  // those that are open stay so
        return setrlimit(RLIMIT_NOFILE, &none) == 0;
      },
      "io_uring is refused here (Too many open files)");
}

TEST_P(RefusedRings, ByTheEnvironment) {
  setenv("ESPALIER_NO_IO_URING", "1", 1);
  EXPECT_EQ(ParallelReads::in_words(),
            "one after another, the system told of 64 ahead: ESPALIER_NO_IO_URING is set");
  EXPECT_EQ(count_wrong(random_list(300, 81, 9000)), 0);
}

INSTANTIATE_TEST_SUITE_P(, RefusedRings, testing::Values(true),
                         [](const auto&) { return "OfAKernelThatHasThem"; });

}  // namespace
}  // namespace espalier
