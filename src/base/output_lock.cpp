#include "espalier/base/output_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/process.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

constexpr const char* kName = "espalier.lock";
constexpr const char* kTitle = "espalier-lock 1";

// ---- who this is ----

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The time of start of a process, as text. Empty: there is no such process.
std::string start_of(const std::string& pid) {
  const auto start = process_start(std::atoll(pid.c_str()));
  return start == 0 ? std::string() : std::to_string(start);
}

// Ids of processes count within one of these.
std::string process_namespace() {
  std::error_code error;
  return fs::read_symlink("/proc/self/ns/pid", error).string();
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : excerpt(value, 100);
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

// ---- the text of the file ----

std::string to_text(const LockOwner& owner) {
  std::string text = std::string(kTitle) + "\n";
  for (const auto& [name, value] : owner) text += name + " " + value + "\n";
  return text;
}

LockOwner owner_from(const std::string& text) {
  LockOwner owner;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the title
  while (std::getline(lines, line)) {
    const auto blank = std::min(line.find(' '), line.size());
    owner[line.substr(0, blank)] = line.substr(std::min(blank + 1, line.size()));
  }
  return owner;
}

std::string field(const LockOwner& owner, const char* name) {
  const auto found = owner.find(name);
  return found == owner.end() ? std::string() : found->second;
}

bool same(const LockOwner& a, const LockOwner& b, std::initializer_list<const char*> names) {
  return std::ranges::all_of(names, [&](const char* name) { return field(a, name) == field(b, name); });
}

// "process 1234 on node17, SLURM job 4711, since 2024-05-06 13:14:15 UTC".
std::string in_words(const LockOwner& owner) {
  if (field(owner, "pid").empty()) return "a process that did not say who it is";
  std::string words = fmt::format("process {} on {}", field(owner, "pid"), field(owner, "host"));
  if (!field(owner, "job").empty()) words += ", SLURM job " + field(owner, "job");
  return words + ", since " + field(owner, "since");
}

// The same SLURM job before it was put back into the queue: SLURM has ended it.
bool is_an_earlier_start(const LockOwner& other, const LockOwner& self) {
  if (field(self, "job").empty() || !same(other, self, {"job"})) return false;
  return std::atoll(field(other, "restarts").c_str()) < std::atoll(field(self, "restarts").c_str());
}

bool process_lives(const LockOwner& owner) {
  const auto start = start_of(field(owner, "pid"));
  return !start.empty() && start == field(owner, "started");
}

// ---- files ----

void pause(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

bool same_time(const struct stat& a, const struct stat& b) {
  return a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// Asks for the whole file, without waiting: 0, or why not. The lock is of the open file, not of the
// process: another one of this process is refused, too, and may be closed.
int lock_file(int file) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file, F_OFD_SETLK, &whole) == 0) return 0;
  if (errno != EBADF) return errno;
  // Open for reading only, as another user's: then ask who has it.
  if (fcntl(file, F_OFD_GETLK, &whole) != 0) return errno;
  return whole.l_type == F_UNLCK ? 0 : EAGAIN;
}

bool is_held(int problem) {
  return problem == EAGAIN || problem == EACCES;
}

bool write_text(int file, const std::string& text) {
  errno = ENOSPC;  // of a write that takes a part
  return write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(file) == 0;
}

}  // namespace

FileLocks file_locks_of(const std::string& folder) {
  // ext2-4, XFS, Btrfs, tmpfs, overlayfs, F2FS, ZFS, ramfs
  constexpr std::array<unsigned long, 8> kLocal = {0xEF53,     0x58465342, 0x9123683E, 0x01021994,
                                                   0x794C7630, 0xF2F52010, 0x2FC12FC1, 0x858458F6};
  fs::path path = fs::path(folder).lexically_normal();
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path() && path.parent_path() != path)
    path = path.parent_path();
  if (path.empty()) path = ".";
  struct statfs about = {};
  if (statfs(path.c_str(), &about) != 0) return FileLocks::kThisHost;
  const auto kind = static_cast<unsigned long>(about.f_type) & 0xFFFFFFFF;
  return std::ranges::count(kLocal, kind) > 0 ? FileLocks::kEverywhere : FileLocks::kThisHost;
}

LockOwner this_process() {
  const auto pid = std::to_string(getpid());
  return {{"host", excerpt(failure_context().host, 300)},
          {"pid", pid},
          {"started", start_of(pid)},
          {"boot", first_line("/proc/sys/kernel/random/boot_id")},
          {"processes", process_namespace()},
          {"job", environment("SLURM_JOB_ID")},
          {"restarts", environment("SLURM_RESTART_COUNT")},
          {"since", time_now()}};
}

// The file that stands in the way, held open: while it is, its number is given to no other file.
struct OutputLock::Rival {
  explicit Rival(const std::string& path) {
    file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) problem = errno;
    if (file < 0) return;
    fstat(file, &about);
    std::array<char, 4096> begin = {};
    const auto got = pread(file, begin.data(), begin.size(), 0);
    const std::string text(begin.data(), static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    // An empty one is of a disk that was full, or of a machine that lost its power.
    is_lock = S_ISREG(about.st_mode) && (text.empty() || text.starts_with(kTitle));
    owner = owner_from(text);
  }
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;
  ~Rival() {
    if (file >= 0) close(file);
  }

  bool there() const { return problem != ENOENT; }

  int file = -1, problem = 0;
  bool is_lock = false;
  struct stat about = {};
  LockOwner owner;
};

OutputLock::OutputLock(std::string folder, FileLocks locks, Patience patience, LockOwner self,
                       std::string option)
    : folder_(std::move(folder)),
      option_(std::move(option)),
      path_(folder_ + "/" + kName),
      locks_(locks),
      patience_(patience),
      self_(std::move(self)) {
  make_folder();
  try {
    while (!try_to_take()) continue;
  } catch (const UserError&) {
    if (file_ >= 0) close(file_);
    unlink(candidate_.c_str());
    remove_empty_folders();
    throw;
  }
  thread_ = std::thread([this] { give_signs_of_life(); });
}

// False: things have changed meanwhile.
bool OutputLock::try_to_take() {
  if (file_ < 0) write_candidate();
  if (link_candidate()) return true;
  const Rival rival(path_);
  if (!rival.there()) return false;
  if (rival.problem != 0) usage_error("cannot read {}: {}", path_, std::strerror(rival.problem));
  if (!rival.is_lock)
    usage_error("{} is in the way: this program writes a file of that name; move it, or name another {}",
                path_, option_);
  const auto verdict = judge(rival);
  if (verdict == Verdict::kAlive) refuse(rival);
  return verdict == Verdict::kDead && take_over(rival);
}

void OutputLock::make_folder() {
  std::error_code error;
  for (fs::path path = folder_; !path.empty() && !fs::exists(path, error); path = path.parent_path())
    made_.insert(made_.begin(), path.string());
  error.clear();
  fs::create_directories(folder_, error);
  if (error) usage_error("cannot make the folder {}: {}", named(), error.message());
}

// The text under a name of its own.
void OutputLock::write_candidate() {
  candidate_ =
      fmt::format("{}.{}-{}", path_, getpid(), std::chrono::steady_clock::now().time_since_epoch().count());
  file_ = open(candidate_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0 || !write_text(file_, to_text(self_)))
    usage_error("cannot write to the folder {}: {}", named(), std::strerror(errno));
  if (locks_ == FileLocks::kNowhere) return;
  if (lock_file(file_) != 0) locks_ = FileLocks::kNowhere;
}

// The candidate under the name of the lock, unless there is one. Over NFS the answer may be lost:
// the count of names tells.
bool OutputLock::link_candidate() {
  const bool linked = link(candidate_.c_str(), path_.c_str()) == 0;
  const int problem = errno;
  struct stat about = {};
  if (linked || (fstat(file_, &about) == 0 && about.st_nlink == 2)) {
    unlink(candidate_.c_str());
    return true;
  }
  if (problem == EEXIST) return false;
  // No links on this file system: an empty file keeps others out until the text replaces it.
  const int empty = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (empty < 0 && errno == EEXIST) return false;
  if (empty >= 0) close(empty);
  if (empty >= 0 && rename(candidate_.c_str(), path_.c_str()) == 0) return true;
  usage_error("cannot write to the folder {}: {}", named(), std::strerror(errno));
}

OutputLock::Verdict OutputLock::judge(const Rival& rival) const {
  if (is_an_earlier_start(rival.owner, self_)) return Verdict::kDead;
  if (locks_ != FileLocks::kNowhere) {
    const auto verdict = by_file_lock(rival);
    if (verdict != Verdict::kDead || locks_ == FileLocks::kEverywhere) return verdict;
  }
  const bool known = !field(rival.owner, "pid").empty();
  if (known && same(rival.owner, self_, {"host", "boot", "processes"}))
    return process_lives(rival.owner) ? Verdict::kAlive : Verdict::kDead;
  return by_time_of_file(rival);
}

// A holder that is just leaving, or another newcomer that takes over, is given a moment.
OutputLock::Verdict OutputLock::by_file_lock(const Rival& rival) const {
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (!is_held(lock_file(rival.file))) return Verdict::kDead;
    pause(patience_.leave_seconds / kAttempts);
    struct stat now = {};
    if (stat(path_.c_str(), &now) != 0 || !same_file(now, rival.about)) return Verdict::kGone;
  }
  return Verdict::kAlive;
}

OutputLock::Verdict OutputLock::by_time_of_file(const Rival& rival) const {
  log::info("{} is in use by {}; waiting {:.3g} s for a sign of its life", named(), in_words(rival.owner),
            patience_.watch_seconds);
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::duration<double>(patience_.watch_seconds)) {
    pause(patience_.beat_seconds / 4);
    const Rival now(path_);  // opened anew: a client of NFS then asks the server
    if (!now.there() || !same_file(now.about, rival.about)) return Verdict::kGone;
    if (!same_time(now.about, rival.about)) return Verdict::kAlive;
  }
  return Verdict::kDead;
}

// False when another newcomer was first. Where no lock of the system on the rival's file keeps
// others out, who comes last through the rename has it, and the others see that after a moment.
bool OutputLock::take_over(const Rival& rival) {
  if (!is_at_path(rival)) return false;
  if (rename(candidate_.c_str(), path_.c_str()) != 0)
    usage_error("cannot replace {}: {}", path_, std::strerror(errno));
  pause(locks_ == FileLocks::kEverywhere ? 0.05 : patience_.beat_seconds / 2);
  if (is_ours()) {
    log::info("{} was left behind by {}, which has ended", path_, in_words(rival.owner));
    return true;
  }
  close(file_);
  file_ = -1;
  return false;
}

// Opening the file makes a client of NFS ask the server.
bool OutputLock::is_at_path(const Rival& rival) const {
  if (locks_ != FileLocks::kEverywhere) {
    const Rival now(path_);
    return now.there() && same_file(now.about, rival.about);
  }
  struct stat now = {};
  return stat(path_.c_str(), &now) == 0 && same_file(now, rival.about);
}

bool OutputLock::is_ours() const {
  struct stat there = {}, ours = {};
  return stat(path_.c_str(), &there) == 0 && fstat(file_, &ours) == 0 && same_file(there, ours);
}

// "output.dir = out", "--write out".
std::string OutputLock::named() const {
  return option_ + (option_.starts_with("--") ? " " : " = ") + folder_;
}

void OutputLock::refuse(const Rival& rival) const {
  usage_error(
      "{} is in use by another job: {}; wait for its end, or name another {}{}", named(),
      in_words(rival.owner), option_,
      locks_ == FileLocks::kEverywhere ? "" : fmt::format(" (if it is dead for certain: remove {})", path_));
}

void OutputLock::give_signs_of_life() {
  bool ours = true;
  const auto look = [&] {
    if (ours && !is_ours())
      log::warning("{} was removed or replaced: another job may have written to that folder beside this one",
                   path_);
    ours = ours && is_ours();
  };
  std::unique_lock lock(mutex_);
  while (!ending_) {
    futimens(file_, nullptr);
    look();
    changed_.wait_for(lock, std::chrono::duration<double>(patience_.beat_seconds), [&] { return ending_; });
  }
  look();
}

OutputLock::~OutputLock() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (is_ours()) unlink(path_.c_str());
  close(file_);
  remove_empty_folders();
}

void OutputLock::remove_empty_folders() const {
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
    if (rmdir(folder->c_str()) != 0) break;
}

}  // namespace espalier
