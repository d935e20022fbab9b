// What a cache of history holds when a step begins: how old its rows are, and how far from those
// that the network of this moment gives over the whole graph.
//
// Of a kept row r and the exact one h, both before dropout:
//
//     error   ||r - h|| / ||h||           what sampling and dropout below it change is part of it;
//                                         of two rows of zeros 0, where h alone is zeros 1
//     cosine  <r, h> / (||r|| ||h||)      as in figure 3 of FreshGNN; two rows of zeros: 1
//
// Rows are counted by layer and by age, of ages from 2^k to 2^(k+1) - 1 together. Numbers are sums
// of integers, so they are the same on every grid.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

struct HistoryError {
  double mean = 0, median = 0, p90 = 0;  ///< of errors; the two to within 5 %, and at most 2^16
  double cosine = 0;                     ///< their mean
};

/// Rows of one layer and of similar ages.
struct HeldHistory {
  int layer = 0;
  std::int64_t youngest = 0, oldest = 0;  ///< the ages that are meant: 2^k, 2^(k+1) - 1
  std::int64_t rows = 0;
  std::optional<HistoryError> error;  ///< where it was looked at
};

/// A row that a rank holds, of some layer.
struct HeldRow {
  int layer = 0;
  std::int64_t vertex = 0, age = 0;  ///< age: 1 or more
};

/// Collective. What all ranks hold, by layer and age; none that are empty.
std::vector<HeldHistory> count_held(const Communicator& world, std::span<const HeldRow> held);

/// Collective. The same with errors. `rows`: row k is that of held[k], in float32. exact[l]: of
/// layer l, [exact_of.size(rank), width], in the order of what rank r owns by `exact_of`, whose
/// parts are the ranks; empty where no rank holds rows of the layer. Memory of the host.
std::vector<HeldHistory> audit_held(const Communicator& world, std::span<const HeldRow> held,
                                    ConstMatrixView<float> rows, const Ownership& exact_of,
                                    std::span<const Matrix<float>> exact, std::string_view label);

}  // namespace espalier
