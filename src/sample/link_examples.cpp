#include "espalier/sample/link_examples.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/comm/traffic.hpp"
#include "espalier/sample/link_lookup.hpp"
#include "group_order.hpp"

namespace espalier {

namespace {

constexpr std::uint64_t kTries = 16;

constexpr Named<NegativesMode> kModes[] = {{"uniform", NegativesMode::kUniform},
                                           {"shared", NegativesMode::kShared},
                                           {"in-batch", NegativesMode::kInBatch},
                                           {"degree", NegativesMode::kDegree}};

// Links by their numbers in the list.
Buffer<LinkTriple> ask_for_links(const Communicator& comm, const LinkList& list,
                                 std::span<const std::int64_t> ids, double weight) {
  const auto first = even_range(list.count, comm.size(), comm.rank()).begin;
  return ask_owners<LinkTriple>(
      comm, ids, [&](std::int64_t id) { return even_owner(list.count, comm.size(), id); },
      [&](std::int64_t id) { return list.link(id - first); }, "sample/links", weight);
}

// Links of some batches, one batch after another.
struct BatchedLinks {
  std::vector<std::int64_t> ids;      // numbers in the list
  std::vector<std::int64_t> batches;  // of each, which it is of
  std::vector<std::int64_t> places;   // and its place there
  Buffer<LinkTriple> links;
  // In-batch: a batch's links by relation, and where those of a link's own stand, it among them.
  struct Peers {
    std::int64_t begin = 0, count = 0, place = 0;
  };
  std::vector<std::int64_t> by_relation;
  std::vector<Peers> peers;

  std::int64_t count() const { return std::ssize(ids); }
  void find_peers() {
    const auto group_of = [&](std::int64_t l) { return std::pair(batches[l], links[l].relation); };
    by_relation.resize(ids.size());
    peers.resize(ids.size());
    std::iota(by_relation.begin(), by_relation.end(), std::int64_t{0});
    std::ranges::stable_sort(by_relation, {}, group_of);
    for (std::int64_t begin = 0, end = 0; begin < count(); begin = end) {
      while (end < count() && group_of(by_relation[end]) == group_of(by_relation[begin])) ++end;
      for (auto at = begin; at < end; ++at) peers[by_relation[at]] = {begin, end - begin, at - begin};
    }
  }
};

class KeyedLinks final : public LinkExamples {
 public:
  KeyedLinks(const LinkPool& pool, const EpochShape& shape)
      : pool_(pool),
        batches_(pool.list.count, shape.batch_size),
        shuffle_{.seed = shape.seed, .purpose = Purpose::kShuffle, .epoch = shape.epoch},
        negatives_(RandomStream{.seed = shape.seed, .purpose = Purpose::kNegative, .epoch = shape.epoch}),
        batches_per_step_(std::min(shape.batches_per_step, batches_.count())) {
    const auto& list = pool.list;
    if (list.group_begins.empty()) {
      orders_.emplace_back(shuffle_, std::max<std::int64_t>(1, list.count));
      return;
    }
    for (std::size_t group = 0; group + 1 < list.group_begins.size(); ++group) {
      auto stream = shuffle_;
      stream.row = group + 1;
      orders_.emplace_back(
          stream, std::max<std::int64_t>(1, list.group_begins[group + 1] - list.group_begins[group]));
    }
    for (const auto& batch : batches_.order_by_group(list.group_begins, shuffle_))
      first_of_batch_.push_back(batch.begin - list.group_begins[batch.group]);
  }

  std::int64_t batches() const override { return batches_.count(); }
  std::span<const std::int32_t> groups() const override { return batches_.groups(); }
  std::int64_t count_links(std::int64_t begin, std::int64_t end) const override {
    return batches_.begin(end) - batches_.begin(begin);
  }
  std::int64_t count_seeds(std::int64_t begin, std::int64_t end) const override {
    return count_links(begin, end) * (2 + pool_.negatives.per_link);
  }

  void prepare(const Communicator& comm, std::span<const std::int64_t> batches) const override {
    BatchedLinks asked;
    for (const auto batch : batches)
      for (std::int64_t place = 0; place < count_links(batch, batch + 1); ++place) {
        asked.ids.push_back(number_of(batch, place));
        asked.batches.push_back(batch);
        asked.places.push_back(place);
      }
    const auto groups = std::max<std::int64_t>(0, std::ssize(pool_.list.group_begins) - 1);
    const int ranks = comm.size();
    asked.links = ask_for_links(
        comm, pool_.list, asked.ids,
        ranks == 1 ? 1 : share_of_others(ranks, groups, batches_per_step_) / share_of_others(ranks, 0, 1));
    if (pool_.negatives.mode == NegativesMode::kInBatch) asked.find_peers();
    // Those that take messages are drawn all at once, others batch by batch.
    const bool at_once = pool_.known != nullptr || pool_.weights != nullptr;
    const auto all = at_once ? draw_with_messages(comm, asked) : std::vector<LinkTriple>();
    const auto k = pool_.negatives.per_link;
    std::int64_t begin = 0;
    for (const auto batch : batches) {
      const auto size = count_links(batch, batch + 1);
      const auto own = at_once ? std::vector<LinkTriple>() : draw_negatives(asked, begin, begin + size);
      const auto negatives = at_once ? std::span(all).subspan(begin * k, size * k) : std::span(own);
      auto made = std::make_shared<const LinkBatch>(
          make_batch(std::span<const LinkTriple>(asked.links).subspan(begin, size), negatives));
      begin += size;
      const std::lock_guard lock(mutex_);
      prepared_.insert_or_assign(batch, std::move(made));
    }
  }
  SeedBatch batch(std::int64_t k) const override { return {k, prepared(k)}; }
  const LinkBatch& links(std::int64_t batch) const override { return *prepared(batch); }
  void release(std::int64_t batch) const override {
    const std::lock_guard lock(mutex_);
    prepared_.erase(batch);
  }

 private:
  // Of a link by its place in a batch.
  std::int64_t number_of(std::int64_t batch, std::int64_t place) const {
    if (groups().empty()) return orders_[0](batches_.begin(batch) + place);
    const auto group = groups()[batch];
    return pool_.list.group_begins[group] + orders_[group](first_of_batch_[batch] + place);
  }
  std::shared_ptr<const LinkBatch> prepared(std::int64_t batch) const {
    const std::lock_guard lock(mutex_);
    const auto found = prepared_.find(batch);
    ESPALIER_CHECK(found != prepared_.end(), "batch {} of links was not prepared", batch);
    return found->second;
  }
  // What a try gives negative j of a link: a vertex, or the number that stands for it.
  struct Try {
    std::int64_t vertex;
    bool of_head, is_number = false;
  };
  Try draw(const BatchedLinks& links, std::int64_t l, std::int64_t j, std::uint64_t tries) const;
  std::vector<LinkTriple> draw_negatives(const BatchedLinks& links, std::int64_t begin,
                                         std::int64_t end) const;
  std::vector<LinkTriple> draw_with_messages(const Communicator& comm, const BatchedLinks& links) const;
  LinkBatch make_batch(std::span<const LinkTriple> links, std::span<const LinkTriple> negatives) const;

  const LinkPool& pool_;
  EpochBatches batches_;
  RandomStream shuffle_;
  KeyedStream negatives_;
  std::int64_t batches_per_step_;
  std::vector<KeyedPermutation> orders_;      // of all links, or of each group's
  std::vector<std::int64_t> first_of_batch_;  // [batches] with groups: where each begins in its own
  mutable bool told_ = false;
  mutable std::mutex mutex_;  // the thread that samples prepares, the caller reads
  mutable std::map<std::int64_t, std::shared_ptr<const LinkBatch>> prepared_;
};

// Words 16 j .. 16 j + 15 of a stream are the tries for negative j; word 16 k + j says which end.
KeyedLinks::Try KeyedLinks::draw(const BatchedLinks& links, std::int64_t l, std::int64_t j,
                                 std::uint64_t tries) const {
  auto stream = negatives_;
  if (pool_.negatives.mode == NegativesMode::kShared) {
    stream.batch = static_cast<std::uint32_t>(links.batches[l]) + 1;
    stream.row = static_cast<std::uint64_t>(links.places[l] / kNegativesChunk);
  } else {
    stream.row = static_cast<std::uint64_t>(links.ids[l]);
  }
  const auto word = kTries * static_cast<std::uint64_t>(j);
  const auto side =
      kTries * static_cast<std::uint64_t>(pool_.negatives.per_link) + static_cast<std::uint64_t>(j);
  const bool of_head = pool_.negatives.of_both_ends && random32(stream, side) >> 31 != 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random_below(stream, word + tries, static_cast<std::uint64_t>(bound)));
  };
  if (!links.peers.empty() && links.peers[l].count > 1) {
    const auto& peers = links.peers[l];
    const auto other = below(peers.count - 1);
    const auto& peer = links.links[links.by_relation[peers.begin + other + (other < peers.place ? 0 : 1)]];
    return {of_head ? peer.head : peer.tail, of_head};
  }
  const auto& ends = pool_.ends[links.links[l].relation];
  const auto& range = of_head ? ends.heads : ends.tails;
  const auto numbers = pool_.weights != nullptr ? pool_.weights->numbers(range) : RowRange();
  if (numbers.size() > 0) return {numbers.begin + below(numbers.size()), of_head, true};
  if (pool_.negatives.mode == NegativesMode::kShared || range.size() == 1)
    return {range.begin + below(range.size()), of_head};
  const auto& link = links.links[l];  // which is no negative of its own
  const auto other = range.begin + below(range.size() - 1);
  return {other + (other < (of_head ? link.head : link.tail) ? 0 : 1), of_head};
}

std::int64_t& replaced_end(LinkTriple& link, bool of_head) {
  return of_head ? link.head : link.tail;
}

// [links begin .. end, per_link]
std::vector<LinkTriple> KeyedLinks::draw_negatives(const BatchedLinks& links, std::int64_t begin,
                                                   std::int64_t end) const {
  std::vector<LinkTriple> negatives;
  negatives.reserve(static_cast<std::size_t>((end - begin) * pool_.negatives.per_link));
  for (auto l = begin; l < end; ++l)
    for (std::int64_t j = 0; j < pool_.negatives.per_link; ++j) {
      const auto tried = draw(links, l, j, 0);
      replaced_end(negatives.emplace_back(links.links[l]), tried.of_head) = tried.vertex;
    }
  return negatives;
}

// Collective. The same of all of them, by degree, or again where they are links, or both.
std::vector<LinkTriple> KeyedLinks::draw_with_messages(const Communicator& comm,
                                                       const BatchedLinks& links) const {
  const auto k = pool_.negatives.per_link;
  std::vector<LinkTriple> negatives(static_cast<std::size_t>(links.count() * k));
  std::vector<std::int64_t> open(negatives.size());
  std::iota(open.begin(), open.end(), std::int64_t{0});
  for (std::uint64_t tries = 0; tries < kTries; ++tries) {
    std::vector<std::int64_t> numbers;
    std::vector<std::pair<std::int64_t, bool>> numbered;
    for (const auto n : open) {
      const auto tried = draw(links, n / k, n % k, tries);
      negatives[n] = links.links[n / k];
      replaced_end(negatives[n], tried.of_head) = tried.vertex;
      if (!tried.is_number) continue;
      numbers.push_back(tried.vertex);
      numbered.emplace_back(n, tried.of_head);
    }
    if (pool_.weights != nullptr) {
      const auto vertices = pool_.weights->vertices_of(comm, numbers);
      for (std::size_t i = 0; i < numbered.size(); ++i)
        replaced_end(negatives[numbered[i].first], numbered[i].second) = vertices[i];
    }
    if (pool_.known == nullptr) break;
    std::vector<LinkTriple> asked;
    for (const auto n : open) asked.push_back(negatives[n]);
    const auto known = pool_.known->are_known(comm, asked);
    std::vector<std::int64_t> left;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (known[i] != 0) left.push_back(open[i]);
    open = std::move(left);
    const auto volume = all_reduce_volume(sizeof(std::int64_t), comm.size());
    comm.traffic().predict("sample/lookup", static_cast<double>(volume.messages),
                           static_cast<double>(volume.bytes_received));
    if (comm.all_reduce(std::ssize(open), Reduction::kMax, "sample/lookup") == 0) break;
    if (tries + 1 == kTries && shuffle_.epoch == 1 && comm.rank() == 0 && !std::exchange(told_, true))
      log::warning(
          "train.negatives_filtered: some negatives are links after {} draws, as their vertices are linked "
          "to nearly all; they stay",
          kTries);
  }
  return negatives;
}

LinkBatch KeyedLinks::make_batch(std::span<const LinkTriple> links,
                                 std::span<const LinkTriple> negatives) const {
  LinkBatch made;
  for (const auto of : {links, negatives})
    for (const auto& link : of) {
      made.seeds.push_back(link.head);
      made.seeds.push_back(link.tail);
    }
  std::ranges::sort(made.seeds);
  made.seeds.erase(std::ranges::unique(made.seeds).begin(), made.seeds.end());
  const auto place_of = [&](std::int64_t vertex) {
    return static_cast<std::int32_t>(std::ranges::lower_bound(made.seeds, vertex) - made.seeds.begin());
  };
  for (const auto& link : links) {
    const auto head = place_of(link.head), tail = place_of(link.tail);
    made.heads.push_back(head);
    made.tails.push_back(tail);
    made.relations.push_back(link.relation);
    const auto& ends = pool_.ends[link.relation];
    for (const bool reversed : {false, true}) {
      const auto of = reversed ? ends.backward : ends.forward;
      if (of < 0) continue;
      if (!reversed || ends.both_ways) made.excluded_edges.push_back({tail, head, of});
      if (reversed || ends.both_ways) made.excluded_edges.push_back({head, tail, of});
    }
  }
  std::ranges::sort(made.excluded_edges);
  made.excluded_edges.erase(std::ranges::unique(made.excluded_edges).begin(), made.excluded_edges.end());
  for (const auto& link : negatives) {
    made.negative_heads.push_back(place_of(link.head));
    made.negative_tails.push_back(place_of(link.tail));
  }
  return made;
}

}  // namespace

SeedBatch::SeedBatch(std::int64_t number_, const std::shared_ptr<const LinkBatch>& links)
    : number(number_),
      digest(links->digest()),
      seeds_(links->seeds),
      excluded_edges_(links->excluded_edges),
      links_(links.get()),
      memory_(links) {}

std::uint64_t LinkBatch::digest() const {
  std::uint64_t hash = 0;
  const auto take = [&](std::int64_t value) { hash = absorb(hash, value); };
  const auto vertex = [&](std::int32_t place) { return seeds[place]; };
  for (std::int64_t i = 0; i < links(); ++i) {
    take(vertex(heads[i]));
    take(relations[i]);
    take(vertex(tails[i]));
  }
  for (std::int64_t i = 0; i < std::ssize(negative_heads); ++i) {
    take(vertex(negative_heads[i]));
    take(vertex(negative_tails[i]));
  }
  return hash;
}

NegativesMode negatives_mode_of(const std::string& name) {
  return entry_named(kModes, name, "train.negatives_mode =").value;
}

std::vector<LinkTriple> triples_of(const LinkList& list) {
  std::vector<LinkTriple> triples;
  for (std::int64_t k = 0; k < std::ssize(list.heads); ++k) triples.push_back(list.link(k));
  return triples;
}

LinkList sort_by_group(const Communicator& comm, const LinkList& list, const BatchGroups& groups) {
  const int ranks = comm.size(), me = comm.rank();
  const auto mine = even_range(list.count, ranks, me);
  ESPALIER_CHECK(std::ssize(groups.of) == mine.size(), "groups of {} of {} links", groups.of.size(),
                 mine.size());
  // 1. Where my links of each group go: behind the groups before, and those that ranks before have.
  std::vector<std::int64_t> counts(static_cast<std::size_t>(groups.count), 0);
  for (const auto group : groups.of) ++counts[group];
  const auto of_ranks = comm.all_gather_v(std::span<const std::int64_t>(counts), "setup");
  LinkList sorted = {list.count, {}, {}, {}, {0}};
  std::vector<std::int64_t> next;
  for (std::int32_t group = 0; group < groups.count; ++group) {
    auto end = sorted.group_begins.back();
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == me) next.push_back(end);
      end += of_ranks[static_cast<std::int64_t>(rank) * groups.count + group];
    }
    sorted.group_begins.push_back(end);
  }
  // 2. To whoever has the place.
  struct Placed {
    std::int64_t place;
    LinkTriple link;
  };
  std::vector<Placed> sent;
  for (std::int64_t k = 0; k < mine.size(); ++k) sent.push_back({next[groups.of[k]]++, list.link(k)});
  const auto counted =
      group_stably(sent, ranks, [&](const Placed& p) { return even_owner(list.count, ranks, p.place); });
  const auto arrived = comm.all_to_all_v(std::span<const Placed>(sent), counted, "setup").data;
  sorted.heads.resize(mine.size());
  sorted.tails.resize(mine.size());
  sorted.relations.resize(mine.size());
  for (const auto& [place, link] : arrived) {
    const auto k = place - mine.begin;
    sorted.heads[k] = link.head;
    sorted.tails[k] = link.tail;
    sorted.relations[k] = link.relation;
  }
  return sorted;
}

LinkSource::LinkSource(const Communicator& comm, LinkList list, std::vector<LinkEnds> ends,
                       const Negatives& negatives, std::int64_t vertices, bool directed)
    : pool_{std::move(list), std::move(ends), negatives} {
  const bool by_degree = negatives.mode == NegativesMode::kDegree;
  if (!negatives.filtered && !by_degree) return;
  const auto triples = triples_of(pool_.list);
  if (negatives.filtered) pool_.known = std::make_unique<KnownLinks>(comm, vertices, triples, directed);
  if (!by_degree) return;
  std::vector<std::int64_t> bounds = {0, vertices};
  for (const auto& of : pool_.ends)
    for (const auto& range : {of.heads, of.tails}) {
      bounds.push_back(range.begin);
      bounds.push_back(range.end);
    }
  std::ranges::sort(bounds);
  bounds.erase(std::ranges::unique(bounds).begin(), bounds.end());
  pool_.weights =
      std::make_unique<DegreeWeights>(comm, vertices, triples, negatives.power, std::move(bounds));
}

std::shared_ptr<const Examples> LinkSource::of_epoch(const EpochShape& shape) const {
  return std::make_shared<KeyedLinks>(pool_, shape);
}

// Of n batches of a step in the order of their groups, batch k is of the k-th n-th of the links,
// and rank (k p / n) keeps it, who has the links of a p-th.
double share_of_others(int ranks, std::int64_t groups, std::int64_t batches_per_step) {
  const double even = static_cast<double>(ranks - 1) / ranks;
  if (groups == 0 || ranks == 1) return even;
  const auto n = std::max<std::int64_t>(1, batches_per_step);
  double own = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const auto owner_rank = static_cast<double>(k * ranks / n), all = static_cast<double>(n);
    const double begin = std::max(static_cast<double>(k) / all, owner_rank / ranks),
                 end = std::min(static_cast<double>(k + 1) / all, (owner_rank + 1) / ranks);
    own += std::max(0.0, end - begin);
  }
  return 1 - own;
}

Cost link_request_cost(int ranks, double links, double share) {
  if (ranks == 1) return {};
  return ask_cost(ranks, links * share / share_of_others(ranks, 0, 1), sizeof(std::int64_t),
                  sizeof(LinkTriple));
}

Cost negatives_cost(int ranks, const Negatives& negatives, double links, double known_share) {
  const bool by_degree = negatives.mode == NegativesMode::kDegree;
  if (ranks == 1 || (!negatives.filtered && !by_degree)) return {};
  const double drawn = links * static_cast<double>(negatives.per_link);
  // Try t is of those that were links t times; it takes place where any rank has one.
  double rounds = 1, asked = drawn;
  double again = known_share;
  for (std::uint64_t tries = 1; negatives.filtered && tries < kTries; ++tries, again *= known_share) {
    rounds += 1 - std::pow(1 - again, drawn * ranks);
    asked += drawn * again;
  }
  Cost cost;
  const auto ask = [&](std::size_t request, std::size_t answer) {
    cost += ask_cost(ranks, asked, request, answer);
    cost += (rounds - 1) * ask_cost(ranks, 0, request, answer);
  };
  if (by_degree) ask(sizeof(std::int64_t), sizeof(std::int64_t));
  if (!negatives.filtered) return cost;
  ask(sizeof(LinkTriple), sizeof(std::uint8_t));
  const auto agreed = all_reduce_volume(sizeof(std::int64_t), ranks);
  cost += rounds * Cost{static_cast<double>(agreed.messages), static_cast<double>(agreed.bytes_received),
                        static_cast<double>(agreed.rounds)};
  return cost;
}

double expected_distinct(double draws, double vertices) {
  const double n = std::max(vertices, 2.0);
  return -n * std::expm1(draws * std::log1p(-1 / n));
}

std::int64_t expected_seeds(std::int64_t links, const Negatives& negatives, std::int64_t vertices) {
  const auto mode = negatives.mode;
  const auto made_up = mode == NegativesMode::kInBatch ? 0
                       : mode == NegativesMode::kShared
                           ? count_batches(links, kNegativesChunk) * negatives.per_link
                           : links * negatives.per_link;
  return static_cast<std::int64_t>(
      std::ceil(expected_distinct(static_cast<double>(2 * links + made_up), static_cast<double>(vertices))));
}

}  // namespace espalier
