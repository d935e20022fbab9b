// Imports triples (head, relation, tail) of a knowledge graph: text files, one triple a line, its
// parts apart by tabs or, where the first line of a file has none, by commas; plain or gzip.
//
// Entities become vertices in ascending order of their names (bytes), relations stand in ascending
// order of theirs; so the order of lines and files says nothing. Names are kept: /types/entity/ids
// (/nodes/ids) and /links/relations.
//
// All triples are links of their split, each once, in the order of (tail, relation, head). Those of
// train are the graph, too, with one vertex type, `entity`, and a relation for each of theirs; then
// an inverse rev_R for each R. Names of a graph's relations hold letters, digits, '_' and '-':
// other letters become '_' there, and a number is added where two become the same. A graph has at
// most kMostRelations, inverses included; with `ignore_relations` it has none, an edge for each
// pair, and no inverse edges.
#pragma once

#include <array>
#include <string>

#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

struct TripleOptions {
  std::array<std::string, 3> files;  ///< by Split; empty: none, but of train
  bool inverses = true;
  bool ignore_relations = false;
};

/// Collective. Rank 0 reads the files; memory is that of all triples, names and, one after the
/// other, its rows of the matrix and the links of a split. Says how many triples of valid and test
/// are in train, too. Throws UserError(kInput) on every rank with file and line for anything that
/// does not fit, and for too many relations; then there is no `output`. Throws UserError(kUsage)
/// when `output` is one of the inputs, also as check_output() and put_in_place() do.
void import_triples(const Communicator& comm, const TripleOptions& options, const OutputFile& output);

}  // namespace espalier
