// A file of edges: lines "source target", with --weights "source target weight". Ids count from 0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "espalier/graph/edge_source.hpp"

namespace espalier {

struct EdgeTextOptions {
  std::string path;
  bool weights = false;
  std::int64_t nodes = -1;    ///< ids are below it; -1: nobody said so
  std::string nodes_by = {};  ///< who says so, for messages: "--vertices says 5 vertices"
  bool any_ids = false;       ///< may ids be larger than a graph has vertices?
};

std::unique_ptr<EdgeSource> open_edge_text(EdgeTextOptions options);

}  // namespace espalier
