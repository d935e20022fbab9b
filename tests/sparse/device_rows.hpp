// Matrices and lists of rows for the tests of sparse leaves on GPUs.
#pragma once

#include "cuda_test.hpp"
#include "espalier/sparse/device_csr.hpp"
#include "espalier/sparse/row_pieces.hpp"
#include "random_graph.hpp"

namespace espalier {

template <class Index>
Csr<Index, Cuda> to_gpu(const Cuda& gpu, const Csr<Index>& host) {
  return upload(gpu, host);
}

/// Lists of rows one under the other, on both sides.
struct RowLists {
  Buffer<std::int64_t> rows, offsets = Buffer<std::int64_t>(1, 0);

  void add(std::initializer_list<std::int64_t> more) { add(Buffer<std::int64_t>(more)); }
  void add(const Buffer<std::int64_t>& more) {
    rows.insert(rows.end(), more.begin(), more.end());
    offsets.push_back(std::ssize(rows));
  }
  std::int64_t groups() const { return std::ssize(offsets) - 1; }
  template <class Index>
  RowPieces cut(const Cuda& gpu, const Csr<Index, Cuda>& matrix) const {
    const auto device_rows = upload(gpu, rows), device_offsets = upload(gpu, offsets);
    return cut_rows(gpu, matrix, device_rows.data(), std::ssize(rows), device_offsets.data(), groups());
  }
};

/// Lists with hubs, empty rows, and empty ones at the beginning, between and at the end.
inline RowLists awkward_lists(std::int64_t n) {
  RowLists lists;
  lists.add({});
  lists.add({0});
  lists.add({1});
  lists.add({});
  lists.add({});
  Buffer<std::int64_t> every_third, all;
  for (std::int64_t v = 0; v < n; ++v) {
    if (v % 3 == 0) every_third.push_back(n - 1 - v);
    all.push_back(v);
  }
  lists.add(every_third);
  lists.add({2, 0, 1});
  lists.add(all);
  lists.add({});
  return lists;
}

}  // namespace espalier
