#include "espalier/base/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>

namespace espalier {

namespace {

// Signals of this process have no meaning there: a handler would remove its files. Who ends this
// process ends that one.
void leave_parents_things(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it has gone already
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP}) std::signal(number, SIG_IGN);
  for (const int number : {SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ, SIGABRT, SIGSEGV, SIGBUS, SIGFPE})
    std::signal(number, SIG_DFL);
  const int nowhere = open("/dev/null", O_WRONLY);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
}

int code_of(const std::function<int()>& work) {
  try {
    return work();
  } catch (...) {
    return 1;
  }
}

// Nothing: somebody else has asked, or nobody is told.
std::optional<Ending> ending_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return {};
  return WIFEXITED(status) ? Ending{WEXITSTATUS(status), 0} : Ending{0, WTERMSIG(status)};
}

}  // namespace

Ending run_in_child_process(const std::function<int()>& work) {
  const auto parent = getpid();
  const auto child = fork();
  if (child < 0) throw std::bad_alloc();
  if (child == 0) {
    leave_parents_things(parent);
    _exit(code_of(work));
  }
  return ending_of(child).value_or(Ending{1, 0});
}

std::optional<Ending> run_program(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&streams, stream, "/dev/null", O_RDWR, 0);
  pid_t child = 0;
  const int error = posix_spawn(&child, path.c_str(), &streams, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&streams);
  if (error != 0) return {};
  return ending_of(child);
}

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
  data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) throw std::bad_alloc();
}

SharedMemory::~SharedMemory() {
  munmap(data_, bytes_);
}

}  // namespace espalier
