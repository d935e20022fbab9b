// What the options --types and --relations of `generate planted` say.
#pragma once

#include <string>
#include <vector>

#include "espalier/graph/schema.hpp"

namespace espalier {

/// What is to be generated: a schema, and numbers of each type and relation.
struct TypedModel {
  Schema schema;
  std::vector<std::int64_t> features;  ///< [types] columns; 0: none
  std::vector<std::int64_t> edges;     ///< [relations]; an inverse has those of its relation
  int forward = 0;  ///< relations [0, forward) are those that were given; inverses follow in
                    ///< their order
};

/// `types`: "paper=20000:32,author=12000", names with numbers of vertices and, where there are
/// any, of features. `relations`: "author.writes.paper=60000,...", a relation's source, name and
/// target, with its number of edges; with `inverses` each gets one, called rev_NAME. Throws
/// UserError(kUsage) that quotes what it does not understand.
TypedModel read_typed_model(const std::string& types, const std::string& relations, bool inverses);

}  // namespace espalier
