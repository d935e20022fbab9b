// LADIES for every space: ladies.cpp says what is drawn; it and ladies.cu draw, from sums.
#pragma once

#include "espalier/base/arrays.hpp"
#include "layer_wise.hpp"

namespace espalier {

/// Prefix sums [support + 1] of the integer weights of the columns of `sum`; the last is their
/// total, and column k has probability (prefix[k+1] - prefix[k]) / total. Mode paper squares the
/// sum (of edges), others take it (of squares) as it is. A total of more than 64 bits ends the job.
template <class Index>
std::vector<std::uint64_t> ladies_prefix(const SparseSum<Index>& sum, SamplerMode mode);

/// A column's weight from the sum over the frontier's rows; `overflow`: it has more than 64 bits.
ESPALIER_HD inline std::uint64_t ladies_weight(std::uint64_t sum, SamplerMode mode, bool* overflow) {
  if (mode != SamplerMode::kPaper) return sum;
  if (sum >> 32 != 0) *overflow = true;
  return sum * sum;
}

/// Ends the job when the weights of a batch with this support did not fit.
void check_ladies_weights(bool overflow, std::int64_t support);

/// The picks of consecutive batches.
template <class Index, class Space>
struct GroupPicks {
  std::vector<std::int64_t> counts;  ///< of each batch
  Array<Space, Index> columns;       ///< ascending within a batch
  Array<Space, double> factors;
};

/// The picks of the batches from `first` on, whose sums are given and may be changed.
template <class Index>
GroupPicks<Index, Cpu> draw_from_sums(const Cpu& cpu, SamplerMode mode, const LayerInputOn<Cpu>& input,
                                      std::int64_t first, SparseSum<Index>& sum);
template <class Index>
GroupPicks<Index, Cuda> draw_from_sums(const Cuda& cuda, SamplerMode mode, const LayerInputOn<Cuda>& input,
                                       std::int64_t first, Sums<Index, Cuda>& sums);

template <class Index, class Space>
class LadiesDistribution final : public LayerDistribution<Index, Space> {
 public:
  LadiesDistribution(const DistCsr<Index, Space>& m, SamplerMode mode)
      : mode_(mode), weight_(ladies_entry_weight(m.on_host(), mode)) {}

  void begin(const Space&, std::span<const RandomStream>) override { earlier_ = {}; }

  LayerPicks<Index, Space> pick(const Space& space, Product<Index, Space>& product,
                                const LayerInputOn<Space>& input) override {
    const auto batches = input.frontier.batches();
    std::vector<GroupPicks<Index, Space>> groups(batches);  // by their first batch
    EarlierSums<Index> summed = {std::vector<std::int64_t>(batches), std::vector<SparseSum<Index>>(batches)};
    product.sum(
        space, weight_,
        [&](std::int64_t first, SumOn<Index, Space>& sums) {
          groups[first] = draw_from_sums(space, mode_, input, first, sums);
          if constexpr (std::is_same_v<Space, Cpu>)
            if (input.stream.layer > 1 && product.uses_earlier_sums() &&
                batches * kept_bytes(sums) <= kMostKeptSumBytes) {
              summed.rows[first] = input.frontier.size(first);
              summed.sums[first].columns.assign(sums.columns.begin(), sums.columns.end());
              summed.sums[first].sums.assign(sums.sums.begin(), sums.sums.end());
            }
        },
        earlier_.rows.empty() ? nullptr : &earlier_);
    earlier_ = std::move(summed);
    std::vector<std::int64_t> offsets = {0};
    std::vector<Array<Space, Index>> columns;
    std::vector<Array<Space, double>> factors;
    for (auto& group : groups) {
      for (const auto count : group.counts) offsets.push_back(offsets.back() + count);
      if (group.counts.empty()) continue;
      columns.push_back(std::move(group.columns));
      factors.push_back(std::move(group.factors));
    }
    return {{space, std::move(offsets)}, join(space, std::move(columns)), join(space, std::move(factors))};
  }

  bool normalizes_rows() const override { return mode_ == SamplerMode::kReference; }

 private:
  // The next frontier begins with this one, so its sum is this one's and that of its new rows. Kept
  // while it is not too much for all batches of a bulk (sampling_footprint() counts it).
  static std::int64_t kept_bytes(const SparseSum<Index>& sum) {
    return std::ssize(sum.sums) * static_cast<std::int64_t>(sizeof(Index) + sizeof(std::uint64_t));
  }

  SamplerMode mode_;
  EntryWeight weight_;
  EarlierSums<Index> earlier_;  // of the layer before, where rows are 0 in nothing
};

}  // namespace espalier
