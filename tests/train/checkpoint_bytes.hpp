// Checkpoints as bytes: written by some ranks and read by others, whatever becomes of the file.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "espalier/train/checkpoint.hpp"
#include "files.hpp"
#include "mpi_test.hpp"

namespace espalier {

/// The same on all ranks, and another for each test program that runs: ranks have mpirun as their
/// parent, one that is alone has a number of its own.
inline std::string path_of_checkpoint_bytes() {
  const auto job = test_world().size() > 1 ? getppid() : getpid();
  return std::filesystem::temp_directory_path() /
         ("espalier-test-" + std::to_string(job) + "-checkpoint-bytes.h5");
}

/// Collective. What `ranks` write, on each of them.
inline std::string checkpoint_bytes(const Communicator& ranks, const Checkpoint& checkpoint) {
  const auto path = path_of_checkpoint_bytes();
  write_checkpoint(ranks, checkpoint, path);
  const auto bytes = read_file(path);
  ranks.barrier();
  if (ranks.rank() == 0) std::filesystem::remove(path);
  return bytes;
}

/// Collective. What they read, of bytes that rank 0 has.
inline Checkpoint checkpoint_from(const Communicator& ranks, const std::string& bytes) {
  const auto path = path_of_checkpoint_bytes();
  if (ranks.rank() == 0) write_file(path, bytes);
  ranks.barrier();
  auto checkpoint = read_checkpoint(ranks, path);
  ranks.barrier();
  if (ranks.rank() == 0) std::filesystem::remove(path);  // it is open
  return checkpoint;
}

/// A tensor whose rows are all here; `mine`: those that are this rank's to save.
inline StateTensor tensor_with(std::string name, std::int64_t rows, std::int64_t columns,
                               Buffer<float> values, RowRange mine) {
  auto tensor = kept_tensor(std::move(name), rows, columns, std::move(values));
  tensor.mine = {mine};
  return tensor;
}

}  // namespace espalier
