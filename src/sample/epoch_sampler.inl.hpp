// What EpochSamplerOn does, for every space.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "espalier/base/cuda.hpp"
#include "espalier/base/error.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/sparse/transpose.hpp"

namespace espalier {

/// Blocks of these layers, from 0, get their transposes.
inline void transpose_layers(const Cuda& cuda, std::span<const std::size_t> layers,
                             std::span<MinibatchOn<Cuda>> minibatches) {
  if (layers.empty()) return;
  std::vector<BlockView<Cuda>*> blocks;
  for (auto& minibatch : minibatches)
    for (const auto layer : layers) blocks.push_back(&minibatch.blocks[layer]);
  const auto made = transpose_all(cuda, blocks);
  for (auto& minibatch : minibatches)
    minibatch.memory = std::make_shared<std::array<std::shared_ptr<const void>, 2>>(
        std::array{std::move(minibatch.memory), made});
}

template <class Space>
EpochSamplerOn<Space>::EpochSamplerOn(const Grid& grid, SamplerOn<Space>& sampler, const EpochPlan& plan,
                                      std::int64_t bulk, SampleAhead* ahead, std::int64_t first,
                                      std::span<const std::size_t> transposed)
    : grid_(grid),
      sampler_(sampler),
      plan_(plan),
      bulk_(bulk),
      ahead_(ahead),
      transposed_(transposed.begin(), transposed.end()),
      begun_(first),
      sampled_(first) {}

template <class Space>
EpochSamplerOn<Space>::~EpochSamplerOn() {
  if (under_way() && ahead_ != nullptr) window_done_.wait();
}

template <class Space>
void EpochSamplerOn<Space>::begin_window(const Space& space) {
  ESPALIER_CHECK(!under_way(), "the window before batch {} is under way", begun_);
  if (all_begun()) return;
  begun_ = std::min(sampled_ + bulk_, plan_.batches());
  const auto sample = [this, kept = plan_.kept_by(grid_.world().rank(), sampled_, begun_)](const Space& on) {
    plan_.examples().prepare(ahead_ != nullptr ? ahead_->world : grid_.world(), kept);
    std::vector<SeedBatch> mine;
    for (const auto batch : kept) mine.push_back(plan_.batch(batch));
    window_ = sampler_.sample(on, mine, plan_.seed(), plan_.epoch());
    exclude_edges<Space>(on, mine, window_);
    if constexpr (std::is_same_v<Space, Cuda>) transpose_layers(on, transposed_, window_);
    counts_.add(on, window_);
  };
  if (ahead_ == nullptr) return sample(space);
  window_done_ = ahead_->queue.add([this, space, sample] {
    if constexpr (std::is_same_v<Space, Cuda>) space.use();
    ahead_->world.traffic().clear();
    sample(space);
    // Then the window is everyone's.
    if constexpr (std::is_same_v<Space, Cuda>) space.synchronize();
    moved_.take_over(ahead_->world.traffic());
  });
}

template <class Space>
void EpochSamplerOn<Space>::finish_window() {
  if (ahead_ != nullptr) window_done_.get();
  grid_.traffic().take_over(moved_);
  for (auto& minibatch : window_) waiting_.emplace(minibatch.number, std::move(minibatch));
  window_.clear();
  sampled_ = begun_;
}

template <class Space>
void EpochSamplerOn<Space>::sample_until(const Space& space, std::int64_t end) {
  while (sampled_ < end) {
    if (!under_way()) begin_window(space);
    finish_window();
  }
}

template <class Space>
std::vector<MinibatchOn<Space>> EpochSamplerOn<Space>::take(std::int64_t begin, std::int64_t end) {
  std::vector<MinibatchOn<Space>> taken;
  const auto first = waiting_.lower_bound(begin), last = waiting_.lower_bound(end);
  for (auto at = first; at != last; ++at) taken.push_back(std::move(at->second));
  waiting_.erase(first, last);
  return taken;
}

template <class Space>
SampleCounts EpochSamplerOn<Space>::counts_of_taken(const Space& space) const {
  SampleCounts untaken;
  untaken.add(space, window_);
  for (const auto& [number, minibatch] : waiting_) untaken.add(space, {&minibatch, 1});
  auto counts = counts_;
  counts.add(untaken, -1);
  return counts;
}

}  // namespace espalier
