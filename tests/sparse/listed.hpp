// Rows of entries and sums in memory of any space, as lists on the host that a test compares.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/sparse/segmented_rows.hpp"

namespace espalier {

using ListedRow = std::vector<std::pair<std::int64_t, float>>;  // 0 beside ids without values
using ListedSum = std::vector<std::pair<std::int64_t, std::uint64_t>>;

template <class Id>
Entries<Id> to_host(const Cpu&, const Entries<Id>& entries) {
  return entries;
}
template <class Id>
Entries<Id> to_host(const Cuda& cuda, const Entries<Id, Cuda>& entries) {
  return {download(cuda, entries.offsets), download(cuda, entries.ids), download(cuda, entries.values)};
}

/// The entries are those rows, and hold values just where `values` says so.
template <class Id>
void expect_rows(const Entries<Id>& got, const std::vector<ListedRow>& expected, bool values) {
  EXPECT_EQ(got.rows(), std::ssize(expected));
  EXPECT_EQ(got.offsets.back(), std::ssize(got.ids));
  EXPECT_EQ(got.values.size(), values ? got.ids.size() : 0);
  if (got.rows() != std::ssize(expected) || got.values.size() != (values ? got.ids.size() : 0)) return;
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < got.rows(); ++r) {
    ListedRow row = expected[r], mine;
    for (auto k = got.begin(r); k < got.begin(r) + got.size(r); ++k)
      mine.emplace_back(got.ids[k], values ? got.values[k] : 0.0f);
    if (!values)
      for (auto& [id, value] : row) value = 0;
    wrong += mine != row;
  }
  EXPECT_EQ(wrong, 0) << "wrong rows of " << got.rows();
}

template <class Index>
ListedSum listed(const Cpu&, const SparseSum<Index>& sum) {
  ListedSum list;
  for (std::size_t k = 0; k < sum.columns.size(); ++k) list.emplace_back(sum.columns[k], sum.sums[k]);
  return list;
}

/// List after list.
template <class Index, class Space>
std::vector<ListedSum> listed(const Space& space, const Sums<Index, Space>& stacked) {
  const auto columns = copy_from(space, stacked.columns);
  const auto sums = copy_from(space, stacked.sums);
  std::vector<ListedSum> lists(stacked.lists());
  for (std::int64_t list = 0; list < stacked.lists(); ++list)
    for (auto k = stacked.offsets[list]; k < stacked.offsets[list + 1]; ++k)
      lists[list].emplace_back(columns[k], sums[k]);
  return lists;
}

/// What a SumVisitor was given: the sum of each segment, and how often it came.
struct VisitedSums {
  std::vector<ListedSum> sums;
  std::vector<int> visits;

  explicit VisitedSums(std::int64_t segments) : sums(segments), visits(segments, 0) {}
  bool is_each_once() const { return visits == std::vector<int>(visits.size(), 1); }

  void take(std::int64_t segment, ListedSum sum) {
    ++visits.at(segment);
    sums.at(segment) = std::move(sum);
  }
  template <class Index>
  SumVisitor<Index> visitor(const Cpu& cpu) {
    return [this, &cpu](std::int64_t segment, SparseSum<Index>& sum) { take(segment, listed(cpu, sum)); };
  }
  template <class Index>
  SumVisitor<Index, Cuda> visitor(const Cuda& cuda) {
    return [this, &cuda](std::int64_t first, Sums<Index, Cuda>& group) {
      for (auto& sum : listed(cuda, group)) take(first++, std::move(sum));
    };
  }
};

}  // namespace espalier
