// The checkpoints of a run in its output folder:
//
//     checkpoints/epoch-0003-step-000040.h5    40 steps of epoch 3 were done
//     checkpoints/latest                       a symbolic link to the newest
//
// A checkpoint appears under its name when all its bytes are on the disk, never before; the last
// two are kept. All ranks write it, so all see the folder; the rest is rank 0's.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/train/training_state.hpp"

namespace espalier {

class CheckpointFolder {
 public:
  /// `path`: the folder; made when something is saved.
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  /// Collective. Has `write` make a file of the path that it is given (on every rank, collective,
  /// the same UserError on all), gives it its name, lets `latest` name it, and removes all but it,
  /// `previous` and `kept`; the file's name. Throws UserError on every rank, with the checkpoints
  /// before untouched: kUsage when the folder cannot be written, or what `write` throws.
  std::string save(const Communicator& world, const Cursor& cursor,
                   const std::function<void(const std::string& path)>& write, const std::string& previous,
                   const std::string& kept = "");

  /// Removes all checkpoints.
  void clear() const;

  /// Names of files, the newest first: what `latest` names, then by epoch and step.
  std::vector<std::string> list() const;

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void publish(const std::string& name) const;
  void remove_all_but(std::initializer_list<std::string> kept) const;

  std::string path_;
};

}  // namespace espalier
