// What the rows of a network's input are: tables of one width each, which a store of its own holds
// (input_stores.hpp). Types with features of the same width share a table, unless they are packed
// (quantised_rows.hpp): each type has columns of its own, so then a table too. Types without
// features share one of trainable embeddings, where those are asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/feature/quantised_rows.hpp"
#include "espalier/partition/held_types.hpp"

namespace espalier {

struct InputTable {
  std::int64_t width = 0;  ///< columns
  std::int64_t pairs = 0;  ///< of a row, where rows are kept so (dense/paired_rows.hpp); else 0
  bool half = false;       ///< are the rows Half in the file, and so in memory and on the wire?
  std::int64_t bits = 32;  ///< of a number in memory and on the wire, if fewer than in the file:
                           ///< 16 (Half) or those of quantised rows (quantised_rows.hpp)
  bool trainable = false;  ///< embeddings, which begin as random numbers; else features
  HeldTypes held = {};     ///< whose rows these are

  /// Columns of its rows as they are fetched.
  std::int64_t fetched_width() const { return pairs > 0 ? 2 * pairs : width; }
  bool quantised() const { return bits < 16; }
  /// Are its rows kept in fewer bits than the file has?
  bool in_fewer_bits() const { return quantised() || (bits == 16 && !half); }
  std::int64_t row_bytes() const {
    if (pairs > 0) return 8 * pairs;
    return quantised() ? 2 * words_of_quantised(width, bits) : width * (half || bits == 16 ? 2 : 4);
  }
};

/// Of a graph: features in the order of the first type that has each width, embeddings last.
/// `embedding`: their width (model.embedding); 0: types without features have no rows. `bits`:
/// graph.feature_bits.
std::vector<InputTable> input_tables(const GraphInfo& graph, std::int64_t embedding, std::int64_t bits = 32);
/// Of a job.
inline std::vector<InputTable> input_tables(const GraphInfo& graph, const Config& config) {
  return input_tables(graph, config.model.embedding, config.graph.feature_bits);
}

/// Bytes of the rows of all vertices in all tables: of features, or of those that are learnt.
double table_bytes(std::span<const InputTable> tables, std::int64_t vertices, bool trainable);

}  // namespace espalier
