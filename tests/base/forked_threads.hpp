// Whether a child made by fork, of a process with several threads, can begin threads of its
// own. It can on Linux; under qemu-user (seen in 7.2) the emulator ends the child, and under
// AddressSanitizer it waits for ever, now and then: for a lock that another thread of its
// parent held.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace espalier {

inline bool forked_children_can_begin_threads() {
#ifdef __SANITIZE_ADDRESS__
  return false;
#endif
  std::atomic<bool> over = false;
  std::thread other([&] { over.wait(false); });
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    std::thread([] {}).join();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  over = true;
  over.notify_all();
  other.join();
  return status == 0;
}

}  // namespace espalier

#define ESPALIER_SKIP_WITHOUT_FORKED_THREADS()          \
  if (!::espalier::forked_children_can_begin_threads()) \
  GTEST_SKIP() << "a child of fork cannot begin a thread here"
