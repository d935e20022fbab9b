// The checkpoints of a run in its output folder:
//
//     checkpoints/epoch-0003-step-000040.h5    40 steps of epoch 3 were done
//     checkpoints/latest                       a symbolic link to the newest
//
// A checkpoint appears under its name when all its bytes are on the disk, never before; the last
// two are kept. For one process of the job, rank 0.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "espalier/train/training_state.hpp"

namespace espalier {

class CheckpointFolder {
 public:
  /// `path`: the folder; made when something is saved.
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  /// Writes a file, lets `latest` name it, and removes all but it, `previous` and `kept`; the
  /// file's name. Throws UserError(kUsage), with the checkpoints before untouched, when the folder
  /// cannot be written.
  std::string save(const Cursor& cursor, const std::string& bytes, const std::string& previous,
                   const std::string& kept = "");

  /// Removes all checkpoints.
  void clear() const;

  /// Names of files, the newest first: what `latest` names, then by epoch and step.
  std::vector<std::string> list() const;

  /// Bytes of a file. Throws UserError(kInput) when it cannot be read.
  std::string read(const std::string& name) const;

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void remove_all_but(std::initializer_list<std::string> kept) const;

  std::string path_;
};

/// The bytes of a file. Throws UserError(kInput).
std::string read_file(const std::string& path);

}  // namespace espalier
