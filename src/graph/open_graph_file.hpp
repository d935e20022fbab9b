// What an open graph file holds, shared by graph_file.cpp (opens and describes) and graph_file_rows.cpp
// (reads).
#pragma once

#include <array>
#include <string>

#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/hdf5.hpp"

namespace espalier {

/// Ends every message about a damaged file.
inline constexpr const char* kWriteAgain =
    "write it again with `espalier import` or `generate`, or correct the program that wrote it (`espalier "
    "help "
    "import` shows the format)";

struct OpenGraphFile {
  const Communicator& comm;
  std::string path;
  hdf5::Handle file;
  GraphInfo info;
  hdf5::Dataset indptr, indices, weights, features, labels;
  std::array<hdf5::Dataset, 3> splits;
};

}  // namespace espalier
