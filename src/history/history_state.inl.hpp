// What a checkpoint holds of a cache of history.
#pragma once

#include <algorithm>
#include <map>

#include "history_cache.inl.hpp"

namespace espalier {

// What step `next` finds.
template <class Space>
std::vector<HistoryRecord> HistoryCacheOn<Space>::held(const Space& space, std::int64_t next) {
  ESPALIER_CHECK(step_ <= next, "what step {} finds of history, after step {} has begun", next, step_);
  commit_for(space, next);
  std::vector<HistoryRecord> records;
  for (std::int64_t slot = 0; slot < kept_->index.slots(); ++slot)
    if (const auto& entry = kept_->index.entry(slot); entry.key >= 0)
      records.push_back({HistoryRecord::Kind::kHeld, layer_of(entry.key), vertex_of(entry.key), entry.stamp,
                         0, entry.score, slot});
  return records;
}

template <class Space>
std::vector<HistoryRecord> HistoryCacheOn<Space>::readable(const Space& space, std::int64_t next) {
  auto records = held(space, next);
  std::erase_if(records, [&](const HistoryRecord& record) { return next - record.stamp > shape_.t_stale; });
  return records;
}

template <class Space>
std::vector<HistoryRecord> HistoryCacheOn<Space>::records(const Space& space, std::int64_t next) {
  using Kind = HistoryRecord::Kind;
  auto records = held(space, next);
  for (const auto& [number, step] : kept_->steps.all) {
    if (number >= next) break;
    ESPALIER_CHECK(step.ended, "what step {} finds of history, in the middle of step {}", next, number);
    for (const auto& write : step.lowest_writes())
      records.push_back({Kind::kWritten, layer_of(write.key), vertex_of(write.key), number, write.batch,
                         write.score, write.source});
    std::vector<std::int64_t> evictions = step.evictions;
    std::ranges::sort(evictions);
    const auto repeated = std::ranges::unique(evictions);
    evictions.erase(repeated.begin(), repeated.end());
    for (const auto key : evictions)
      records.push_back({Kind::kDropped, layer_of(key), vertex_of(key), number});
  }
  std::ranges::sort(records, {}, &HistoryRecord::order);
  return records;
}

template <class Space>
void HistoryCacheOn<Space>::read_records(const Space& space, std::span<const HistoryRecord> records,
                                         std::uint32_t* words) const {
  const auto size = row_words();
  std::fill_n(words, std::ssize(records) * size, 0u);
  // Of what is held, and of each step: where its rows lie, and which records they are of.
  std::map<std::int64_t, std::vector<std::int64_t>> places, targets;
  for (std::size_t k = 0; k < records.size(); ++k) {
    const auto& record = records[k];
    if (record.kind == HistoryRecord::Kind::kDropped) continue;
    const auto from = record.kind == HistoryRecord::Kind::kHeld ? -1 : record.stamp;
    places[from].push_back(record.place);
    targets[from].push_back(static_cast<std::int64_t>(k));
  }
  for (const auto& [from, of_rows] : places) {
    Array<Space, std::uint32_t> gathered(of_rows.size() * static_cast<std::size_t>(size));
    if (from < 0) {
      copy_kept(space, of_rows, gathered.data());
    } else {
      std::vector<PlacedRow> placed;
      for (const auto source : of_rows) placed.push_back({source, std::ssize(placed)});
      kept_->steps.all.at(from).place(space, std::move(placed), size, gathered.data());
    }
    const auto on_host = copy_from(space, gathered);
    const auto& to = targets[from];
    for (std::size_t k = 0; k < to.size(); ++k)
      std::copy_n(on_host.data() + static_cast<std::int64_t>(k) * size, size, words + to[k] * size);
  }
}

template <class Space>
void HistoryCacheOn<Space>::restore(const Space& space, std::int64_t next,
                                    std::span<const HistoryRecord> records, const std::uint32_t* words) {
  const auto size = row_words();
  kept_ = std::make_unique<Kept>(shape_);
  step_ = next - 1;
  std::vector<HistoryIndex::Entry> entries;
  Buffer<std::uint32_t> held;
  std::map<std::int64_t, std::pair<std::vector<HistoryRecord>, Buffer<std::uint32_t>>> written;
  auto& steps = kept_->steps.all;
  for (std::size_t k = 0; k < records.size(); ++k) {
    const auto& record = records[k];
    const auto* const row = words + static_cast<std::int64_t>(k) * size;
    const auto key = history_key(record.layer, record.vertex);
    if (record.kind == HistoryRecord::Kind::kHeld) {
      entries.push_back({key, record.stamp, record.score});
      held.insert(held.end(), row, row + size);
      continue;
    }
    auto& step = steps[record.stamp];
    if (record.kind == HistoryRecord::Kind::kDropped) {
      step.evictions.push_back(key);
    } else {
      auto& [of_step, rows] = written[record.stamp];
      of_step.push_back(record);
      rows.insert(rows.end(), row, row + size);
    }
  }
  for (const auto& [number, of_step] : written) {
    write_kept(number, of_step.first, copy_to(space, std::span<const std::uint32_t>(of_step.second)));
  }
  for (auto& [number, step] : steps) step.ended = true;
  const auto count = std::ssize(entries);
  kept_->index.restore(std::move(entries));
  kept_->make_place(space, count, size);
  if (count > 0) copy_to(space, held.data(), std::ssize(held), kept_->rows.data());
}

}  // namespace espalier
