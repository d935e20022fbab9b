// What the model expects of a fetch, and of a step of embeddings: what it moves, and what it holds.
#pragma once

#include "espalier/base/footprint.hpp"
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

/// Under which traffic is counted of what ranks tell each other of coming fetches.
inline constexpr const char* kPrefetched = "fetch/foreseen";

/// What a rank of a process column of so many parts receives where it hears ahead, `times` times,
/// which ids it will be asked for, in so many fetches, and every rank will ask others for `asked`.
inline Cost foretelling_cost(int parts, double asked, double id_bytes, double fetches, double times = 1) {
  const double others = parts - 1;
  return {times * 2 * others, 8 * others * fetches + id_bytes * asked, parts > 1 ? 2 * times : 0.0};
}

/// What a rank of a process column of so many parts receives where every rank sends `sent` rows
/// once more: how many each of the others sends, then a number and a row each.
inline Cost row_correction_cost(int parts, double sent, double id_bytes, double row_bytes) {
  const double others = parts - 1;
  return {3 * others, 8 * others + sent * (id_bytes + row_bytes), parts > 1 ? 3.0 : 0.0};
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
inline Footprint fetch_footprint(double lists, double rows, double remote, double id_bytes, double row_bytes,
                                 double width) {
  // Sources, rows in float32; with other ranks ids by owner, their order and owners, ids asked by
  // others, rows packed and received.
  auto sum = Footprint().add(8 * lists * rows).add(4 * rows * width, lists);
  if (remote > 0) sum.add(id_bytes * lists * rows).add(8 * lists * rows).add(4 * lists * rows);
  return sum.add(id_bytes * remote).add(row_bytes * remote, 2);
}

/// What it holds beside that where rows are on disk: `own` of them as they were read, numbers and
/// order of those.
inline Footprint disk_read_footprint(double own, double row_bytes) {
  return Footprint().add(row_bytes * own).add(8 * own, 3);
}

/// The same of the features of `entries` entries of blocks in each list (edge_store.hpp), whose
/// numbers are made first, and which entries they are of.
inline Footprint edge_fetch_footprint(double lists, double entries, double remote, double id_bytes,
                                      double row_bytes, double width) {
  return fetch_footprint(lists, entries, remote, id_bytes, row_bytes, width)
      .add(8 * entries, lists)
      .add(4 * entries, lists);
}

/// What a step of trainable embeddings holds (embedding_store.inl.hpp): gradients of `lists`
/// minibatches of `rows` rows each; listed, by owner, come down the column, and with copies those
/// along the row; their order.
inline Footprint row_update_footprint(double lists, double rows, double row_bytes, int copies) {
  const double all = lists * rows;
  return Footprint().add(rows * row_bytes, lists).add(all * row_bytes, copies > 1 ? 4 : 3).add(8 * all, 10);
}

}  // namespace espalier
