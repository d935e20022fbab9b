#include "espalier/train/link_candidates.hpp"

#include <algorithm>

#include "espalier/base/log.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

// Of a rank, all at once.
constexpr std::int64_t kAskedAtOnce = std::int64_t{1} << 20;

LinkCandidates::LinkCandidates(const Grid& grid, const LinkTargets& targets, const TrainConfig& train)
    : grid_(grid),
      targets_(targets),
      seed_(static_cast<std::uint64_t>(train.seed)),
      against_(train.ranked_against),
      filtered_(is_filtered(train)) {
  if (!filtered_) return;
  std::vector<End> ends;
  for (const auto split : {Split::kValid, Split::kTest})
    for (std::int64_t k = 0; k < (targets.given(split).any() ? 0 : std::ssize(targets.links(split).heads));
         ++k)
      for (const auto open : {LinkEnd::kTail, LinkEnd::kHead})
        if (open == LinkEnd::kTail || train.negatives_of == "both") ends.emplace_back(split, k, open);
  leave_out(links_of_file(grid, targets), std::move(ends));
}

OtherVertices LinkCandidates::others(const End& end) const {
  const auto& [split, k, open] = end;
  const auto& links = targets_.links(split);
  const auto& world = grid_.world();
  const auto link = links.link(k);
  const auto& ends = targets_.train_links->ends()[link.relation];
  const bool head = open == LinkEnd::kHead;
  return {seed_,
          split,
          open,
          even_range(links.count, world.size(), world.rank()).begin + k,
          head ? ends.heads : ends.tails,
          head ? link.head : link.tail};
}

// Asks for the first g of each end, and on for as many as were asked until g of them are no links.
void LinkCandidates::leave_out(const KnownLinks& known, std::vector<End> ends) {
  struct Open {
    End end;
    std::int64_t asked, missing;
  };
  const auto& world = grid_.world();
  const auto all = world.all_reduce(std::ssize(ends), Reduction::kSum, "setup");
  std::vector<Open> open;
  for (const auto& end : ends) open.push_back({end, 0, against_});
  std::int64_t poor = 0, fewest = against_;
  while (world.all_reduce(std::ssize(open), Reduction::kMax, "setup") > 0) {
    std::vector<LinkTriple> requests;
    std::vector<std::int64_t> ask;
    for (const auto& of : open) {
      const auto vertices = others(of.end);
      ask.push_back(std::min({std::max(of.missing, of.asked), vertices.count() - of.asked,
                              kAskedAtOnce - std::ssize(requests)}));
      const auto& [split, k, end] = of.end;
      for (std::int64_t j = 0; j < ask.back(); ++j) {
        requests.push_back(targets_.links(split).link(k));
        (end == LinkEnd::kHead ? requests.back().head : requests.back().tail) = vertices(of.asked + j);
      }
    }
    const auto answers = known.are_known(world, requests);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      auto& of = open[i];
      for (std::int64_t j = 0; j < ask[i]; ++j, ++at, ++of.asked) {
        const auto& [split, k, end] = of.end;
        if (answers[at] != 0) {
          if (of.asked < against_) filtered_ends_[of.end].links.push_back(of.asked);
        } else if (of.missing > 0) {
          --of.missing;
          const auto& link = requests[at];
          if (of.asked >= against_)
            filtered_ends_[of.end].more.push_back(end == LinkEnd::kHead ? link.head : link.tail);
        }
      }
    }
    std::erase_if(open, [&](const Open& of) {
      const bool ends_here = of.asked == others(of.end).count();
      if (ends_here && of.missing > 0) {
        ++poor;
        fewest = std::min(fewest, against_ - of.missing);
      }
      return ends_here || of.missing == 0;
    });
  }
  for (const auto& [end, of] : filtered_ends_) most_more_ = std::max(most_more_, std::ssize(of.more));
  poor = world.all_reduce(poor, Reduction::kSum, "setup");
  fewest = world.all_reduce(fewest, Reduction::kMin, "setup");
  if (poor > 0 && world.rank() == 0)
    log::warning(
        "train.ranked_against = {}: at {} of {} of links fewer other vertices ({} at the least) make no "
        "link; "
        "filtered ranks there are among those",
        against_, poor, counted(all, "end"), fewest);
}

EndCandidates LinkCandidates::of(Split split, std::int64_t k, LinkEnd open) const {
  const End end(split, k, open);
  const auto vertices = others(end);
  EndCandidates found;
  found.drawn = std::min(against_, vertices.count());
  for (std::int64_t j = 0; j < found.drawn; ++j) found.vertices.push_back(vertices(j));
  const auto of = filtered_ends_.find(end);
  if (of == filtered_ends_.end()) return found;
  found.vertices.insert(found.vertices.end(), of->second.more.begin(), of->second.more.end());
  found.links = of->second.links;
  return found;
}

}  // namespace espalier
