// Laws: one process at a time holds a folder, whatever the system's locks on files can do there; a
// refusal names the holder; a dead holder holds nothing; of many newcomers one gets a lock that was
// left behind; the file is whole whenever it is there, and gone when its holder has ended well.
// Holders are processes, made by fork.
#include "espalier/base/output_lock.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

#include "base/files_in.hpp"
#include "espalier/base/error.hpp"
#include "forked_threads.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;

constexpr FileLocks kAll[] = {FileLocks::kEverywhere, FileLocks::kThisHost, FileLocks::kNowhere};
constexpr OutputLock::Patience kShort = {.beat_seconds = 0.05, .watch_seconds = 0.3, .leave_seconds = 0.1};

LockOwner someone(std::map<std::string, std::string> differences) {
  auto owner = this_process();
  for (auto& [name, value] : differences) owner[name] = value;
  return owner;
}

std::string text_of(const LockOwner& owner) {
  std::string text = "espalier-lock 1\n";
  for (const auto& [name, value] : owner) text += name + " " + value + "\n";
  return text;
}

// A process that does `work` and waits to be killed; made when `work` has been done. `got`: did it
// return true?
class Process {
 public:
  explicit Process(const std::function<bool(const std::function<void(bool)>&)>& work) {
    int ends[2] = {};
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      work([&](bool good) {
        const char answer = good ? 'y' : 'n';
        if (write(ends[1], &answer, 1) != 1) _exit(1);
        for (;;) pause();
      });
      _exit(0);
    }
    close(ends[1]);
    end_ = ends[0];
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  bool got() {
    char answer = '?';
    EXPECT_EQ(read(end_, &answer, 1), 1);
    return answer == 'y';
  }
  void kill_it() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }
  ~Process() {
    kill_it();
    close(end_);
  }

 private:
  pid_t pid_ = 0;
  int end_ = -1;
};

// A process that tries to hold the folder.
std::unique_ptr<Process> holder(const std::string& folder, FileLocks locks,
                                std::map<std::string, std::string> differences = {}) {
  return std::make_unique<Process>([=](const auto& answer) {
    try {
      const OutputLock lock(folder, locks, kShort, someone(differences));
      answer(true);
    } catch (const UserError&) {
      answer(false);
    }
    return true;
  });
}

std::string refusal(const std::string& folder, FileLocks locks, const LockOwner& self = this_process()) {
  return message_of(ExitCode::kUsage, [&] { const OutputLock lock(folder, locks, kShort, self); });
}

bool holds(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST(OutputLock, TheSecondIsRefusedAndToldOfTheFirst) {
  ESPALIER_SKIP_WITHOUT_FORKED_THREADS();
  const auto folder = test_folder("lock");
  for (const auto locks : kAll) {
    auto first = holder(folder, locks, {{"job", "4711"}, {"since", "2024-05-06 13:14:15 UTC"}});
    ASSERT_TRUE(first->got());
    const auto words = refusal(folder, locks);
    EXPECT_TRUE(holds(words, "process " + std::to_string(first->pid()))) << words;
    EXPECT_TRUE(holds(words, "on " + failure_context().host + ", SLURM job 4711, since 2024-05-06 13:14:15"))
        << words;
    EXPECT_TRUE(holds(words, folder)) << words;
    EXPECT_EQ(files_in(folder), 1);
    first->kill_it();
    EXPECT_EQ(refusal(folder, locks), "") << "it is dead";
    EXPECT_EQ(files_in(folder), 0);
  }
}

TEST(OutputLock, AHolderOnAnotherHostIsKnownByItsSignsOfLife) {
  ESPALIER_SKIP_WITHOUT_FORKED_THREADS();
  const auto folder = test_folder("lock_far");
  auto far = holder(folder, FileLocks::kNowhere, {{"host", "elsewhere"}, {"pid", "12"}});
  ASSERT_TRUE(far->got());
  for (const auto locks : {FileLocks::kThisHost, FileLocks::kNowhere}) {
    const auto words = refusal(folder, locks);
    EXPECT_TRUE(holds(words, "process 12 on elsewhere")) << words;
    EXPECT_TRUE(holds(words, "remove " + folder + "/espalier.lock")) << words;
  }
  far->kill_it();
  for (const auto locks : {FileLocks::kNowhere, FileLocks::kThisHost, FileLocks::kEverywhere}) {
    std::ofstream(folder + "/espalier.lock") << text_of(someone({{"host", "elsewhere"}}));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(refusal(folder, locks), "");
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(seconds.count() > kShort.watch_seconds, locks != FileLocks::kEverywhere) << seconds.count();
    EXPECT_EQ(files_in(folder), 0);
  }
}

TEST(OutputLock, AProcessIsKnownByItsTimeOfStartAsWell) {
  const auto folder = test_folder("lock_pid"), path = folder + "/espalier.lock";
  std::ofstream(path) << text_of(this_process());
  EXPECT_TRUE(holds(refusal(folder, FileLocks::kNowhere), "is in use"));
  std::ofstream(path) << text_of(someone({{"started", "1"}}));
  EXPECT_EQ(refusal(folder, FileLocks::kNowhere), "") << "another one has its number now";
  EXPECT_EQ(files_in(folder), 0);
}

TEST(OutputLock, AnotherOneOfTheSameProcessIsRefusedToo) {
  const auto folder = test_folder("lock_again");
  for (const auto locks : kAll) {
    {
      const OutputLock first(folder, locks, kShort);
      EXPECT_TRUE(holds(refusal(folder, locks), "process " + std::to_string(getpid())));
      EXPECT_TRUE(holds(refusal(folder, locks), "is in use")) << "looking at it dropped nothing";
    }
    EXPECT_EQ(refusal(folder, locks), "");
  }
}

TEST(OutputLock, ARequeuedJobDoesNotWaitForItself) {
  ESPALIER_SKIP_WITHOUT_FORKED_THREADS();
  const auto folder = test_folder("lock_requeued");
  for (const auto locks : kAll) {
    auto before = holder(folder, locks, {{"job", "4711"}, {"host", "elsewhere"}});
    ASSERT_TRUE(before->got());
    EXPECT_NE(refusal(folder, locks, someone({{"job", "4712"}, {"restarts", "1"}})), "") << "another job";
    EXPECT_NE(refusal(folder, locks, someone({{"job", "4711"}})), "") << "another step of the same job";
    EXPECT_EQ(refusal(folder, locks, someone({{"job", "4711"}, {"restarts", "1"}})), "");
    before->kill_it();
    EXPECT_EQ(files_in(folder), 0);
  }
}

TEST(OutputLock, OfManyNewcomersOneGetsWhatWasLeftBehind) {
  ESPALIER_SKIP_WITHOUT_FORKED_THREADS();
  const auto folder = test_folder("lock_race");
  for (const auto locks : kAll) {
    for (int round = 0; round < 2; ++round) {
      std::ofstream(folder + "/espalier.lock") << text_of(someone({{"started", "1"}}));
      std::vector<std::unique_ptr<Process>> newcomers;
      for (int k = 0; k < 6; ++k) newcomers.push_back(holder(folder, locks));
      int got = 0;
      for (auto& newcomer : newcomers) got += newcomer->got();
      EXPECT_EQ(got, 1) << static_cast<int>(locks);
      EXPECT_EQ(files_in(folder), 1);
    }
  }
}

TEST(OutputLock, ItsFileIsWholeWheneverItIsThere) {
  const auto folder = test_folder("lock_whole"), path = folder + "/espalier.lock";
  const Process busy([&](const auto&) {
    for (;;) refusal(folder, FileLocks::kEverywhere);
    return true;
  });
  int seen = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (seen < 200 && std::chrono::steady_clock::now() < end) {
    std::ifstream file(path);
    if (!file) continue;
    std::stringstream text;
    text << file.rdbuf();
    ++seen;
    ASSERT_EQ(std::ranges::count(text.str(), '\n'), std::ssize(this_process()) + 1) << text.str();
    ASSERT_TRUE(text.str().starts_with("espalier-lock 1\n") && text.str().ends_with("\n"));
  }
  EXPECT_EQ(seen, 200);
}

TEST(OutputLock, WhatIsNoLockStays) {
  const auto folder = test_folder("lock_foreign"), path = folder + "/espalier.lock";
  std::ofstream(path) << "a file of the user\n";
  EXPECT_TRUE(holds(refusal(folder, FileLocks::kEverywhere), path + " is in the way"));
  EXPECT_EQ(fs::file_size(path), 19);
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_TRUE(holds(refusal(folder, FileLocks::kEverywhere), path + " is in the way"));
  EXPECT_EQ(files_in(folder), 1);
  fs::remove(path);
  std::ofstream(path) << "";
  EXPECT_EQ(refusal(folder, FileLocks::kThisHost), "") << "an empty one is nobody's, after a while";
  EXPECT_EQ(files_in(folder), 0);
}

TEST(OutputLock, FoldersAreMadeAndGoWhenNothingIsInThem) {
  const auto folder = test_folder("lock_folder");
  EXPECT_EQ(refusal(folder + "/a/b", file_locks_of(folder + "/a/b")), "");
  EXPECT_EQ(files_in(folder), 0);
  {
    const OutputLock lock(folder + "/a/b");
    std::ofstream(folder + "/a/result") << "of the run";
  }
  EXPECT_TRUE(fs::exists(folder + "/a/result"));
  EXPECT_FALSE(fs::exists(folder + "/a/b"));
  EXPECT_TRUE(
      holds(refusal(folder + "/a/result/b", FileLocks::kEverywhere), "cannot make the folder output.dir"));
  EXPECT_TRUE(holds(refusal("/proc/self", FileLocks::kEverywhere), "cannot write to the folder output.dir"));
}

}  // namespace
}  // namespace espalier
