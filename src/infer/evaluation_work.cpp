#include "espalier/infer/evaluation_work.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "espalier/feature/disk_rows.hpp"
#include "espalier/feature/fetch_model.hpp"
#include "espalier/nn/network_work.hpp"
#include "espalier/product/schedule.hpp"

namespace espalier {

template <class Index>
EvaluationWork count_evaluation(const Csr<Index>& a, const Ownership& blocks, int replication,
                                const ChunkLimit& limit, const ColumnsOf& columns,
                                const std::vector<HeldTypes>& tables, std::span<const std::int64_t> fanouts) {
  EvaluationWork work;
  work.table_shares.assign(tables.size(), 0);
  const auto shares = blocks.cut(replication);
  // The last chunk that had it.
  std::vector<std::int64_t> seen(static_cast<std::size_t>(a.rows), -1);
  std::int64_t chunk = 0;
  for (int rank = 0; rank < shares.parts(); ++rank) {
    double remote = 0;
    const auto first = chunk, rows = shares.size(rank);
    for (std::int64_t from = 0, to = 0; from < rows; from = to, ++chunk) {
      to = chunk_end(from, rows, limit, [&](std::int64_t k) { return a.row_size(shares.vertex(rank, k)); });
      std::int64_t input = to - from, entries = 0;  // the chunk's own rows come first
      for (auto k = from; k < to; ++k) seen[shares.vertex(rank, k)] = chunk;
      for (auto k = from; k < to; ++k) {
        const auto row = shares.vertex(rank, k);
        for (auto entry = a.row_begin(row); entry < a.row_end(row); ++entry) {
          const auto column = a.indices[entry];
          if (!fanouts.empty() && fanouts[columns.relation(column)] == 0) continue;
          const auto u = columns.vertex(column);
          ++entries;
          if (std::exchange(seen[u], chunk) == chunk) continue;
          ++input;
          if (blocks.owner(u) == rank / replication) continue;
          for (std::size_t table = 0; table < tables.size(); ++table) {
            if (!tables[table].holds(u)) continue;
            ++remote;
            ++work.table_shares[table];
          }
        }
      }
      work.largest_rows = std::max(work.largest_rows, static_cast<double>(to - from));
      work.largest_input = std::max(work.largest_input, static_cast<double>(input));
      work.largest_entries = std::max(work.largest_entries, static_cast<double>(entries));
    }
    work.chunks = std::max(work.chunks, chunk - first);
    work.remote_rows += remote;
    work.most_remote_rows = std::max(work.most_remote_rows, remote);
  }
  for (auto& share : work.table_shares) share /= std::max(1.0, work.remote_rows);
  return work;
}

template EvaluationWork count_evaluation(const Csr<std::int32_t>&, const Ownership&, int, const ChunkLimit&,
                                         const ColumnsOf&, const std::vector<HeldTypes>&,
                                         std::span<const std::int64_t>);
template EvaluationWork count_evaluation(const Csr<std::int64_t>&, const Ownership&, int, const ChunkLimit&,
                                         const ColumnsOf&, const std::vector<HeldTypes>&,
                                         std::span<const std::int64_t>);

EvaluationWork estimate_evaluation(double nodes, double entries, double longest_row, int rows,
                                   int replication, const ChunkLimit& limit) {
  const double ranks = static_cast<double>(rows) * replication, share = nodes / ranks;
  const double degree = entries / std::max(nodes, 1.0);
  const double of_a_row = degree + static_cast<double>(limit.of_a_row),
               least =
                   std::min<double>(ChunkLimit::kFewReads, static_cast<double>(limit.least_rows) * of_a_row);
  const double step = std::max(1.0, std::floor(std::max(static_cast<double>(limit.reads), least) / of_a_row));
  const double chunks = std::max(1.0, std::ceil(share / step)), chunk = share / chunks;
  const double largest = std::min(step, share);
  const auto distinct = [&](double of_rows) {
    return nodes * -std::expm1(-of_rows * degree / std::max(nodes, 1.0));
  };
  EvaluationWork work;
  work.chunks = static_cast<std::int64_t>(chunks);
  work.most_remote_rows = chunks * distinct(chunk) * (rows - 1) / rows;
  work.remote_rows = work.most_remote_rows * ranks;
  work.largest_rows = largest;
  // Of a row that reads more than a chunk may, alone.
  work.largest_input = std::max(largest + distinct(largest) * (1 - largest / std::max(nodes, 1.0)),
                                std::min(nodes, longest_row));
  work.largest_entries = std::max(largest * degree, longest_row);
  return work;
}

Footprint evaluation_footprint(const NetworkShape& network, const EvaluatedRows& of,
                               std::span<const EvaluationWork> evaluated) {
  const double share = of.block_rows / of.replication;
  const auto layers = network_layers(network);
  const auto width = [&](std::size_t layer) {
    return layer == 0 ? of.input_width : static_cast<double>(layers[layer - 1].layer.out);
  };
  Footprint most, of_features, outgrown;
  double widest_rows = 0;
  std::array<double, kMostLayerArrays> widest = {};
  for (std::size_t layer = 1; layer <= evaluated.size(); ++layer) {
    const auto& chunk = evaluated[layer - 1];
    const double in = width(layer - 1), out = width(layer), rows = chunk.largest_rows;
    const double remote = chunk.most_remote_rows / std::max<double>(1, static_cast<double>(chunk.chunks));
    // Memory that all layers use: what a wider one has outgrown stays behind.
    const auto grow = [&](double& most_bytes, double bytes) {
      if (bytes > most_bytes) outgrown.add(std::exchange(most_bytes, bytes));
    };
    grow(widest_rows, 4 * chunk.largest_input * in);
    const auto costs =
        layer_kind_of(network.kind)
            .costs(layers[layer - 1].layer, {rows, chunk.largest_input, chunk.largest_entries});
    auto working = Footprint().add(widest_rows);
    for (std::size_t k = 0; k < widest.size(); ++k) {
      if (k < costs.scratch.size()) grow(widest[k], 4 * costs.scratch[k]);
      working.add(widest[k]);
    }
    if (layer == 1) working += input_footprint(network, chunk.largest_input, false);
    if (layer == 1 && !network.types.empty())
      working.add(4 * chunk.largest_input * static_cast<double>(network.hidden));
    auto fetching = fetch_footprint(1, chunk.largest_input, remote, of.id_bytes,
                                    layer == 1 ? of.input_row_bytes : 4 * in, 0);
    if (layer == 1 ? of.reads_disk : of.spills)
      fetching += disk_read_footprint(chunk.largest_input - remote, layer == 1 ? of.input_row_bytes : 4 * in);
    auto block = Footprint().add(8 * chunk.largest_input).add(8 * rows).add(4 * chunk.largest_entries, 2);
    auto picks = entries_footprint(rows, chunk.largest_entries, of.id_bytes, of.pick_value_bytes);
    if (network.relations > 1) {
      // relation_parts.cpp, beside the block; vertices of columns.
      block.add(chunk.largest_entries);
      picks.add(of.id_bytes * chunk.largest_entries).add(chunk.largest_entries);
    }
    if (of.reads_edges)
      block +=
          edge_fetch_footprint(1, chunk.largest_entries, 0, of.id_bytes, of.edge_row_bytes, of.edge_width);
    const auto block_row = [&](double columns) {
      return of.spills ? DiskRows::memory_bytes(of.block_rows, 4 * columns) : 4 * of.block_rows * columns;
    };
    const bool jumps = layers.size() > evaluated.size(), hidden = layer < evaluated.size(),
               spilled = hidden && of.spills, keeps = hidden && !spilled;
    // What the sink keeps, and a chunk, which it takes where that is all. Later chunks have more
    // rows as a rule, and what a last layer's result outgrows, it alone would have room in.
    auto result = Footprint().add(spilled ? block_row(out) : keeps ? 4 * share * out : of.kept);
    if (!keeps || chunk.chunks > 1) result.add(4 * rows * out);
    if (!hidden && chunk.chunks > 1) result.add(4 * rows * out);
    Footprint gathered;
    if (of.replication > 1 && hidden && !spilled) gathered.add(4 * of.block_rows * out);
    if (of.replication > 1 && spilled)  // some rows of every share at a time (layerwise_pass.cpp)
      gathered.add((1 + of.replication) * std::min<double>(8 << 20, 4 * share * out));
    auto live = of_features + outgrown + result + working + block + larger(picks, gathered);
    if (layer > 1) live.add(block_row(in));
    if (jumps) live.add(4 * share * static_cast<double>(layers.back().layer.in));
    most = larger(most, live + fetching);
    if (layer == 1) of_features = fetching;
  }
  return larger(most, Footprint().add(of.kept).add(of.evaluating));
}

std::vector<double> count_evaluated(std::span<const std::int64_t> vertices, const Ownership& blocks,
                                    int replication) {
  const auto shares = blocks.cut(replication);
  std::vector<double> counts(static_cast<std::size_t>(shares.parts()));
  for (const auto vertex : vertices) ++counts[static_cast<std::size_t>(shares.owner(vertex))];
  return counts;
}

}  // namespace espalier
