#include "espalier/feature/fetch_model.hpp"

namespace espalier {

Footprint fetch_footprint(double lists, double rows, double remote, double id_bytes, double row_bytes,
                          double width) {
  // Sources, rows in float32; with other ranks ids by owner, their order and owners, ids asked by
  // others, rows packed and received.
  auto sum = Footprint().add(8 * lists * rows).add(4 * rows * width, lists);
  if (remote > 0) sum.add(id_bytes * lists * rows).add(8 * lists * rows).add(4 * lists * rows);
  return sum.add(id_bytes * remote).add(row_bytes * remote, 2);
}

Footprint disk_read_footprint(double own, double row_bytes) {
  return Footprint().add(row_bytes * own).add(8 * own, 3);
}

Footprint edge_fetch_footprint(double lists, double entries, double remote, double id_bytes, double row_bytes,
                               double width) {
  return fetch_footprint(lists, entries, remote, id_bytes, row_bytes, width)
      .add(8 * entries, lists)
      .add(4 * entries, lists);
}

Footprint row_update_footprint(double lists, double rows, double row_bytes, int copies) {
  const double all = lists * rows;
  return Footprint().add(rows * row_bytes, lists).add(all * row_bytes, copies > 1 ? 4 : 3).add(8 * all, 10);
}

}  // namespace espalier
