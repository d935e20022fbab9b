// What an open graph file holds, shared by graph_file.cpp (opens and describes) and
// graph_file_rows.cpp (reads).
#pragma once

#include <array>
#include <map>
#include <string>

#include "content_check.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/hdf5.hpp"

namespace espalier {

/// Ends every message about a damaged file.
inline constexpr const char* kWriteAgain =
    "write it again with `espalier import` or `generate`, or correct the program that wrote it (`espalier "
    "help "
    "import` shows the format)";

/// What to do where a digest does not fit.
inline constexpr const char* kDigestAgain =
    "it is damaged, or another program changed it; after a change that was meant, `espalier digest FILE "
    "--write` "
    "writes new digests";

/// The data sets of the format.
inline constexpr std::array<const char*, 8> kDatasetNames = {
    "/graph/indptr", "/graph/indices", "/graph/weights", "/nodes/features",
    "/nodes/labels", "/split/train",   "/split/valid",   "/split/test"};

struct OpenGraphFile {
  const Communicator& comm;
  std::string path;
  hdf5::Handle file;
  GraphInfo info;
  hdf5::Dataset indptr, indices, weights, features, labels;
  std::array<hdf5::Dataset, 3> splits;
  Verify verify = Verify::kYes;
  bool has_digest = false;
  std::map<std::string, ContentCheck> contents;  ///< of the data sets that exist, by name

  /// The data sets that exist, in the order of the format.
  std::vector<const hdf5::Dataset*> datasets() const {
    std::vector<const hdf5::Dataset*> all;
    for (const auto* dataset :
         {&indptr, &indices, &weights, &features, &labels, &splits[0], &splits[1], &splits[2]})
      if (dataset->exists()) all.push_back(dataset);
    return all;
  }
};

}  // namespace espalier
