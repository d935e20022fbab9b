// What the model expects of a fetch, and of a step of embeddings: what it moves, and what it holds.
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/base/footprint.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/product/schedule.hpp"

namespace espalier {

/// What a rank of a process column of so many parts receives for `wanted` rows of `row_bytes`: how
/// many each of the others wants, then an id and a row each for those that are of parts out of
/// reach; `reached` parts lie where it reads them, its own and its node's.
inline Cost feature_fetch_cost(int parts, double wanted, double id_bytes, double row_bytes, int reached = 1) {
  const double others = parts - reached;
  return {parts - 1 + 2 * others, 8.0 * (parts - 1) + wanted * others / parts * (id_bytes + row_bytes),
          parts > 1 ? 3.0 : 0.0};
}

/// Books it: the rows of so many vertices lie evenly over the block rows. Of those that are out of
/// reach `missed` are asked for, and `cached` are not, wherever they lie.
inline void predict_fetch(const Communicator& column, std::string_view label, std::int64_t vertices,
                          std::int64_t wanted, std::int64_t row_bytes, int reached, std::int64_t missed,
                          std::int64_t cached) {
  const auto left = cached == 0 ? 1.0 : static_cast<double>(missed) / static_cast<double>(missed + cached);
  const auto cost = feature_fetch_cost(column.size(), static_cast<double>(wanted) * left,
                                       index_bytes(vertices), static_cast<double>(row_bytes), reached);
  column.traffic().predict(label, cost.messages, cost.bytes);
}

/// Under which traffic is counted of what ranks tell each other of coming fetches.
inline constexpr const char* kForeseen = "fetch/foreseen";

/// What a rank of a process column of so many parts receives where it hears ahead, `times` times,
/// which ids it will be asked for, in so many fetches, and every rank will ask others for `asked`.
inline Cost foretelling_cost(int parts, double asked, double id_bytes, double fetches, double times = 1) {
  const double others = parts - 1;
  return {times * 2 * others, 8 * others * fetches + id_bytes * asked, parts > 1 ? 2 * times : 0.0};
}

/// Books it, once.
inline void predict_foretelling(const Communicator& column, std::string_view label, std::int64_t vertices,
                                std::int64_t asked, std::int64_t fetches) {
  const auto cost = foretelling_cost(column.size(), static_cast<double>(asked), index_bytes(vertices),
                                     static_cast<double>(fetches));
  column.traffic().predict(label, cost.messages, cost.bytes);
}

/// What a rank of a process column of so many parts receives where every rank sends `sent` rows
/// once more: how many each of the others sends, then a number and a row each.
inline Cost row_correction_cost(int parts, double sent, double id_bytes, double row_bytes) {
  const double others = parts - 1;
  return {3 * others, 8 * others + sent * (id_bytes + row_bytes), parts > 1 ? 3.0 : 0.0};
}

/// Books it.
inline void predict_correction(const Communicator& column, std::string_view label, std::int64_t vertices,
                               std::int64_t sent, std::int64_t row_bytes) {
  const auto cost = row_correction_cost(column.size(), static_cast<double>(sent), index_bytes(vertices),
                                        static_cast<double>(row_bytes));
  column.traffic().predict(label, cost.messages, cost.bytes);
}

/// What a rank receives where every rank sends `sent` rows with their minibatches to the shards
/// that they are of, down a process column of so many parts and along a process row of so many
/// copies, and then `changed` rows of its shard to the copies.
inline Cost row_update_cost(int parts, int copies, double sent, double changed, double id_bytes,
                            double row_bytes) {
  const double column_peers = parts - 1, row_peers = copies - 1, entry = id_bytes + 8 + row_bytes;
  return {4 * (column_peers + row_peers) + 3 * row_peers,
          8 * (column_peers + 2 * row_peers) + sent * (crossing(parts) + crossing(copies)) * entry +
              row_peers * changed * (8 + row_bytes),
          4.0 * (parts > 1) + 7.0 * (copies > 1)};
}

/// What a fetch holds on a rank (row_store.inl.hpp) for `lists` lists of `rows` rows each, stored
/// as `row_bytes`, of which other ranks send `remote`; `width`: numbers of a row as the network
/// gets it, 0 before that.
Footprint fetch_footprint(double lists, double rows, double remote, double id_bytes, double row_bytes,
                          double width);

/// What it holds beside that where rows are on disk: `own` of them as they were read, numbers and
/// order of those.
Footprint disk_read_footprint(double own, double row_bytes);

/// The same of the features of `entries` entries of blocks in each list (edge_store.hpp), whose
/// numbers are made first, and which entries they are of.
Footprint edge_fetch_footprint(double lists, double entries, double remote, double id_bytes, double row_bytes,
                               double width);

/// What a step of rows that are learnt holds (embedding_store.inl.hpp): gradients of `lists`
/// minibatches of `rows` rows each; listed, by owner, come down the column, and with copies those
/// along the row; their order.
Footprint row_update_footprint(double lists, double rows, double row_bytes, int copies);

}  // namespace espalier
