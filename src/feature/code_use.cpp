#include "espalier/feature/code_use.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace espalier {

CodeUse::CodeUse(const Quantisation& packing)
    : columns_(packing.columns),
      bits_(packing.bits),
      seen_(static_cast<std::size_t>(columns_ << bits_), 0),
      numbers_(static_cast<std::size_t>(columns_)) {}

void CodeUse::add(ConstMatrixView<float> rows, ConstMatrixView<QuantisedWord> packed) {
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(packed.row(i));
    for (std::int64_t j = 0; j < columns_; ++j) {
      seen_[(j << bits_) + quantised_code(bytes, j, bits_)] = 1;
      auto& numbers = numbers_[j];
      if (std::ssize(numbers) > kMostNumbers) continue;
      const auto at = std::ranges::lower_bound(numbers, rows.row(i)[j]);
      if (at == numbers.end() || *at != rows.row(i)[j]) numbers.insert(at, rows.row(i)[j]);
    }
  }
}

std::vector<PoorColumn> CodeUse::poor_columns(const Communicator& comm) const {
  constexpr std::int64_t kFewOf = 8, kAtOnce = 16;
  if (bits_ == 1) return {};
  auto seen = seen_;
  comm.all_reduce(std::span(seen), Reduction::kMax, "setup");
  std::vector<PoorColumn> few, poor;
  for (std::int64_t j = 0; j < columns_; ++j) {
    const auto codes = std::accumulate(&seen[j << bits_], &seen[(j + 1) << bits_], std::int64_t{0});
    if (codes > 1 && codes <= std::max<std::int64_t>(2, (1 << bits_) / kFewOf)) few.push_back({j, codes, 0});
  }
  // Their numbers of all ranks, of some columns at a time.
  for (auto begin = few.begin(); begin != few.end();) {
    const auto end = begin + std::min<std::int64_t>(kAtOnce, few.end() - begin);
    Buffer<std::int64_t> sizes;
    Buffer<float> mine;
    for (auto of = begin; of != end; ++of) {
      const auto& numbers = numbers_[of->column];
      sizes.push_back(std::ssize(numbers));
      mine.insert(mine.end(), numbers.begin(), numbers.end());
    }
    const auto all_sizes = comm.all_gather_v(std::span<const std::int64_t>(sizes), "setup");
    const auto all = comm.all_gather_v(std::span<const float>(mine), "setup");
    std::vector<std::vector<float>> numbers(static_cast<std::size_t>(end - begin));
    auto from = all.begin();
    for (std::size_t k = 0; k < all_sizes.size(); from += all_sizes[k++])
      numbers[k % numbers.size()].insert(numbers[k % numbers.size()].end(), from, from + all_sizes[k]);
    for (auto& of : numbers) {
      std::ranges::sort(of);
      of.erase(std::ranges::unique(of).begin(), of.end());
      begin->numbers = std::min(std::ssize(of), kMostNumbers + 1);
      if (begin->numbers >= kFewOf * begin->codes) poor.push_back(*begin);
      ++begin;
    }
  }
  return poor;
}

}  // namespace espalier
