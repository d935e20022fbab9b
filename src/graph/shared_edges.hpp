// Edges that the ranks read together, on their way to the owners of what they speak of.
//
// Reading goes in rounds: in each a rank reads the next of its parts (EdgeSource::read_parts) and
// sends what it makes of it; owners take what arrives in the order of ranks, which is that of the
// file, so that over all rounds they meet things as one rank would that reads the file alone.
#pragma once

#include <algorithm>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "espalier/graph/edge_source.hpp"
#include "first_rank.hpp"

namespace espalier {

/// An edge where it is read.
struct ReadEdge {
  std::int64_t source, target;
  float weight;
  std::uint32_t number;      // within its part
  bool turned, loop;         // EdgeMark
  std::int64_t vanished;     // of its piece, where it is the first
  const std::int64_t* time;  // null: nobody said when it was
};

/// Calls visit(edge) for each of a piece whose first has this number.
template <class Visit>
void for_each_of(const EdgePiece& piece, std::uint32_t number, Visit visit) {
  for (std::size_t k = 0; k < piece.sources.size(); ++k) {
    const auto source = piece.sources[k], target = piece.targets[k];
    const int mark = !piece.marks.empty() ? piece.marks[k] : source == target ? kLoop : 0;
    visit(ReadEdge{source, target, piece.weights.empty() ? 1 : piece.weights[k], number++,
                   (mark & kTurned) != 0, (mark & kLoop) != 0, k == 0 ? piece.vanished : 0,
                   piece.times.empty() ? nullptr : &piece.times[k]});
  }
}

/// One reading of edges by several ranks.
template <class Item, class Take, class After>
class ReadingRounds {
 public:
  ReadingRounds(const Communicator& comm, Take& take, After& after)
      : comm_(comm), take_(take), after_(after), lists_(static_cast<std::size_t>(comm.size())) {}

  /// Collective. `make` as of spread().
  template <class OwnerOf, class Make>
  void run(const EdgeSource* mine, OwnerOf owner_of, Make& make) {
    std::exception_ptr error;
    std::int64_t missing = 0;
    try {
      const auto send = [&](std::int64_t key, const Item& item) { lists_[owner_of(key)].push_back(item); };
      const auto use = [&](const EdgePiece& piece) {
        for_each_of(piece, edges_, [&](const ReadEdge& edge) { make(edge, send); });
        edges_ += static_cast<std::uint32_t>(piece.sources.size());
      };
      const auto next = [&] {
        if (!exchange(kGoingOn)) throw Stopped();
      };
      const auto miss = [&](std::int64_t number) { missing += number; };
      if (mine != nullptr) mine->read_parts({comm_.rank(), comm_.size(), next, miss}, use);
    } catch (const Stopped&) {
    } catch (...) {
      error = std::current_exception();
    }
    while (!over_) exchange(error ? kFailed : kDone);
    missing = comm_.all_reduce(missing, Reduction::kSum, kLabel);
    on_every_rank(comm_, [&] {
      if (comm_.rank() == 0 && (failed_ || missing != 0)) {
        mine->read([](const EdgePiece&) {});  // throws, with the line in the whole
        if (!failed_) input_error("{}: changed while it was read; import it again", mine->name());
      }
      if (error) std::rethrow_exception(error);
    });
  }

 private:
  enum State : std::int64_t { kGoingOn, kDone, kFailed };
  struct Stopped {};  // another rank failed
  struct Part {
    std::int64_t edges, state;
  };

  // What the parts of this round made goes to its owners. False when it was the last: of an error
  // nobody takes anything.
  bool exchange(State state) {
    const auto parts = comm_.all_gather(Part{std::exchange(edges_, 0), state}, kLabel);
    over_ = std::ranges::all_of(parts, [](const Part& part) { return part.state != kGoingOn; });
    for (const auto& part : parts)
      if (part.state == kFailed) return !(over_ = failed_ = true);
    std::vector<std::int64_t> counts;
    sent_.clear();
    for (auto& list : lists_) {
      counts.push_back(std::ssize(list));
      sent_.insert(sent_.end(), list.begin(), list.end());
      list.clear();
    }
    const auto from = comm_.exchange_counts(counts, kLabel);
    comm_.all_to_all_v(std::span<const Item>(sent_), counts, from, received_, kLabel);
    const auto* item = received_.data();
    for (std::size_t rank = 0; rank < parts.size(); first_ += parts[rank++].edges)
      for (std::int64_t k = 0; k < from[rank]; ++k) take_(*item++, first_);
    after_();
    return !over_;
  }

  static constexpr const char* kLabel = "edges to their rows";
  const Communicator& comm_;
  Take& take_;
  After& after_;
  std::vector<Buffer<Item>> lists_;  // [ranks] of the part that is read
  Buffer<Item> sent_, received_;
  std::uint32_t edges_ = 0;  // of that part
  std::int64_t first_ = 0;   // edges of all parts before
  bool over_ = false, failed_ = false;
};

/// Collective. Calls make(edge, send) for each edge, on the rank that reads it, which calls
/// send(key, item) for what the rank owner_of(key) is to take; that calls take(item, number of the
/// first edge of its part), in the order of the edges. `after` is collective, after each round.
template <class Item, class OwnerOf, class Make, class Take, class After>
void spread(const SharedEdges& edges, OwnerOf owner_of, Make make, Take take, After after) {
  const auto& comm = edges.comm();
  if (comm.size() > 1)
    return ReadingRounds<Item, Take, After>(comm, take, after).run(edges.mine(), owner_of, make);
  on_every_rank(comm, [&] {
    std::int64_t first = 0;
    const auto send = [&](std::int64_t, const Item& item) { take(item, first); };
    edges.mine()->read([&](const EdgePiece& piece) {
      for_each_of(piece, 0, [&](const ReadEdge& edge) { make(edge, send); });
      first += std::ssize(piece.sources);
      after();
    });
  });
}

template <class Item, class OwnerOf, class Make, class Take>
void spread(const SharedEdges& edges, OwnerOf owner_of, Make make, Take take) {
  spread<Item>(edges, owner_of, make, take, [] {});
}

}  // namespace espalier
