// Imports a folder that holds a graph with types: a graph file of version 2 (schema.hpp).
//
// Each triplet (head, R, tail) of the folder is a relation R from the type of its heads to that of
// its tails; the tail is the row. It gets an inverse rev_R from tail to head, unless that is
// declined: a network whose vertices hear their in-neighbours would otherwise hear one side only.
// Relations stand in the folder's order, then their inverses in that order. Within a relation,
// lines that repeat an edge become one, and are counted; edges have no weights. They may have
// features: an edge that is repeated has those of its first line, its inverse the same.
#pragma once

#include <string>

#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/edge_list.hpp"

namespace espalier {

struct TypedImportOptions {
  std::string folder;
  std::string split;             ///< NAME; empty: the only one there is; or "NAME,NAME", which keep
                                 ///< their names
  bool inverses = true;          ///< add rev_R for each relation R; a graph without types has none
  bool drop_self_loops = false;  ///< within a relation of one type
  bool half = false;             ///< as float16 also features that are not
  Duplicates duplicates = Duplicates::kSum;  ///< without weights entries stay 1, but of kCount
  DuplicateFeatures duplicate_features = DuplicateFeatures::kKept;
  bool edge_features = true;  ///< or leave those of the folder out
};

}  // namespace espalier
