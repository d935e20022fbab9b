#include "espalier/comm/counters.hpp"

#include <algorithm>

#include "espalier/base/error.hpp"

namespace espalier {

Counter& Counters::of(std::string_view group, std::string_view name) {
  const auto found = std::ranges::find_if(
      all_, [&](const Counter& counter) { return counter.group == group && counter.name == name; });
  ESPALIER_CHECK(found != all_.end(), "no counter {} {}", group, name);
  return *found;
}

std::optional<std::int64_t> Counters::find(std::string_view group, std::string_view name) const {
  for (const auto& counter : all_)
    if (counter.group == group && counter.name == name && counter.value != kUnknown) return counter.value;
  return {};
}

bool Counters::has(std::string_view group) const {
  return std::ranges::find(all_, group, &Counter::group) != all_.end();
}

void Counters::add(const Counters& more) {
  for (const auto& counter : more.all_) {
    const auto mine = std::ranges::find_if(
        all_, [&](const Counter& one) { return one.group == counter.group && one.name == counter.name; });
    if (mine == all_.end())
      all_.push_back(counter);
    else
      add_to(*mine, counter.value);
  }
}

void Counters::clear() {
  for (auto& counter : all_) counter.value = 0;
}

std::map<std::string, std::int64_t> Counters::sums() const {
  std::map<std::string, std::int64_t> sums;
  for (const auto& counter : all_)
    if (counter.over == OverRanks::kSum) sums[counter.group + "_" + counter.name] = counter.value;
  return sums;
}

void Counters::add_sums(const std::map<std::string, std::int64_t>& saved) {
  for (auto& counter : all_)
    if (const auto found = saved.find(counter.group + "_" + counter.name);
        found != saved.end() && counter.over == OverRanks::kSum)
      add_to(counter, found->second);
}

Counters over_ranks(const Counters& mine, const Communicator& comm) {
  std::vector<std::int64_t> sums, most;
  for (const auto& counter : mine.all_) {
    const bool known = counter.value != Counters::kUnknown;
    most.push_back(!known);
    if (counter.over == OverRanks::kSum)
      sums.push_back(known ? counter.value : 0);
    else
      most.push_back(counter.value);
  }
  comm.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "report");
  comm.all_reduce(std::span<std::int64_t>(most), Reduction::kMax, "report");
  auto all = mine;
  auto sum = sums.begin(), largest = most.begin();
  for (auto& counter : all.all_) {
    const bool unknown = *largest++ != 0;
    counter.value = counter.over == OverRanks::kSum ? *sum++ : *largest++;
    if (unknown) counter.value = Counters::kUnknown;
  }
  return all;
}

}  // namespace espalier
