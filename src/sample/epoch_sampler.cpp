#include "espalier/sample/epoch_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace espalier {

void SampleCounts::add(const Cpu& cpu, const std::vector<Minibatch>& minibatches) {
  std::uint64_t digests = 0;
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1) reduction(+ : digests)
  for (std::size_t b = 0; b < minibatches.size(); ++b) digests += sample_digest(minibatches[b]);
  digest += digests;
  for (const auto& minibatch : minibatches) {
    ++batches;
    sampled_edges += minibatch.sampled_edges();
    input_rows += std::ssize(minibatch.vertices);
  }
}

SampleCounts total(const SampleCounts& mine, const Communicator& comm) {
  std::uint64_t sums[] = {mine.digest, static_cast<std::uint64_t>(mine.batches),
                          static_cast<std::uint64_t>(mine.sampled_edges),
                          static_cast<std::uint64_t>(mine.input_rows)};
  comm.all_reduce(std::span<std::uint64_t>(sums), Reduction::kSum, "report");
  return {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2]),
          static_cast<std::int64_t>(sums[3])};
}

EpochSampler::EpochSampler(const Grid& grid, Sampler& sampler, const EpochPlan& plan, std::int64_t bulk,
                           SampleAhead* ahead)
    : grid_(grid), sampler_(sampler), plan_(plan), bulk_(bulk), ahead_(ahead) {}

EpochSampler::~EpochSampler() {
  if (!under_way() || ahead_ == nullptr) return;
  try {
    ahead_->worker.wait();
  } catch (...) {  // the window was not wanted
  }
}

void EpochSampler::begin_window(const Cpu& cpu) {
  ESPALIER_CHECK(!under_way(), "the window before batch {} is under way", begun_);
  if (all_begun()) return;
  begun_ = std::min(sampled_ + bulk_, plan_.batches());
  std::vector<SeedBatch> mine;
  for (auto batch = sampled_; batch < begun_; ++batch)
    if (plan_.rank_of(batch) == grid_.world().rank()) mine.push_back({batch, plan_.seeds(batch)});
  const auto sample = [this, cpu, mine = std::move(mine)] {
    window_ = sampler_.sample(cpu, mine, plan_.seed(), plan_.epoch());
    counts_.add(cpu, window_);
  };
  if (ahead_ == nullptr) return sample();
  ahead_->worker.start([this, sample] {
    ahead_->ledger.clear();
    sample();
    moved_.take_over(ahead_->ledger);
  });
}

void EpochSampler::finish_window() {
  if (ahead_ != nullptr) ahead_->worker.wait();
  grid_.traffic().take_over(moved_);
  for (auto& minibatch : window_) waiting_.emplace(minibatch.number, std::move(minibatch));
  window_.clear();
  sampled_ = begun_;
}

void EpochSampler::sample_until(const Cpu& cpu, std::int64_t end) {
  while (sampled_ < end) {
    if (!under_way()) begin_window(cpu);
    finish_window();
  }
}

std::vector<Minibatch> EpochSampler::take(std::int64_t begin, std::int64_t end) {
  std::vector<Minibatch> taken;
  const auto first = waiting_.lower_bound(begin), last = waiting_.lower_bound(end);
  for (auto at = first; at != last; ++at) taken.push_back(std::move(at->second));
  waiting_.erase(first, last);
  return taken;
}

std::int64_t automatic_bulk(const SamplerShape& shape, bool layer_wise, std::int64_t batch_size,
                            std::int64_t batches, int ranks, std::int64_t nodes, std::int64_t edges,
                            std::int64_t bytes) {
  const double n = std::max<double>(1, static_cast<double>(nodes));
  const double mean_degree = static_cast<double>(edges) / n;
  double rows = static_cast<double>(batch_size), needed = 0;
  for (const auto fanout : shape.fanout) {
    // Frontiers prefer vertices of high degree. A layer-wise block has no more entries than its rows have.
    const double wanted =
        fanout < 0 ? (layer_wise ? n : mean_degree) : std::min(static_cast<double>(fanout), n);
    const double new_edges =
        rows * std::min(wanted, fanout < 0 && !layer_wise ? wanted : 4 * mean_degree + 1);
    const double new_rows = layer_wise ? wanted : new_edges;
    // Whole rows come from their owners (index and value), or sums of them (index and sum) and their parts.
    needed += std::min(rows * 4 * mean_degree, static_cast<double>(edges)) * (layer_wise ? 24 : 8);
    // Per edge: global id, value, local id, value, and, in a graph so large that ids go by hash, a slot of
    // its table at load one half; per row:
    // views and offsets; per pick of a layer: the draw, what was removed, column, factor, slot, vertex.
    needed += new_edges * (8 + 4 + 4 + 4 + (layer_wise ? 0 : 32)) + rows * 64;
    if (layer_wise) needed += wanted * 160;
    rows = std::min(n, rows + new_rows);
  }
  const double per_rank = std::max(1.0, std::floor(static_cast<double>(bytes) / needed));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(per_rank * ranks, 1e15)), 1,
                                  std::max<std::int64_t>(batches, 1));
}

}  // namespace espalier
