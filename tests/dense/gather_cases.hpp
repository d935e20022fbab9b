// Law of gather, for every space: row k of a copy is row ids[k] - first of the source; row k of a
// gather is the row that source[k] names, of one matrix or of the other, as float32; from either
// memory, aligned or not.
#pragma once

#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "espalier/dense/gather.hpp"
#include "mpi_test.hpp"
#include "space_arrays.hpp"

namespace espalier {

/// A matrix of the space that begins `shift` elements behind an aligned address.
template <class S, class Space>
struct ShiftedMatrix {
  std::int64_t f;
  Buffer<S> host;
  Array<Space, S> memory;
  ConstMatrixView<S, Space> view;

  ShiftedMatrix(const Space& space, std::int64_t rows, std::int64_t f_, std::size_t shift,
                Placement placement, std::mt19937_64& random, S (*narrow)(float))
      : f(f_) {
    for (const auto number : random_matrix<float>(rows, f, random).data) host.push_back(narrow(number));
    Buffer<S> shifted(shift);
    shifted.insert(shifted.end(), host.begin(), host.end());
    memory = array_on(space, shifted, placement);
    view = {rows, f, memory.data() + shift};
  }
  S entry(std::int64_t i, std::int64_t j) const { return host[i * f + j]; }
};

template <class S>
Gathered<S> number_of(S x) {
  if constexpr (std::is_same_v<S, double>)
    return x;
  else
    return to_float(x);
}

template <class Id, class S, class Space>
void expect_copied(const Space& space, const ShiftedMatrix<S, Space>& from, std::int64_t rows,
                   std::mt19937_64& random) {
  constexpr std::int64_t kFirst = (std::int64_t{1} << (8 * sizeof(Id) - 2)) + 3;
  Buffer<Id> ids(rows);
  for (auto& id : ids) id = static_cast<Id>(kFirst + static_cast<std::int64_t>(random() % 50));
  const auto on_space = array_on(space, ids);
  Matrix<S, Space> to(rows, from.f);
  copy_rows<S>(space, from.view, on_space.data(), kFirst, to);
  const auto copied = matrix_from(space, to);
  for (std::int64_t k = 0; k < rows; ++k)
    for (std::int64_t j = 0; j < from.f; ++j)
      EXPECT_EQ(number_of(copied(k, j)), number_of(from.entry(ids[k] - kFirst, j)));
}

template <class S, class Space>
void expect_gathered(const Space& space, const ShiftedMatrix<S, Space>& from,
                     const ShiftedMatrix<S, Space>& own, std::int64_t rows, std::mt19937_64& random) {
  Buffer<std::int64_t> source(rows);
  for (auto& place : source) {
    place = static_cast<std::int64_t>(random() % 50);
    if (random() % 3 == 0) place = ~place;
  }
  const auto on_space = array_on(space, source);
  Matrix<Gathered<S>, Space> to(rows, from.f);
  gather_rows<S>(space, from.view, own.view, on_space.data(), to);
  const auto gathered = matrix_from(space, to);
  for (std::int64_t k = 0; k < rows; ++k)
    for (std::int64_t j = 0; j < from.f; ++j)
      EXPECT_EQ(gathered(k, j),
                number_of(source[k] < 0 ? own.entry(~source[k], j) : from.entry(source[k], j)));
}

template <class S, class Space>
void check_gather(const Space& space, Placement placement, S (*narrow)(float)) {
  std::mt19937_64 random(test_seed(23));
  for (const std::int64_t rows : {0, 1, 77})
    for (const std::int64_t f : {1, 3, 32, 33, 100})
      for (const auto& [shift, own_shift] : {std::pair{0, 0}, {1, 0}, {0, 1}}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << f << " times " << sizeof(S)
                                        << " bytes, shifted by " << shift << " and " << own_shift);
        const ShiftedMatrix<S, Space> from(space, 50, f, shift, Placement::kDevice, random, narrow);
        const ShiftedMatrix<S, Space> own(space, 50, f, own_shift, placement, random, narrow);
        expect_copied<std::int32_t>(space, own, rows, random);
        expect_copied<std::int64_t>(space, own, rows, random);
        // Of half the bytes the CPU gathers by their form: feature/row_form_cases.hpp.
        if constexpr (!std::is_same_v<Space, Cpu> || sizeof(S) > 2)
          expect_gathered(space, from, own, rows, random);
      }
}

template <class S>
S unchanged(float x) {
  return x;
}

}  // namespace espalier
