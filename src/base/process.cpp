// What /proc says of processes; then work in a process of its own.
#include "espalier/base/process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <string>

namespace espalier {

std::int64_t process_memory(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == std::string(field) + ":") {
      std::int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024;
    }
  return 0;
}

std::int64_t program_memory() {
  static const std::int64_t bytes = process_memory("VmRSS");
  return bytes;
}

// A field of /proc/PID/stat from the third on; the name, the second, stands in brackets and may
// hold anything.
static std::uint64_t field_of_process(std::int64_t pid, int wanted) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_ends = line.rfind(')');
  if (name_ends == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_ends + 1));
  std::string skipped;
  for (int field = 3; field < wanted; ++field) fields >> skipped;
  std::uint64_t value = 0;
  fields >> value;
  return value;
}

std::uint64_t process_start(std::int64_t pid) {
  return field_of_process(pid, 22);
}

std::int64_t parent_of_process(std::int64_t pid) {
  return static_cast<std::int64_t>(field_of_process(pid, 4));
}

std::string program_of_library() {
  Dl_info here = {};
  if (dladdr(reinterpret_cast<const void*>(&program_of_library), &here) == 0 || here.dli_fname == nullptr)
    return {};
  std::error_code error;
  const auto folder = std::filesystem::canonical(here.dli_fname, error).parent_path();
  for (const auto& path : {folder / "espalier", folder.parent_path() / "bin" / "espalier"})
    if (std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0) return path;
  return {};
}

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && std::strcmp(text, "0") != 0 && std::strcmp(text, "") != 0;
}

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
