// Numbers that the parts of a training step count in an epoch, by name. Each belongs to a group, a
// key of an epoch in report.json; in a checkpoint it is the attribute GROUP_NAME. A part says once
// what it counts; reports, checkpoints and sums over ranks go through all of them and know none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/comm/communicator.hpp"

namespace espalier {

/// How the counts of all ranks become one; kMost: of a moment, not added up over an epoch's runs.
enum class OverRanks { kSum, kMost };

struct Counter {
  std::string group, name;
  OverRanks over = OverRanks::kSum;
  std::int64_t value = 0;

  friend bool operator==(const Counter&, const Counter&) = default;
};

class Counters {
 public:
  Counters() = default;
  Counters(std::vector<Counter> all) : all_(std::move(all)) {}

  const std::vector<Counter>& all() const { return all_; }
  bool empty() const { return all_.empty(); }
  /// One that was not there before.
  void declare(Counter counter) { all_.push_back(std::move(counter)); }

  /// Of a counter that is there; fails for another name.
  void add(std::string_view group, std::string_view name, std::int64_t count) {
    add_to(of(group, name), count);
  }
  void set(std::string_view group, std::string_view name, std::int64_t value) {
    of(group, name).value = value;
  }
  /// From now on nobody knows it: a sum with it is not known either, and reports leave it out.
  void give_up(std::string_view group, std::string_view name) { of(group, name).value = kUnknown; }
  /// Nothing where it is not there, or not known.
  std::optional<std::int64_t> find(std::string_view group, std::string_view name) const;
  bool has(std::string_view group) const;

  /// Adds those of the same names, and takes up the others.
  void add(const Counters& more);
  /// All sums are 0.
  void clear();

  /// Sums by their attributes' names, and back: those that are there are added.
  std::map<std::string, std::int64_t> sums() const;
  void add_sums(const std::map<std::string, std::int64_t>& saved);

  friend bool operator==(const Counters&, const Counters&) = default;

 private:
  static constexpr std::int64_t kUnknown = INT64_MIN;

  static void add_to(Counter& counter, std::int64_t count) {
    counter.value = counter.value == kUnknown || count == kUnknown ? kUnknown : counter.value + count;
  }
  Counter& of(std::string_view group, std::string_view name);
  friend Counters over_ranks(const Counters& mine, const Communicator& comm);

  std::vector<Counter> all_;
};

/// Collective; every rank has the same names.
Counters over_ranks(const Counters& mine, const Communicator& comm);

}  // namespace espalier
