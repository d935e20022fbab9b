// Where a file of HDF5 (hdf5_output.hpp) goes: to a name on a disk, or into memory of this process,
// as who asks for a graph file says.
#pragma once

#include <string>
#include <utility>

#include "espalier/base/output_file.hpp"

namespace espalier {

namespace hdf5 {
class WrittenBytes;
}

/// A file, or memory of this process alone (file/hdf5_output.hpp), where one rank writes: it must
/// stay until the graph is read.
struct Destination {
  Destination(OutputFile output) : file(std::move(output)) {}
  Destination(std::string path, bool replace = false) : file(std::move(path), replace) {}
  Destination(hdf5::WrittenBytes& bytes) : file("memory"), memory(&bytes) {}

  OutputFile file;
  hdf5::WrittenBytes* memory = nullptr;  ///< null: the file
};

}  // namespace espalier
