#include "espalier/partition/ownership.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/base/error.hpp"
#include "espalier/partition/owner_map.hpp"

namespace espalier {

namespace {

// Where each part begins when the parts stand one after another.
RowPartition one_after_another(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> offsets(sizes.size() + 1, 0);
  std::inclusive_scan(sizes.begin(), sizes.end(), offsets.begin() + 1);
  return RowPartition(std::move(offsets));
}

}  // namespace

Ownership::Ownership(std::shared_ptr<const OwnerMap> map)
    : ranges_(one_after_another(map->sizes())), map_(std::move(map)) {}

Ownership::Ownership(const std::vector<std::int32_t>& owner, int parts)
    : Ownership(std::make_shared<const OwnerMap>(std::ssize(owner), parts,
                                                 [&](std::int64_t v) { return owner[v]; })) {}

std::int64_t Ownership::place(std::int64_t vertex) const {
  const int part = map_->owner(vertex);
  const auto& marks = map_->marks(part);
  return ranges_.begin(part * pieces_) + PlaceOf{marks.words.data(), marks.before.data()}(vertex);
}

Ownership own_types_evenly(const Schema& schema, int parts) {
  if (schema.types().size() == 1 || parts == 1) return block_partition(schema.nodes(), parts);
  int type = 0;
  return Ownership(std::make_shared<const OwnerMap>(schema.nodes(), parts, [&](std::int64_t v) {
    while (v >= schema.types()[type].end) ++type;
    const auto& of = schema.types()[type];
    return even_owner(of.size(), parts, v - of.begin);
  }));
}

int Ownership::owner(std::int64_t vertex) const {
  if (!is_map()) return ranges_.owner(vertex);
  return pieces_ == 1 ? map_->owner(vertex) : ranges_.owner(place(vertex));
}

std::int64_t Ownership::local(std::int64_t vertex) const {
  const auto at = is_map() ? place(vertex) : vertex;
  return at - ranges_.begin(ranges_.owner(at));
}

std::int64_t Ownership::vertex(int part, std::int64_t k) const {
  const auto at = ranges_.begin(part) + k;
  if (!is_map()) return at;
  const int whole = part / pieces_;
  return vertex_at(map_->marks(whole), at - ranges_.begin(whole * pieces_));
}

const RowPartition& Ownership::ranges() const {
  ESPALIER_CHECK(!is_map(), "vertices are owned by a map, not in ranges");
  return ranges_;
}

std::vector<RowRange> Ownership::vertices(int part, RowRange places) const {
  std::vector<RowRange> ranges;
  if (places.size() == 0) return ranges;
  if (!is_map()) return {{vertex(part, places.begin), vertex(part, places.end - 1) + 1}};
  for (auto k = places.begin; k < places.end; ++k) {
    const auto v = vertex(part, k);
    if (ranges.empty() || ranges.back().end != v) ranges.push_back({v, v});
    ++ranges.back().end;
  }
  return ranges;
}

std::vector<std::int64_t> Ownership::places_of(int part, std::span<const std::int64_t> ids) const {
  std::vector<std::int64_t> places;
  for (const auto v : ids)
    if ((!is_map() || map_->owner(v) == part / pieces_) && owner(v) == part) places.push_back(local(v));
  return places;
}

Ownership Ownership::cut(int pieces) const {
  ESPALIER_CHECK(pieces_ == 1, "{} pieces of a part cut again", pieces_);
  std::vector<std::int64_t> offsets = {0};
  for (int part = 0; part < parts(); ++part) {
    const auto cuts = block_partition(size(part), pieces);
    for (int piece = 0; piece < pieces; ++piece) offsets.push_back(offsets.back() + cuts.size(piece));
  }
  Ownership finer = RowPartition(std::move(offsets));
  finer.map_ = map_;
  finer.pieces_ = pieces;
  return finer;
}

// Ranges of neighbours become one.
Ownership Ownership::gathered(const std::vector<int>& parts, int part) const {
  ESPALIER_CHECK(pieces_ == 1, "{} pieces of a part are gathered", pieces_);
  const auto [first, last] = std::ranges::minmax(parts);
  std::vector<bool> gathers(this->parts());
  for (const int one : parts) gathers[one] = true;
  if (!is_map() && last - first + 1 == std::ranges::count(gathers, true)) {
    std::vector<std::int64_t> offsets;
    for (int i = 0; i <= this->parts(); ++i)
      offsets.push_back(i <= first || i > last ? ranges_.begin(i)
                        : i <= part            ? ranges_.begin(first)
                                               : ranges_.end(last));
    return RowPartition(std::move(offsets));
  }
  return Ownership(std::make_shared<const OwnerMap>(rows(), this->parts(), [&](std::int64_t v) {
    const int one = owner(v);
    return gathers[one] ? part : one;
  }));
}

std::int64_t vertex_at(const PartMarks<Cpu>& marks, std::int64_t k) {
  // The last word before which there are at most k marks has the one.
  const auto word = std::ranges::upper_bound(marks.before, k) - marks.before.begin() - 1;
  auto rest = marks.words[word];
  for (auto skipped = k - marks.before[word]; skipped > 0; --skipped) rest &= rest - 1;
  return 64 * word + std::countr_zero(rest);
}

PartMarks<Cpu> OwnerMap::make_marks(int part) const {
  return espalier::make_marks(n_, [&](std::int64_t v) { return owner(v) == part; });
}

const PartMarks<Cpu>& OwnerMap::marks(int part) const {
  const std::lock_guard lock(mutex_);
  auto& kept = kept_[part];
  if (kept == nullptr) kept = std::make_unique<const PartMarks<Cpu>>(make_marks(part));
  return *kept;
}

}  // namespace espalier
