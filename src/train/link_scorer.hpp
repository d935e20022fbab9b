// What ranking links and answering questions about them have in common.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/feature/row_store.hpp"
#include "espalier/nn/link_scores.hpp"
#include "espalier/sample/link_examples.hpp"

namespace espalier {

// Distinct vertices, and where each of some stands among them.
class DistinctVertices {
 public:
  explicit DistinctVertices(std::vector<std::int64_t> vertices) : ids_(std::move(vertices)) {
    std::ranges::sort(ids_);
    ids_.erase(std::ranges::unique(ids_).begin(), ids_.end());
  }
  std::span<const std::int64_t> ids() const { return ids_; }
  std::int32_t place(std::int64_t vertex) const {
    return static_cast<std::int32_t>(std::ranges::lower_bound(ids_, vertex) - ids_.begin());
  }

 private:
  std::vector<std::int64_t> ids_;
};

// Links of one relation, scored together.
class Scorer {
 public:
  Scorer(const Cpu& cpu, const LinkScore& score, ConstMatrixView<float> relations)
      : cpu_(cpu), score_(score), relations_(relations) {}

  /// Of a row of h at the one end and some of its rows at the other.
  std::span<const float> operator()(ConstMatrixView<float> h, std::int32_t relation, std::int32_t fixed,
                                    std::span<const std::int32_t> others, bool others_are_heads) {
    fixed_.assign(others.size(), fixed);
    scores_.resize(others.size());
    auto of_relation = relations_;  // its row alone: some scores work on all that they are given
    if (of_relation.rows > 0) {
      of_relation.rows = 1;
      of_relation.data = relations_.row(relation);
    }
    const auto *one = others.data(), *other = fixed_.data();
    if (!others.empty())
      link_scores(cpu_, score_, h, of_relation,
                  {std::ssize(others), others_are_heads ? one : other, others_are_heads ? other : one},
                  scores_.data());
    return scores_;
  }

 private:
  const Cpu& cpu_;
  LinkScore score_;
  ConstMatrixView<float> relations_;
  std::vector<std::int32_t> fixed_;
  std::vector<float> scores_;
};

/// Collective. The rows of the vertices that ranks judge, of all vertices, to be fetched.
RowStore store_of_rows(const Grid& grid, const Ownership& blocks, ConstMatrixView<float> own,
                       std::string_view label);

/// Collective. The scores of the links of this rank, `at_once` at a time; the rows of their ends
/// are fetched.
std::vector<float> score_each(const Cpu& cpu, const Communicator& comm, const RowStore& rows, Scorer& scores,
                              std::span<const LinkTriple> links, std::int64_t at_once,
                              const std::string& label);

/// Where my rows are that are of a range of ids; all of them ascend.
RowRange places_of(const Ownership& judges, int rank, std::int64_t rows, const RowRange& ids);

}  // namespace espalier
