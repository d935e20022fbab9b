// Which part owns which vertex, and which place it has there: contiguous ranges of the id space, as
// everywhere in the program, or any map. Ids are the file's in both: a part's vertices are not
// renumbered, only placed, ascending, so vertex(owner(v), local(v)) = v.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/base/shared_list.hpp"
#include "espalier/graph/schema.hpp"
#include "espalier/partition/owner_map.hpp"

namespace espalier {

// Which part owns which vertex: contiguous ranges of the id space, owner(v) by binary search in
// parts + 1 offsets.

class RowPartition {
 public:
  RowPartition() = default;
  /// `offsets` ascends from 0 to n; part i owns [offsets[i], offsets[i+1]), possibly empty.
  explicit RowPartition(std::vector<std::int64_t> offsets) : offsets_(std::move(offsets)) {}

  int parts() const { return static_cast<int>(offsets_.size()) - 1; }
  std::int64_t rows() const { return offsets_.back(); }
  /// begin(parts()) is n.
  std::int64_t begin(int part) const { return offsets_[part]; }
  std::int64_t end(int part) const { return offsets_[part + 1]; }
  std::int64_t size(int part) const { return end(part) - begin(part); }
  int owner(std::int64_t vertex) const {
    return static_cast<int>(std::upper_bound(offsets_.begin(), offsets_.end(), vertex) - offsets_.begin()) -
           1;
  }
  /// Of every vertex: for few of them.
  std::vector<std::int32_t> owners() const {
    std::vector<std::int32_t> owners;
    for (int part = 0; part < parts(); ++part) owners.insert(owners.end(), size(part), part);
    return owners;
  }

 private:
  std::vector<std::int64_t> offsets_ = {0};
};

/// Parts of [0, rows) whose sizes differ by at most one; some are empty when there are more
/// parts than ids.
inline RowPartition block_partition(std::int64_t rows, int parts) {
  std::vector<std::int64_t> offsets(parts + 1);
  for (int i = 0; i <= parts; ++i) offsets[i] = rows / parts * i + std::min<std::int64_t>(i, rows % parts);
  return RowPartition(std::move(offsets));
}

class Ownership {
 public:
  Ownership() = default;
  /// By ranges; every RowPartition is an ownership.
  Ownership(RowPartition ranges) : ranges_(std::move(ranges)) {}
  /// By a map. Parts may own nothing.
  explicit Ownership(std::shared_ptr<const OwnerMap> map);
  /// The same: part owner[v] of `parts` owns vertex v.
  Ownership(const std::vector<std::int32_t>& owner, int parts);

  int parts() const { return ranges_.parts(); }
  std::int64_t rows() const { return ranges_.rows(); }
  std::int64_t size(int part) const { return ranges_.size(part); }
  int owner(std::int64_t vertex) const;
  /// The place of a vertex among those of its owner. With a map, the marks of that part are made.
  std::int64_t local(std::int64_t vertex) const;
  /// The vertex at place k of a part, 0 <= k < size(part); ascends with k.
  std::int64_t vertex(int part, std::int64_t k) const;

  bool is_map() const { return map_ != nullptr; }
  /// The ranges, where there is no map.
  const RowPartition& ranges() const;
  /// The vertices at `places` of a part, as ranges of ids, ascending: one without a map.
  std::vector<RowRange> vertices(int part, RowRange places) const;
  /// The places in a part of those of `ids` that it owns, in their order.
  std::vector<std::int64_t> places_of(int part, std::span<const std::int64_t> ids) const;
  /// Each part's places cut into so many even ranges: part i becomes parts i pieces, i pieces + 1,
  /// ... So the c ranks of a process row share a block row, and part r is of rank r. Not of what
  /// was cut.
  Ownership cut(int pieces) const;
  /// The same, but `part` owns what all of `parts` own, of which it is one; the others own nothing.
  /// A map, unless the vertices of these parts are one range. Not of what was cut.
  Ownership gathered(const std::vector<int>& parts, int part) const;

 private:
  template <class Space>
  friend struct OwnersOn;
  // The place of a vertex in all of the map, part after part.
  std::int64_t place(std::int64_t vertex) const;

  RowPartition ranges_;                  ///< of vertices; with a map, of places
  std::shared_ptr<const OwnerMap> map_;  ///< whose part i is parts i pieces_, i pieces_ + 1, ...
  int pieces_ = 1;
};

/// Parts that each own an even range of every type's vertices; ranges of ids where there
/// is one type.
Ownership own_types_evenly(const Schema& schema, int parts);

/// The owner of a vertex. Small: copied into kernels.
struct OwnerOf {
  const std::int64_t* bounds;  ///< [parts + 1], memory of the space, as are the others
  std::int64_t parts;
  const std::uint8_t* narrow = nullptr;  ///< [n] with a map of few parts
  const std::uint16_t* wide = nullptr;   ///< [n] with one of many
  const std::int32_t* group = nullptr;   ///< of the owner, with a map whose parts are grouped
  template <class Id>
  ESPALIER_HD std::int64_t operator()(Id vertex) const {
    if (narrow == nullptr && wide == nullptr) return segment_of(bounds, parts, vertex);
    const std::int64_t owner = narrow != nullptr ? narrow[vertex] : wide[vertex];
    return group == nullptr ? owner : group[owner];
  }
};

/// The places of a part for kernels of a space; they stay as long as this.
template <class Space>
struct PartPlaces {
  PlaceOf view;
  std::shared_ptr<const PartMarks<Space>> marks;  ///< with a map
};

/// What kernels of a space read of an ownership. Copies share the memory.
template <class Space>
struct OwnersOn {
  SharedList<std::int64_t, Space> bounds;          ///< [parts + 1] where each part's range begins
  SharedList<std::int32_t, Space> group;           ///< of each part, where a map's are grouped
  std::shared_ptr<const OwnerMap> map;             ///< of the host, or null
  std::shared_ptr<const OwnerBytes<Space>> bytes;  ///< with a map, and then what counts
  int mine = -1;                                   ///< the part whose places are kept
  PartPlaces<Space> my_places;

  OwnersOn() = default;
  /// `part`: the one whose places will be asked for again and again; -1: none.
  OwnersOn(const Space& space, const Ownership& ownership, int part = -1);
  bool is_map() const { return map != nullptr; }
  int parts() const { return static_cast<int>(bounds.size()) - 1; }
  /// Those of another part than mine are made each time.
  PartPlaces<Space> places(const Space& space, int part) const {
    return part == mine ? my_places : make_places(space, part);
  }
  OwnerOf owners() const& {
    OwnerOf of{bounds.data(), parts()};
    if (is_map()) of = {of.bounds, of.parts, bytes->narrow.data(), bytes->wide.data(), group.data()};
    return of;
  }
  void owners() const&& = delete;
  /// Owners of groups of parts, in order: group g has the parts groups.begin(g) .. groups.end(g).
  /// It is not asked for places.
  OwnersOn grouped(const Space& space, const RowPartition& groups) const;

 private:
  PartPlaces<Space> make_places(const Space& space, int part) const;
};

template <class Space>
OwnersOn<Space>::OwnersOn(const Space& space, const Ownership& ownership, int part)
    : map(ownership.map_), mine(part) {
  ESPALIER_CHECK(ownership.pieces_ == 1, "owners of {} pieces of a part", ownership.pieces_);
  std::vector<std::int64_t> begins;
  for (int at = 0; at <= ownership.parts(); ++at) begins.push_back(ownership.ranges_.begin(at));
  bounds = {space, std::move(begins)};
  if constexpr (std::is_same_v<Space, Cpu>) {
    if (is_map()) bytes = std::shared_ptr<const OwnerBytes<Cpu>>(map, &map->bytes());
  } else if (is_map()) {
    bytes = std::make_shared<const OwnerBytes<Space>>(upload(space, map->bytes().narrow),
                                                      upload(space, map->bytes().wide));
  }
  if (mine >= 0) my_places = make_places(space, mine);
}

template <class Space>
PartPlaces<Space> OwnersOn<Space>::make_places(const Space& space, int part) const {
  if (!is_map()) return {PlaceOf{.begin = bounds[part]}, nullptr};
  std::shared_ptr<const PartMarks<Space>> marks;
  if constexpr (std::is_same_v<Space, Cpu>) {
    marks = part == mine ? std::shared_ptr<const PartMarks<Cpu>>(map, &map->marks(part))
                         : std::make_shared<const PartMarks<Cpu>>(map->make_marks(part));
  } else {
    const auto on_host = map->make_marks(part);
    marks =
        std::make_shared<const PartMarks<Space>>(upload(space, on_host.words), upload(space, on_host.before));
  }
  return {PlaceOf{marks->words.data(), marks->before.data()}, marks};
}

template <class Space>
OwnersOn<Space> OwnersOn<Space>::grouped(const Space& space, const RowPartition& groups) const {
  OwnersOn all = *this;
  std::vector<std::int64_t> begins;
  for (int g = 0; g <= groups.parts(); ++g) begins.push_back(bounds[groups.begin(g)]);
  all.bounds = {space, std::move(begins)};
  if (!is_map()) return all;
  all.group = {space, groups.owners()};
  return all;
}

/// ids[0 .. count), memory of the space, are of vertices of `part`: they become places there, but
/// for what is returned: the place is ids[k] - that. So ranges cost nothing. Id: int64_t, int32_t.
template <class Id>
std::int64_t to_places(const Cpu& cpu, const OwnersOn<Cpu>& owners, int part, Id* ids, std::int64_t count);
template <class Id>
std::int64_t to_places(const Cuda& cuda, const OwnersOn<Cuda>& owners, int part, Id* ids, std::int64_t count);

}  // namespace espalier
