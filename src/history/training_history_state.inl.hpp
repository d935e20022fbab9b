// How TrainingHistoryOn gives its state away between two steps and goes on from one.
#pragma once

#include <fmt/format.h>

#include "training_history.inl.hpp"

namespace espalier {

inline constexpr std::int64_t kRecordWords = 10;

inline void put_words(std::uint64_t value, std::uint32_t* to) {
  to[0] = static_cast<std::uint32_t>(value);
  to[1] = static_cast<std::uint32_t>(value >> 32);
}
inline std::uint64_t take_words(const std::uint32_t* from) {
  return from[0] | static_cast<std::uint64_t>(from[1]) << 32;
}

// A record does not know what number a step had: another job may count its steps otherwise.
inline void put_record(const HistoryRecord& record, std::int64_t next, std::uint32_t* to) {
  to[0] = static_cast<std::uint32_t>(record.kind);
  to[1] = static_cast<std::uint32_t>(record.layer);
  put_words(static_cast<std::uint64_t>(record.batch), to + 2);
  put_words(static_cast<std::uint64_t>(record.vertex), to + 4);
  put_words(static_cast<std::uint64_t>(next - record.stamp), to + 6);
  put_words(record.score, to + 8);
}

inline HistoryRecord take_record(const std::uint32_t* from, std::int64_t next) {
  return {
      static_cast<HistoryRecord::Kind>(from[0]),       static_cast<int>(from[1]),
      static_cast<std::int64_t>(take_words(from + 4)), next - static_cast<std::int64_t>(take_words(from + 6)),
      static_cast<std::int64_t>(take_words(from + 2)), take_words(from + 8)};
}

// Words as a StateTensor moves them.
inline std::uint32_t* as_words(float* values) {
  return reinterpret_cast<std::uint32_t*>(values);
}

template <class Space>
std::int64_t TrainingHistoryOn<Space>::parts() const {
  return history_.scope == "grid" ? kHistoryShards : batches_per_step_;
}

template <class Space>
int TrainingHistoryOn<Space>::rank_of_part(std::int64_t part) const {
  const int ranks = grid_->host().ranks();
  if (const auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    return of_grid->rank_of_shard(static_cast<int>(part));
  return static_cast<int>(part % ranks);  // of a lane: as EpochPlan deals batches
}

template <class Space>
std::string TrainingHistoryOn<Space>::tensor_name(const char* what) const {
  return fmt::format("{}{}-{}/{}", kHistoryTensors, history_.scope, history_.stored, what);
}

template <class Space>
std::vector<StateTensor> TrainingHistoryOn<Space>::state(const Space& space, std::int64_t next) {
  // Records that lie together in the file, and whose they are.
  struct Run {
    RowRange rows;
    const HistoryCacheOn<Space>* cache;
    std::vector<HistoryRecord> records;
  };
  const auto runs = std::make_shared<std::vector<Run>>();
  const auto counts = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(parts()), 0);
  if (history_.scope == "grid") {
    auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_);
    auto& cache = of_grid != nullptr ? of_grid->part() : lane(0);
    auto& run = runs->emplace_back();
    run.cache = &cache;
    run.records = cache.records(space, next);
    const auto shard_of = [](const HistoryRecord& record) { return history_shard(record.vertex); };
    std::ranges::stable_sort(run.records, {}, shard_of);
    for (const auto& record : run.records) ++(*counts)[shard_of(record)];
  } else {
    for (auto& [lane, cache] : std::get<Lanes>(cache_)) {
      auto records = cache.records(space, next);
      (*counts)[lane] = std::ssize(records);
      if (!records.empty()) runs->push_back({{}, &cache, std::move(records)});
    }
  }
  const auto& world = grid_->host().world();
  world.all_reduce(std::span<std::int64_t>(*counts), Reduction::kSum, "checkpoint");
  std::vector<RowRange> mine;
  std::int64_t total = 0;
  auto run = runs->begin();
  for (std::int64_t part = 0; part < parts(); ++part) {
    const auto size = (*counts)[part];
    if (size > 0 && rank_of_part(part) == world.rank()) {
      if (run->rows.end == 0) run->rows.begin = total;
      run->rows.end = total + size;
      if (run->rows.size() == std::ssize(run->records)) mine.push_back((run++)->rows);
    }
    total += size;
  }

  const auto run_of = [runs](RowRange rows) -> const Run& {
    return *std::ranges::find_if(
        *runs, [&](const Run& some) { return some.rows.begin <= rows.begin && rows.end <= some.rows.end; });
  };
  const auto write_counts = [counts](RowRange rows, float* to) {
    for (auto k = rows.begin; k < rows.end; ++k) *as_words(to++) = static_cast<std::uint32_t>((*counts)[k]);
  };
  const auto write_records = [run_of, next](RowRange rows, float* to) {
    const auto& of = run_of(rows);
    for (auto k = rows.begin; k < rows.end; ++k, to += kRecordWords)
      put_record(of.records[k - of.rows.begin], next, as_words(to));
  };
  const auto write_rows = [run_of, space](RowRange rows, float* to) {
    const auto& of = run_of(rows);
    const auto records = std::span(of.records).subspan(static_cast<std::size_t>(rows.begin - of.rows.begin));
    of.cache->read_records(space, records.first(static_cast<std::size_t>(rows.size())), as_words(to));
  };
  const auto words = history_row_bytes(shape_.precision, shape_.width) / 4;
  const RowRange all_counts = {0, world.rank() == 0 ? parts() : 0};
  return {{tensor_name("counts"), parts(), 1, {all_counts}, write_counts, true},
          {tensor_name("records"), total, kRecordWords, mine, write_records, true},
          {tensor_name("rows"), total, words, mine, write_rows, true}};
}

template <class Space>
std::vector<HeldHistory> TrainingHistoryOn<Space>::held(const Space& space, std::int64_t next) {
  std::vector<HeldRow> held;
  const auto add = [&](HistoryCacheOn<Space>& cache) {
    for (const auto& record : cache.readable(space, next))
      held.push_back({record.layer, next - record.stamp});
  };
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    add(of_grid->part());
  else
    for (auto& [number, cache] : std::get<Lanes>(cache_)) add(cache);
  return count_held(grid_->host().world(), held);
}

template <class Space>
bool TrainingHistoryOn<Space>::restore(const Space& space, std::int64_t next,
                                       std::span<const StateTensor> tensors) {
  const auto words = history_row_bytes(shape_.precision, shape_.width) / 4;
  const auto find = [&](const char* what, std::int64_t columns) -> const StateTensor* {
    const auto found = std::ranges::find(tensors, tensor_name(what), &StateTensor::name);
    return found != tensors.end() && found->columns == columns && found->words ? &*found : nullptr;
  };
  const auto* const counts = find("counts", 1);
  const auto* const records = find("records", kRecordWords);
  const auto* const rows = find("rows", words);
  if (counts == nullptr || records == nullptr || rows == nullptr || counts->rows != parts()) return false;
  auto sizes = counts->all();
  std::vector<HistoryRecord> taken;
  Buffer<float> kept, some;
  const auto take = [&](RowRange range) {
    some.resize(static_cast<std::size_t>(range.size() * kRecordWords));
    if (range.size() > 0) records->read(range, some.data());
    for (std::int64_t k = 0; k < range.size(); ++k)
      taken.push_back(take_record(as_words(some.data()) + k * kRecordWords, next));
    const auto before = std::ssize(kept);
    kept.resize(static_cast<std::size_t>(before + range.size() * words));
    if (range.size() > 0) rows->read(range, kept.data() + before);
  };
  for (std::int64_t part = 0, begin = 0; part < parts(); ++part) {
    const auto end = begin + as_words(sizes.data())[part];
    if (rank_of_part(part) == grid_->host().world().rank()) {
      take({begin, end});
      if (history_.scope == "lane") {
        lane(part).restore(space, next, taken, as_words(kept.data()));
        taken.clear();
        kept.clear();
      }
    }
    begin = end;
  }
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    of_grid->restore(space, next, taken, as_words(kept.data()));
  else if (history_.scope == "grid")
    lane(0).restore(space, next, taken, as_words(kept.data()));
  return true;
}

}  // namespace espalier
