#include "espalier/partition/ownership.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

// Where each part begins when the parts stand one after another.
RowPartition sizes_of(const std::vector<std::int32_t>& owner, int parts) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(parts) + 1, 0);
  for (const auto part : owner) {
    ESPALIER_CHECK(part >= 0 && part < parts, "part {} of {}", part, parts);
    ++offsets[static_cast<std::size_t>(part) + 1];
  }
  std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
  return RowPartition(std::move(offsets));
}

}  // namespace

Ownership::Ownership(std::vector<std::int32_t> owner, int parts) : ranges_(sizes_of(owner, parts)) {
  Map map;
  map.local.resize(owner.size());
  map.vertices.resize(owner.size());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), 0);
  for (std::size_t v = 0; v < owner.size(); ++v) {
    map.local[v] = sizes[static_cast<std::size_t>(owner[v])]++;
    map.vertices[static_cast<std::size_t>(ranges_.begin(owner[v]) + map.local[v])] =
        static_cast<std::int64_t>(v);
  }
  map.owner = std::move(owner);
  map_ = std::make_shared<const Map>(std::move(map));
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
    if (owner(v) == part) places.push_back(local(v));
  return places;
}

Ownership Ownership::cut(int pieces) const {
  std::vector<std::int64_t> offsets = {0};
  for (int part = 0; part < parts(); ++part) {
    const auto cuts = block_partition(size(part), pieces);
    for (int piece = 0; piece < pieces; ++piece) offsets.push_back(offsets.back() + cuts.size(piece));
  }
  Ownership finer = RowPartition(std::move(offsets));
  if (!is_map()) return finer;
  std::vector<std::int32_t> owner(map_->owner.size());
  for (int part = 0; part < finer.parts(); ++part)
    for (auto at = finer.ranges_.begin(part); at < finer.ranges_.end(part); ++at)
      owner[static_cast<std::size_t>(map_->vertices[static_cast<std::size_t>(at)])] = part;
  return {std::move(owner), finer.parts()};
}

template <class Id>
std::int64_t to_places(const Cpu&, const OwnersOn<Cpu>& owners, int part, Id* ids, std::int64_t count) {
  if (!owners.is_map()) return owners.bounds[part];
  for (std::int64_t k = 0; k < count; ++k) ids[k] = static_cast<Id>(owners.local[ids[k]]);
  return 0;
}
template std::int64_t to_places(const Cpu&, const OwnersOn<Cpu>&, int, std::int32_t*, std::int64_t);
template std::int64_t to_places(const Cpu&, const OwnersOn<Cpu>&, int, std::int64_t*, std::int64_t);

}  // namespace espalier
