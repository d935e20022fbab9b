// The way between a list of ids and the ranks that own them, where each rank owns an even range:
// values of the owners are pulled to those who named the ids, values of those are pushed to the
// owners. The ids are sent once, when the route is laid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Ascending, each once, and the place of one of them there.
template <class List>
Buffer<std::int64_t> distinct_ids(const List& ids) {
  Buffer<std::int64_t> sorted(ids.begin(), ids.end());
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}
inline std::int64_t place_in(const Buffer<std::int64_t>& ids, std::int64_t id) {
  return std::ranges::lower_bound(ids, id) - ids.begin();
}

class IdRoute {
 public:
  IdRoute() = default;

  /// Collective. `ids`: distinct, ascending, in [0, nodes); each rank its own list.
  IdRoute(const Communicator& comm, std::int64_t nodes, std::span<const std::int64_t> ids,
          std::string_view label)
      : sent_(static_cast<std::size_t>(comm.size()), 0) {
    for (int rank = 0; rank < comm.size(); ++rank) {
      const auto range = even_range(nodes, comm.size(), rank);
      sent_[static_cast<std::size_t>(rank)] = std::lower_bound(ids.begin(), ids.end(), range.end) -
                                              std::lower_bound(ids.begin(), ids.end(), range.begin);
    }
    auto received = comm.all_to_all_v(ids, sent_, label);
    counts_ = std::move(received.counts);
    places_ = std::move(received.data);
    const auto begin = even_range(nodes, comm.size(), comm.rank()).begin;
    for (auto& place : places_) place -= begin;
  }

  /// What others asked me for: places among my rows, rank after rank.
  std::span<const std::int64_t> places() const& { return places_; }
  void places() const&& = delete;

  /// Collective. values[k] becomes the owner's mine[place of ids[k]]. Room for all ids.
  template <class T>
  void pull(const Communicator& comm, const T* mine, T* values, std::string_view label) const {
    Buffer<T> answers(places_.size());
    for (std::size_t k = 0; k < places_.size(); ++k) answers[k] = mine[places_[k]];
    comm.all_to_all_v(answers.data(), counts_, values, sent_, label);
  }

  /// Collective. The values [ids] of every rank at the owners, beside places().
  template <class T>
  Buffer<T> push(const Communicator& comm, const T* values, std::string_view label) const {
    Buffer<T> received(places_.size());
    comm.all_to_all_v(values, sent_, received.data(), counts_, label);
    return received;
  }

 private:
  std::vector<std::int64_t> sent_, counts_;  ///< [ranks] ids to, and from, each rank
  Buffer<std::int64_t> places_;
};

}  // namespace espalier
