#include "espalier/feature/disk_read_model.hpp"

#include <algorithm>
#include <utility>

#include "espalier/feature/disk_rows.hpp"

namespace espalier {

DiskReadModel::DiskReadModel(Job job) : job_(std::move(job)) {
  for (const auto& table : job_.tables) {
    if (table.trainable) continue;
    auto& of = tables_.emplace_back(OfTable{table, table.held.owners(job_.blocks), {}, {}});
    for (const auto& type : table.held.types())
      if (type.held) of.ends.push_back(type.end - type.shift);
    if (of.ends.empty()) of.ends = {of.owners.rows()};
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    const int part = part_of(rank);
    std::vector<CacheSize> sizes;
    for (const auto& of : tables_) sizes.push_back({of.owners.size(part), of.table.row_bytes()});
    const auto shares = cache_shares(sizes, job_.memory);
    for (std::size_t k = 0; k < tables_.size(); ++k) {
      auto& of = tables_[k];
      auto& policy = of.policies.emplace_back(job_.rule);
      std::vector<std::int64_t> list;
      for (const auto vertex : job_.by_degree)
        if (of.table.held.holds(vertex))
          if (const auto number = of.table.held.number(vertex); of.owners.owner(number) == part)
            list.push_back(number);
      policy.set_list(std::move(list));
      policy.resize(RowCache::slots_of(shares[k], of.table.row_bytes()));
    }
  }
}

std::int64_t DiskReadModel::step_end(std::int64_t step) const {
  return std::min((step + 1) * job_.batches_per_step, job_.batches);
}

void DiskReadModel::add(std::int64_t batch, int rank, std::span<const std::int64_t> vertices) {
  for (auto* list : {&waiting_, &fresh_}) {
    auto& wanted = (*list)[batch / job_.batches_per_step];
    wanted.resize(static_cast<std::size_t>(ranks()), std::vector<std::vector<std::int64_t>>(tables_.size()));
    for (std::size_t k = 0; k < tables_.size(); ++k) {
      const auto& held = tables_[k].table.held;
      auto& numbers = wanted[static_cast<std::size_t>(rank)][k];
      for (const auto vertex : vertices)
        if (held.holds(vertex)) numbers.push_back(held.number(vertex));
    }
  }
  ++added_;
  if (added_ % job_.bulk == 0 || added_ == job_.batches) window_is_there();
}

// Steps whose batches are all there, as a rank takes them.
void DiskReadModel::window_is_there() {
  for (; step_ * job_.batches_per_step < job_.batches && step_end(step_) <= added_; ++step_) {
    if (prefetched_ < added_) prefetch();
    take_step(step_);
  }
}

void DiskReadModel::prefetch() {
  prefetched_ = added_;
  if (job_.rule != CacheRule::kBelady) return fresh_.clear();
  const std::int64_t reads = has_all() ? 1 : 2;
  for (std::size_t k = 0; k < tables_.size(); ++k)
    for (int rank = 0; rank < ranks(); ++rank) {
      auto& policy = tables_[k].policies[static_cast<std::size_t>(rank)];
      for (const auto& [step, wanted] : fresh_) {
        if (!has_all()) policy.prefetch(2 * step, read_by(wanted, k, rank, /*for_others=*/true));
        policy.prefetch(reads * (step + 1) - 1, read_by(wanted, k, rank, false));
      }
      policy.end_prefetch();
    }
  fresh_.clear();
}

void DiskReadModel::take_step(std::int64_t step) {
  const auto wanted = std::move(waiting_[step]);
  waiting_.erase(step);
  for (std::size_t k = 0; k < tables_.size(); ++k)
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!has_all()) read(tables_[k], rank, read_by(wanted, k, rank, /*for_others=*/true));
      read(tables_[k], rank, read_by(wanted, k, rank, false));
    }
}

// Of its own rows a rank reads what it wants itself, and what others of its process column want.
std::vector<std::int64_t> DiskReadModel::read_by(const Wanted& wanted, std::size_t table, int rank,
                                                 bool for_others) const {
  const auto& owners = tables_[table].owners;
  std::vector<std::int64_t> numbers;
  for (int asks = rank % job_.replication; asks < ranks(); asks += job_.replication)
    if ((asks != rank) == for_others)
      std::ranges::copy_if(wanted[static_cast<std::size_t>(asks)][table], std::back_inserter(numbers),
                           [&](auto number) { return owners.owner(number) == part_of(rank); });
  return numbers;
}

void DiskReadModel::read(OfTable& of, int rank, const std::vector<std::int64_t>& numbers) {
  auto& policy = of.policies[static_cast<std::size_t>(rank)];
  std::vector<std::int32_t> slots(numbers.size());
  policy.begin(numbers, slots);
  std::vector<std::int64_t> missed;
  for (std::size_t k = 0; k < numbers.size(); ++k)
    if (slots[k] < 0) missed.push_back(numbers[k]);
  policy.end(missed);
  const auto rows = rows_read(of, part_of(rank), missed);
  counts_.add({std::ssize(numbers), std::ssize(missed), rows * of.table.row_bytes()});
}

// Rows of the chunks that have some of these: of the graph file, or in another form of a file with
// the rows of the part.
std::int64_t DiskReadModel::rows_read(const OfTable& of, int part, std::vector<std::int64_t> missed) const {
  const bool own = of.table.converted();
  if (own) missed = of.owners.places_of(part, missed);
  std::ranges::sort(missed);
  const auto ends = own ? std::vector<std::int64_t>{of.owners.size(part)} : of.ends;
  const auto chunk_rows =
      DiskRows::rows_of_chunk(own ? of.owners.size(part) : of.owners.rows(), of.table.row_bytes());
  std::int64_t rows = 0, read_to = 0;
  for (const auto number : missed) {
    if (number < read_to) continue;
    const auto type = std::ranges::upper_bound(ends, number);
    const auto begin = type == ends.begin() ? 0 : *std::prev(type);
    const auto from = begin + (number - begin) / chunk_rows * chunk_rows;
    read_to = std::min(*type, from + chunk_rows);
    rows += read_to - from;
  }
  return rows;
}

}  // namespace espalier
