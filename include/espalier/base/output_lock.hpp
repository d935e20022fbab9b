// One job at a time writes to a folder (docs/decisions/012).
//
// The lock is the file `espalier.lock` in the folder. It says who holds it, and is whole from its
// first moment: it is written under another name and then linked. Who holds it is alive while one
// of these holds, the first that can be known:
//
//     a lock of the system (fcntl) on the open file, which dies with its process
//     on the same host and boot: its process, by id and time of start
//     on another host: the file's time, which the holder moves on every two seconds
//
// A file whose holder is dead is taken over, by a rename.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace espalier {

/// How far the system's locks on files reach: to every process that sees the file, to those of this
/// host at least, or nowhere (a file system without).
enum class FileLocks { kEverywhere, kThisHost, kNowhere };

/// By the file system of `folder`: those of one host reach everywhere; of network ones it is not
/// certain (NFS with nolock, Lustre with localflock).
FileLocks file_locks_of(const std::string& folder);

/// The fields of a lock's file: host, pid, started, boot, processes, job, restarts, since.
using LockOwner = std::map<std::string, std::string>;

/// This process as an owner.
LockOwner this_process();

class OutputLock {
 public:
  /// What tests change.
  struct Patience {
    double beat_seconds = 2;     ///< between two signs of life
    double watch_seconds = 10;   ///< for how long a holder on another host is watched
    double leave_seconds = 0.5;  ///< for how long a holder of the system's lock may be leaving
  };

  /// Makes `folder` where it is not there and takes its lock. Throws UserError(kUsage) when
  /// another job holds it, named by host, process, SLURM job and since when, or when the folder
  /// cannot be written to. Waits watch_seconds where only that tells a dead holder from a living
  /// one, saying so.
  /// `option`: what names the folder, for messages: a key, or an option of the command line.
  explicit OutputLock(std::string folder, std::string option = "output.dir")
      : OutputLock(folder, file_locks_of(folder), Patience{}, this_process(), std::move(option)) {}
  OutputLock(std::string folder, FileLocks locks, Patience patience, LockOwner self = this_process(),
             std::string option = "output.dir");
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

  /// Removes the file, and the folders that were made for it where they are empty.
  ~OutputLock();

 private:
  enum class Verdict { kAlive, kDead, kGone };
  struct Rival;

  void make_folder();
  void remove_empty_folders() const;
  bool try_to_take();
  void write_candidate();
  bool link_candidate();
  bool take_over(const Rival& rival);
  bool is_at_path(const Rival& rival) const;
  Verdict judge(const Rival& rival) const;
  Verdict by_file_lock(const Rival& rival) const;
  Verdict by_time_of_file(const Rival& rival) const;
  bool is_ours() const;
  void give_signs_of_life();
  [[noreturn]] void refuse(const Rival& rival) const;
  std::string named() const;

  std::string folder_, option_, path_, candidate_;
  FileLocks locks_;
  Patience patience_;
  LockOwner self_;
  std::vector<std::string> made_;  ///< folders that were not there, outermost first
  int file_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace espalier
