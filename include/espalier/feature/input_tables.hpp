// What the rows of a network's input are: tables of one width each, which a store of its own holds
// (input_stores.hpp). Types with features of the same width share a table, unless their form hangs
// on the columns (row_form.hpp): each type has columns of its own, so then a table too. Types
// without features share one of trainable embeddings, where those are asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/feature/row_form.hpp"
#include "espalier/partition/held_types.hpp"

namespace espalier {

struct InputTable {
  std::int64_t width = 0;  ///< columns
  std::int64_t pairs = 0;  ///< of a row, where rows are kept so (dense/paired_rows.hpp); else 0
  const RowKind* in_file = &row_kind_of(float());  ///< the form in which the graph file has them
  const RowKind* kept = in_file;                   ///< and in memory and on the wire
  bool trainable = false;  ///< embeddings, which begin as random numbers; else features
  HeldTypes held = {};     ///< whose rows these are

  /// Columns of its rows as they are fetched.
  std::int64_t fetched_width() const { return pairs > 0 ? 2 * pairs : width; }
  /// Are its rows kept in another form than the file's?
  bool converted() const { return kept != in_file; }
  std::int64_t row_bytes() const { return kept->row_bytes(fetched_width()); }
};

/// The form in which rows of such a type are kept, with these graph.feature_bits.
const RowKind& kept_kind(const VertexInfo& type, const NumberOrWord& bits = 32);

/// Of a graph: features in the order of the first type that has each width, embeddings last.
/// `embedding`: their width (model.embedding); 0: types without features have no rows. `bits`:
/// graph.feature_bits.
std::vector<InputTable> input_tables(const GraphInfo& graph, std::int64_t embedding,
                                     const NumberOrWord& bits = 32);
/// Of a job.
inline std::vector<InputTable> input_tables(const GraphInfo& graph, const Config& config) {
  return input_tables(graph, config.model.embedding, config.graph.feature_bits);
}

/// Bytes of the rows of all vertices in all tables: of features, or of those that are learnt.
double table_bytes(std::span<const InputTable> tables, std::int64_t vertices, bool trainable);

}  // namespace espalier
