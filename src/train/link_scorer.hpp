// Scores of links by the rows of their ends, which are fetched from whoever has them: for the
// ranking of an evaluation (link_evaluator.hpp) and for requests (link_answers.cpp).
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/dense/first_not_finite.hpp"
#include "espalier/feature/row_store.hpp"
#include "espalier/nn/link_decoder.hpp"
#include "espalier/sample/link_examples.hpp"

namespace espalier {

// The rows of some vertices, each once.
class RowsOfVertices {
 public:
  RowsOfVertices(const Cpu& cpu, const RowStore& store, std::string_view label)
      : cpu_(cpu), store_(store), label_(label) {}

  /// Collective. Of these, in place of those before.
  void fetch(std::vector<std::int64_t> vertices) {
    ids_ = std::move(vertices);
    std::ranges::sort(ids_);
    ids_.erase(std::ranges::unique(ids_).begin(), ids_.end());
    const std::span<const std::int64_t> list = ids_;
    store_.fetch(cpu_, std::span(&list, list.empty() ? 0 : 1), rows_, label_);
  }
  const Matrix<float>& rows() const { return rows_.front(); }
  std::int32_t place(std::int64_t vertex) const {
    return static_cast<std::int32_t>(std::ranges::lower_bound(ids_, vertex) - ids_.begin());
  }

 private:
  const Cpu& cpu_;
  const RowStore& store_;
  std::string_view label_;
  std::vector<std::int64_t> ids_;
  std::vector<Matrix<float>> rows_;
};

// Links of one relation, scored together.
class Scorer {
 public:
  Scorer(const Cpu& cpu, const LinkScore& score, std::span<const ConstMatrixView<float>> tensors)
      : cpu_(cpu), decoder_(make_link_decoder(cpu, score)), tensors_(tensors.begin(), tensors.end()) {
    if (!tensors.empty()) relations_ = tensors[0];
  }

  /// Of a row of h at the one end and some of its rows at the other.
  std::span<const float> operator()(ConstMatrixView<float> h, std::int32_t relation, std::int32_t fixed,
                                    std::span<const std::int32_t> others, bool others_are_heads) {
    scores_.resize(others.size());
    // The relation's row alone: some scores work on all that they are given.
    if (!tensors_.empty()) tensors_[0] = {1, relations_.columns, relations_.row(relation)};
    for (std::size_t from = 0; from < others.size(); from += kAtOnce) {
      const auto some = others.subspan(from, std::min(kAtOnce, others.size() - from));
      fixed_.assign(some.size(), fixed);
      const auto *one = some.data(), *other = fixed_.data();
      decoder_->forward(cpu_, h, tensors_,
                        {std::ssize(some), others_are_heads ? one : other, others_are_heads ? other : one},
                        scores_.data() + from);
    }
    if (const auto k = first_not_finite(cpu_, scores_.data(), std::ssize(scores_)); k >= 0 && bad_.empty())
      bad_ = fmt::format("a link of relation {} scores {}", relation, scores_[static_cast<std::size_t>(k)]);
    return scores_;
  }

  /// Collective. Throws UserError(kDiverged), on every rank, where a score was not finite on any.
  void check(const Communicator& comm) const {
    agree(comm, [&] {
      if (!bad_.empty()) throw UserError(ExitCode::kDiverged, bad_);
    });
  }

 private:
  static constexpr std::size_t kAtOnce = 4096;  // a network keeps numbers of each

  const Cpu& cpu_;
  std::unique_ptr<LinkDecoder<Cpu>> decoder_;
  std::vector<ConstMatrixView<float>> tensors_;
  ConstMatrixView<float> relations_;
  std::vector<std::int32_t> fixed_;
  std::vector<float> scores_;
  std::string bad_;  ///< the first score that is not finite, in words
};

/// Collective. The rows of the vertices that ranks evaluate, of all vertices, to be fetched.
RowStore store_of_rows(const Grid& grid, const Ownership& blocks, ConstMatrixView<float> own,
                       std::string_view label);

/// Collective. The scores of the links of this rank, `at_once` at a time; the rows of their ends
/// are fetched.
std::vector<float> score_each(const Cpu& cpu, const Communicator& comm, const RowStore& rows, Scorer& scores,
                              std::span<const LinkTriple> links, std::int64_t at_once,
                              const std::string& label);

/// Where my rows are that are of a range of ids; all of them ascend.
RowRange places_of(const Ownership& evaluated_by, int rank, std::int64_t rows, const RowRange& ids);

}  // namespace espalier
