// SAMPLE of one row: s draws without replacement by inverse transform sampling, in exact integers.
//
// The law: positions are drawn one at a time, each in proportion to its weight among those not
// drawn yet. That is the law of drawing with replacement and dropping duplicates, in s tries.
//
// The method: let W be the total weight and R the weight of what was removed. A draw is u = a word
// below W - R (point_below), a number on an axis from which the removed intervals were cut out.
// Walking the removed positions in ascending order and adding back the width of each interval that
// starts at or before u gives the same point on the full axis; a binary search in the prefix sums
// finds its position. Exactly s random words are used, draw t of a row is always word t of its
// stream, and a position of weight zero has an empty interval and is never found. For uniform
// weights the axis is 0 .. d-1 itself and no prefix sums exist.
//
// `chosen` keeps the removed positions ascending; what is there at first (a diagonal) is excluded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "espalier/base/philox.hpp"

namespace espalier {

/// Hands out the words of one stream in order, as points below bounds: four per Philox call, with
/// another one for the low halves where they are wanted.
class RandomWords {
 public:
  ESPALIER_HD explicit RandomWords(const KeyedStream& stream) : stream_(stream) {}
  /// The next word's, in [0, bound).
  ESPALIER_HD std::uint64_t next_below(std::uint64_t bound) {
    if (drawn_ % 4 == 0) high_ = random_block(stream_, drawn_ / 4);
    const auto draw = drawn_++;
    return point_below(word_of(high_, draw), bound, [&] { return low_half(draw); });
  }

 private:
  ESPALIER_HD std::uint64_t low_half(std::uint64_t draw) {
    if (low_is_of_ != draw / 4) {
      low_ = random_block(stream_, (std::uint64_t{1} << 31) + draw / 4);
      low_is_of_ = draw / 4;
    }
    return word_of(low_, draw);
  }

  KeyedStream stream_;
  RandomBlock high_{}, low_{};
  std::uint64_t drawn_ = 0, low_is_of_ = ~std::uint64_t{0};
};

/// Inserts `position` into ascending chosen[0 .. count), whose entries before `from` are smaller.
template <class Position>
ESPALIER_HD inline void insert_ascending(Position* chosen, std::int64_t count, std::int64_t from,
                                         std::int64_t position) {
  std::int64_t k = count;
  for (; k > from && chosen[k - 1] > position; --k) chosen[k] = chosen[k - 1];
  chosen[k] = static_cast<Position>(position);
}

/// Draws `picks` of the positions 0 .. support-1 with equal weights, none of the `excluded`
/// positions that chosen[] holds already (ascending). Afterwards chosen[0 .. excluded+picks) is
/// ascending. Needs excluded + picks <= support. Position: an integer that holds support.
template <class Position>
ESPALIER_HD inline void draw_uniform(const KeyedStream& stream, std::int64_t support, std::int64_t picks,
                                     std::int64_t excluded, Position* chosen) {
  RandomWords words(stream);
  for (std::int64_t count = excluded; count < excluded + picks; ++count) {
    auto position = static_cast<std::int64_t>(words.next_below(static_cast<std::uint64_t>(support - count)));
    std::int64_t k = 0;
    for (; k < count && chosen[k] <= position; ++k) ++position;
    insert_ascending(chosen, count, k, position);
  }
}

/// Prefix sums of a part of an array whose sums are known: sums[k] - sums[0].
struct PrefixOfPart {
  const std::uint64_t* sums;
  ESPALIER_HD std::uint64_t operator[](std::int64_t k) const { return sums[k] - sums[0]; }
};

/// Draws `picks` positions in proportion to the weights whose prefix sums are prefix[0 .. support]
/// (prefix[0] = 0; a pointer to std::uint64_t, or PrefixOfPart). `chosen` as above; needs at least
/// `picks` positive weights outside of it. in_order[t] is the position of draw t, or null.
template <class Prefix, class Position>
ESPALIER_HD inline void draw_weighted(const KeyedStream& stream, const Prefix& prefix, std::int64_t support,
                                      std::int64_t picks, std::int64_t excluded, Position* chosen,
                                      std::type_identity_t<Position>* in_order) {
  RandomWords words(stream);
  std::uint64_t total = prefix[support];
  for (std::int64_t k = 0; k < excluded; ++k) total -= prefix[chosen[k] + 1] - prefix[chosen[k]];
  for (std::int64_t count = excluded; count < excluded + picks; ++count) {
    std::uint64_t point = words.next_below(total);
    std::int64_t k = 0;
    for (; k < count && prefix[chosen[k]] <= point; ++k) point += prefix[chosen[k] + 1] - prefix[chosen[k]];
    const std::int64_t position = segment_of(prefix, support, point);
    total -= prefix[position + 1] - prefix[position];
    insert_ascending(chosen, count, k, position);
    if (in_order != nullptr) in_order[count - excluded] = static_cast<Position>(position);
  }
}

/// An axis of weights without some intervals: finds the points that are left by a search.
class CutAxis {
 public:
  /// Cuts out [start, start + weight); in ascending order of start, from an empty axis.
  void cut(std::uint64_t start, std::uint64_t weight) {
    shortened_start_.push_back(start - width_before_.back());
    width_before_.push_back(width_before_.back() + weight);
  }
  void clear() {
    shortened_start_.clear();
    width_before_.assign(1, 0);
  }
  /// The width of all that was cut out.
  std::uint64_t removed() const { return width_before_.back(); }
  /// Point number `point` of those that are left, as one of the whole axis.
  std::uint64_t on_whole_axis(std::uint64_t point) const {
    const auto passed =
        std::upper_bound(shortened_start_.begin(), shortened_start_.end(), point) - shortened_start_.begin();
    return point + width_before_[passed];
  }

 private:
  std::vector<std::uint64_t> shortened_start_;     // on the axis without those before
  std::vector<std::uint64_t> width_before_ = {0};  // [intervals + 1]
};

/// Weights that are drawn and taken away one after another, in a Fenwick tree: a draw takes O(log
/// support) steps instead of one for each position drawn before. The draws are those of
/// draw_weighted with nothing excluded: a point of the axis without the removed intervals is the
/// first position whose sum of remaining weights exceeds it, which is where draw_weighted finds it.
class WeightTree {
 public:
  /// Node i of the tree, 0 < i <= support: the weights of the positions i - (i & -i) .. i - 1. Of
  /// prefix sums only differences matter, so they may be part of longer ones, and wrap.
  ESPALIER_HD static std::uint64_t node(const std::uint64_t* prefix, std::int64_t i) {
    return prefix[i] - prefix[i - (i & -i)];
  }

  /// prefix: [support + 1]; nodes[i - 1] = node(prefix, i), which draws change. Both must stay.
  ESPALIER_HD WeightTree(const std::uint64_t* prefix, std::int64_t support, std::uint64_t* nodes)
      : prefix_(prefix), support_(support), nodes_(nodes), left_(prefix[support] - prefix[0]) {
    while (top_ <= support / 2) top_ *= 2;
  }

  /// All weights that were not drawn.
  ESPALIER_HD std::uint64_t left() const { return left_; }
  ESPALIER_HD std::uint64_t weight(std::int64_t position) const {
    return prefix_[position + 1] - prefix_[position];
  }

  /// The position at a point below left(), which is what draws it; its weight is taken away.
  ESPALIER_HD std::int64_t draw(std::uint64_t point) {
    std::int64_t position = 0;
    for (auto step = top_; step > 0; step /= 2)
      if (position + step <= support_ && nodes_[position + step - 1] <= point) {
        position += step;
        point -= nodes_[position - 1];
      }
    const auto drawn = weight(position);
    subtract(position, drawn);
    left_ -= drawn;
    return position;
  }

 private:
  // Several nodes are read before they are written: a GPU waits for memory once for all.
  ESPALIER_HD void subtract(std::int64_t position, std::uint64_t weight) {
    constexpr int kAtOnce = 8;
    for (auto i = position + 1; i <= support_;) {
      std::int64_t at[kAtOnce];
      std::uint64_t before[kAtOnce];
      for (int k = 0; k < kAtOnce; ++k) {
        at[k] = i - 1;
        before[k] = at[k] < support_ ? nodes_[at[k]] : 0;
        if (i <= support_) i += i & -i;
      }
      for (int k = 0; k < kAtOnce; ++k)
        if (at[k] < support_) nodes_[at[k]] = before[k] - weight;
    }
  }

  const std::uint64_t* prefix_;
  std::int64_t support_;
  std::uint64_t* nodes_;
  std::uint64_t left_;
  std::int64_t top_ = 1;  // the largest power of two that is not above the support
};

/// The same draws as draw_weighted with nothing excluded, for many picks.
inline void draw_weighted_many(const KeyedStream& stream, const std::uint64_t* prefix, std::int64_t support,
                               std::int64_t picks, std::int64_t* chosen, std::int64_t* in_order) {
  std::vector<std::uint64_t> nodes(support);
  for (std::int64_t i = 1; i <= support; ++i) nodes[i - 1] = WeightTree::node(prefix, i);
  WeightTree tree(prefix, support, nodes.data());
  RandomWords words(stream);
  for (std::int64_t t = 0; t < picks; ++t) in_order[t] = chosen[t] = tree.draw(words.next_below(tree.left()));
  std::sort(chosen, chosen + picks);
}

}  // namespace espalier
