// Parts of arrays and matrices that every rank has whole, for tests of graph files.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

template <class T>
Buffer<T> part(const Buffer<T>& whole, std::int64_t begin, std::int64_t end) {
  return Buffer<T>(whole.begin() + begin, whole.begin() + end);
}

template <class T>
Matrix<T> rows_of(const Matrix<T>& whole, std::int64_t begin, std::int64_t end) {
  Matrix<T> rows(end - begin, whole.columns);
  std::copy_n(whole.data.begin() + begin * whole.columns, rows.data.size(), rows.data.begin());
  return rows;
}

template <class Index>
Csr<Index> rows_of(const Csr<Index>& a, std::int64_t begin, std::int64_t end) {
  Csr<Index> rows;
  rows.rows = end - begin;
  rows.columns = a.columns;
  rows.indptr = part(a.indptr, begin, end + 1);
  const auto first = rows.indptr.front();
  rows.indices = part(a.indices, first, rows.indptr.back());
  if (a.has_values()) rows.values = part(a.values, first, rows.indptr.back());
  for (auto& offset : rows.indptr) offset -= first;
  return rows;
}

template <class Index>
void expect_rows(const Csr<Index>& got, const Csr<Index>& wanted) {
  EXPECT_EQ(got.rows, wanted.rows);
  EXPECT_EQ(got.columns, wanted.columns);
  EXPECT_EQ(got.indptr, wanted.indptr);
  EXPECT_EQ(got.indices, wanted.indices);
  EXPECT_EQ(got.values, wanted.values);
}

}  // namespace espalier
