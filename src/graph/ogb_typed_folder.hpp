// A folder in OGB's raw csv layout of graphs with types (that of ogbn-mag):
//
//   FOLDER/raw/num-node-dict.csv.gz       types, then their numbers of vertices
//   FOLDER/raw/triplet-type-list.csv.gz   head,relation,tail: a line for each triplet
//   FOLDER/raw/relations/HEAD___RELATION___TAIL/edge.csv.gz            "head,tail" per line
//   FOLDER/raw/relations/HEAD___RELATION___TAIL/num-edge-list.csv.gz   its lines       optional
//   FOLDER/raw/relations/HEAD___RELATION___TAIL/edge-feat.csv.gz       a line per edge  optional
//   FOLDER/raw/node-feat/TYPE/node-feat.csv.gz                                         optional
//   FOLDER/raw/nodetype-has-label.csv.gz  types, then True or False for each           optional
//   FOLDER/raw/node-label/TYPE/node-label.csv.gz
//   FOLDER/split/NAME/nodetype-has-split.csv.gz, TYPE/{train,valid,test}.csv.gz        optional
//
// Ids count within a type. Without a table of flags a type has what files it has.
#pragma once

#include <filesystem>
#include <memory>

#include "espalier/graph/typed_import.hpp"
#include "typed_folder.hpp"

namespace espalier {

/// Is there such a layout in `folder`?
bool is_typed_ogb_folder(const std::string& folder);

std::unique_ptr<TypedFolder> open_typed_ogb_folder(const TypedImportOptions& options);

}  // namespace espalier
