#include "espalier/history/history_policy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "espalier/base/error.hpp"

namespace espalier {

void score_rows(const Cpu& cpu, const PrunedLayer& layer, ConstMatrixView<float> dh,
                Buffer<HistoryCandidate>& candidates, const std::uint8_t* recomputed) {
  ESPALIER_CHECK(dh.rows == layer.needed(), "{} gradients for {} needed rows", dh.rows, layer.needed());
  candidates.resize(static_cast<std::size_t>(dh.rows));
  const KnownRows known(layer, recomputed);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t c = 0; c < dh.rows; ++c)
    candidates[c] = known.candidate(c, score_bits(score_of_row(dh.row(c), dh.columns)));
}

std::uint64_t stable_share(double p_grad) {
  ESPALIER_CHECK(p_grad >= 0 && p_grad <= 1, "p_grad {}", p_grad);
  return static_cast<std::uint64_t>(std::llrint(p_grad * 0x1p32));
}

std::int64_t stable_count(std::int64_t m, std::uint64_t share) {
  ESPALIER_CHECK(m < (std::int64_t{1} << 31), "{} rows", m);
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(m) * share + (std::uint64_t{1} << 31)) >> 32);
}

HistoryChoice choose_history(std::span<const HistoryCandidate> candidates, std::uint64_t share) {
  using Key = std::pair<std::uint64_t, std::int64_t>;
  const auto key = [](const HistoryCandidate& of) { return Key(of.score, of.vertex); };
  const auto stable = stable_count(std::ssize(candidates), share);
  Key last;  // of the stable ones
  if (stable > 0) {
    std::vector<Key> keys;
    keys.reserve(candidates.size());
    for (const auto& candidate : candidates) keys.push_back(key(candidate));
    std::nth_element(keys.begin(), keys.begin() + stable - 1, keys.end());
    last = keys[stable - 1];
  }
  HistoryChoice choice;
  for (const auto& candidate : candidates) {
    const bool is_stable = stable > 0 && key(candidate) <= last;
    if (is_stable && !candidate.cached()) choice.admitted.push_back(candidate);
    if (!is_stable && candidate.seen()) choice.evicted.push_back(candidate);
  }
  return choice;
}

}  // namespace espalier
