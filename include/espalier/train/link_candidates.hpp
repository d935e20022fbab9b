// What links are ranked among where candidates are drawn.
//
// Those of an end are the first g of a keyed permutation of all vertices that the relation allows
// there but the link's own: all different, never the link itself, the same on every grid. Filtered
// ranks are among the first g that make no link of any split: these stand behind the others, in
// place of the links among them.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "espalier/base/philox.hpp"
#include "espalier/train/links.hpp"

namespace espalier {

/// The vertices of a range but `own`, in an order of their own for every (seed, split, end, link).
class OtherVertices {
 public:
  OtherVertices(std::uint64_t seed, Split split, LinkEnd open, std::int64_t link, RowRange range,
                std::int64_t own)
      : begin_(range.begin),
        own_(own),
        count_(range.size() - 1),
        order_({.seed = seed,
                .purpose = Purpose::kNegative,
                .batch = 2 * static_cast<std::uint64_t>(split) + (open == LinkEnd::kHead ? 1 : 0),
                .row = static_cast<std::uint64_t>(link)},
               std::max<std::int64_t>(1, count_)) {}

  std::int64_t count() const { return count_; }
  std::int64_t operator()(std::int64_t place) const {
    const auto vertex = begin_ + order_(place);
    return vertex + (vertex < own_ ? 0 : 1);
  }

 private:
  std::int64_t begin_, own_, count_;
  KeyedPermutation order_;
};

/// Those of one end of a link.
struct EndCandidates {
  std::vector<std::int64_t> vertices;  ///< `drawn` of them, then what stands for links among these
  std::int64_t drawn = 0;
  std::span<const std::int64_t> links;  ///< which of those drawn are links, by place
};

class LinkCandidates {
 public:
  /// Collective where train.metric is a filtered one. The targets must outlive it.
  LinkCandidates(const Grid& grid, const LinkTargets& targets, const TrainConfig& train);

  bool filtered() const { return filtered_; }
  /// Most candidates of an end.
  std::int64_t most() const { return against_ + most_more_; }
  /// Of a link of this rank, which must outlive what is returned.
  EndCandidates of(Split split, std::int64_t k, LinkEnd open) const;

 private:
  using End = std::tuple<Split, std::int64_t, LinkEnd>;
  // Where some of an end are links.
  struct Filtered {
    std::vector<std::int64_t> links, more;
  };
  OtherVertices others(const End& end) const;
  void leave_out(const KnownLinks& known, std::vector<End> ends);

  const Grid& grid_;
  const LinkTargets& targets_;
  std::uint64_t seed_;
  std::int64_t against_;
  bool filtered_;
  std::map<End, Filtered> filtered_ends_;
  std::int64_t most_more_ = 0;
};

}  // namespace espalier
