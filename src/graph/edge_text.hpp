// A file of edges: lines "source target", and perhaps a weight and a time. Ids count from 0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "espalier/graph/edge_source.hpp"
#include "labelled_splits.hpp"
#include "pair_reader.hpp"

namespace espalier {

struct EdgeTextOptions {
  std::string path;
  PairForm form = {};
  VertexCount sources = {-1, ""}, targets = {-1, ""};  ///< ids are below it; -1: nobody said so
  bool any_ids = false;                                ///< may ids be larger than a graph
                                                       ///< has vertices?
  std::int64_t part = 0;                               ///< bytes that a rank reads at a time, of a
                                                       ///< text that is not packed; 0: a few MiB
};

std::unique_ptr<EdgeSource> open_edge_text(EdgeTextOptions options);

}  // namespace espalier
