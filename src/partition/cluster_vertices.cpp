// Clusters of the multilevel method, by labels that vertices take from neighbours, none heavier
// than a limit.
#include "multilevel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "level_graph.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kNone = -1;

// A vertex that asks for a label.
struct Request {
  std::int64_t label;
  std::int64_t rating;
  std::uint64_t tie;
  std::int64_t vertex;
  ClusterWeights weight;
};

// The labels that my places have, numbered, and what their owners know of them.
struct Labels {
  Buffer<std::int64_t> ids;      // [labels] ascending
  Buffer<std::int32_t> number;   // [places] of the label of each
  Buffer<ClusterWeights> loads;  // [labels]
};

// How well a vertex and a label with this load fit that are connected with this weight: per root of
// the label's edges, else the labels of hubs draw all that there is. Below 2^46 edges; sqrt and
// conversion are exact operations of IEEE 754.
std::int64_t rating_of(std::int64_t weight, const ClusterWeights& load) {
  constexpr std::size_t kEdges = 1;
  const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(load[kEdges])));
  return (weight << 16) / std::max<std::int64_t>(root, 1);
}

// Requests sorted by label, as many for each rank.
std::vector<std::int64_t> sort_by_owner(const Communicator& comm, std::int64_t nodes,
                                        std::vector<Request>& requests) {
  std::ranges::sort(requests, {}, [](const Request& one) { return std::pair(one.label, one.vertex); });
  std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 0);
  for (const auto& request : requests) ++counts[even_owner(nodes, comm.size(), request.label)];
  return counts;
}

class Clustering {
 public:
  Clustering(const Communicator& comm, const LevelGraph& graph, const ClusteringOptions& options)
      : comm_(comm), graph_(graph), options_(options), labels_(graph.places()) {
    for (std::int64_t place = 0; place < graph.places(); ++place) labels_[place] = graph.id(place);
    loads_ = graph.vertex_weights;
  }

  Buffer<std::int64_t> run() {
    for (int round = 0; round < options_.rounds; ++round) join(round);
    pair_those_alone();
    labels_.resize(graph_.own());
    return std::move(labels_);
  }

 private:
  std::uint64_t hash(std::int64_t round, std::int64_t id) const {
    return absorb(absorb(mix(options_.seed), round), id);
  }
  bool gives(std::int64_t round, std::int64_t label) const { return hash(round, label) >> 63 != 0; }

  Labels known_labels() const {
    Labels known;
    known.ids = distinct(labels_);
    known.number = numbers_in(known.ids, labels_);
    known.loads.resize(known.ids.size());
    IdRoute(comm_, graph_.nodes, known.ids, "partition")
        .pull(comm_, loads_.data(), known.loads.data(), "partition");
    return known;
  }

  // The weight of a vertex's edges to each label.
  void connect(std::int64_t vertex, const Labels& known, Tally& connected) const {
    connected.clear();
    for (auto e = graph_.indptr[vertex]; e < graph_.indptr[vertex + 1]; ++e)
      connected.add(known.number[graph_.neighbours[e]], graph_.weights[e]);
  }

  Request best_label(std::int64_t vertex, const Labels& known, std::int64_t round,
                     const Tally& connected) const {
    const auto own = known.number[vertex];
    auto others = known.loads[own];
    others -= graph_.vertex_weights[vertex];
    Request best{kNone, rating_of(connected[own], others), 0, graph_.id(vertex),
                 graph_.vertex_weights[vertex]};
    for (const auto k : connected.touched()) {
      const auto label = known.ids[k];
      if (gives(round, label) || !fits(known.loads[k], best.weight, options_.limit)) continue;
      const auto rating = rating_of(connected[k], known.loads[k]);
      const auto tie = absorb(hash(round, best.vertex), label);
      if (rating > best.rating || (best.label != kNone && rating == best.rating && tie > best.tie))
        best.label = label, best.rating = rating, best.tie = tie;
    }
    return best;
  }

  std::vector<Request> requests_of(int round, const Labels& known) const {
    std::vector<Request> requests;
    Tally connected(static_cast<std::int64_t>(known.ids.size()));
    for (std::int64_t vertex = 0; vertex < graph_.own(); ++vertex) {
      if (!gives(round, labels_[vertex])) continue;
      connect(vertex, known, connected);
      const auto request = best_label(vertex, known, round, connected);
      if (request.label != kNone) requests.push_back(request);
    }
    return requests;
  }

  // One round: who asks is admitted by the owner of the label, and leaves its own.
  void join(int round) {
    graph_.fill_ghosts(comm_, labels_, "partition");
    auto requests = requests_of(round, known_labels());
    const auto counts = sort_by_owner(comm_, graph_.nodes, requests);
    const auto asked = comm_.all_to_all_v(std::span<const Request>(requests), counts, "partition");
    const auto admitted = admit(asked.data);
    Buffer<std::uint8_t> answers;
    comm_.all_to_all_v(std::span<const std::uint8_t>(admitted), asked.counts, counts, answers, "partition");
    std::vector<Request> leaving;
    for (std::size_t k = 0; k < requests.size(); ++k)
      if (answers[k] != 0) {
        auto& label = labels_[requests[k].vertex - graph_.mine.begin];
        leaving.push_back(requests[k]);
        leaving.back().label = label;
        label = requests[k].label;
      }
    const auto left = sort_by_owner(comm_, graph_.nodes, leaving);
    for (const auto& request : comm_.all_to_all_v(std::span<const Request>(leaving), left, "partition").data)
      loads_[request.label - graph_.mine.begin] -= request.weight;
  }

  // The order in which a label admits: heaviest first.
  static std::vector<std::int64_t> queue_of(const Buffer<Request>& asked) {
    std::vector<std::int64_t> queue(asked.size());
    std::iota(queue.begin(), queue.end(), std::int64_t{0});
    std::ranges::sort(queue, {}, [&](std::int64_t k) {
      return std::tuple(asked[k].label, -asked[k].rating, asked[k].tie, asked[k].vertex);
    });
    return queue;
  }

  std::vector<std::uint8_t> admit(const Buffer<Request>& asked) {
    std::vector<std::uint8_t> admitted(asked.size(), 0);
    for (const auto k : queue_of(asked)) {
      auto& load = loads_[asked[k].label - graph_.mine.begin];
      if (!fits(load, asked[k].weight, options_.limit)) continue;
      load += asked[k].weight;
      admitted[k] = 1;
    }
    return admitted;
  }

  // The label that a vertex alone would have gone to, had there been room; without edges any of a
  // few. `tie` keeps these kinds of labels apart.
  Request wish_of(std::int64_t vertex, const Labels& known, const Tally& connected) const {
    constexpr std::int64_t kBlock = 256;
    const auto id = graph_.id(vertex);
    Request wish{id / kBlock * kBlock, 0, 0, id, graph_.vertex_weights[vertex]};
    for (const auto k : connected.touched()) {
      const auto label = known.ids[k];
      if (connected[k] > wish.rating || (connected[k] == wish.rating && label < wish.label))
        wish.label = label, wish.rating = connected[k], wish.tie = 1;
    }
    return wish;
  }

  std::vector<Request> wishes(const Labels& known) const {
    std::vector<Request> wishes;
    Tally connected(static_cast<std::int64_t>(known.ids.size()));
    for (std::int64_t vertex = 0; vertex < graph_.own(); ++vertex) {
      const bool alone = labels_[vertex] == graph_.id(vertex) &&
                         known.loads[known.number[vertex]] == graph_.vertex_weights[vertex];
      if (!alone) continue;
      connect(vertex, known, connected);
      wishes.push_back(wish_of(vertex, known, connected));
    }
    return wishes;
  }

  // Those who wish for the same label come together, as many as fit, under the label of the first.
  void pair_those_alone() {
    graph_.fill_ghosts(comm_, labels_, "partition");
    auto requests = wishes(known_labels());
    const auto counts = sort_by_owner(comm_, graph_.nodes, requests);
    const auto asked = comm_.all_to_all_v(std::span<const Request>(requests), counts, "partition");
    const auto given = group(asked.data);
    Buffer<std::int64_t> answers;
    comm_.all_to_all_v(std::span<const std::int64_t>(given), asked.counts, counts, answers, "partition");
    for (std::size_t k = 0; k < requests.size(); ++k)
      labels_[requests[k].vertex - graph_.mine.begin] = answers[k];
  }

  std::vector<std::int64_t> group(const Buffer<Request>& asked) const {
    std::vector<std::int64_t> queue(asked.size()), given(asked.size());
    std::iota(queue.begin(), queue.end(), std::int64_t{0});
    const auto same = [](const Request& a, const Request& b) { return a.label == b.label && a.tie == b.tie; };
    std::ranges::sort(
        queue, {}, [&](std::int64_t k) { return std::tuple(asked[k].label, asked[k].tie, asked[k].vertex); });
    const Request* first = nullptr;
    ClusterWeights load{};
    for (const auto k : queue) {
      const auto& request = asked[k];
      if (first == nullptr || !same(*first, request) || !fits(load, request.weight, options_.limit))
        first = &request, load = {};
      load += request.weight;
      given[k] = first->vertex;
    }
    return given;
  }

  const Communicator& comm_;
  const LevelGraph& graph_;
  ClusteringOptions options_;
  Buffer<std::int64_t> labels_;   // [places]
  Buffer<ClusterWeights> loads_;  // [own] of what has this vertex's id as its label
};

}  // namespace

Buffer<std::int64_t> cluster_vertices(const Communicator& comm, const LevelGraph& graph,
                                      const ClusteringOptions& options) {
  return Clustering(comm, graph, options).run();
}

}  // namespace espalier
