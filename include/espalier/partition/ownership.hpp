// Which part owns which vertex, and which place it has there: contiguous ranges of the id space, as
// everywhere in the program, or any map. Ids are the file's in both: a part's vertices are not
// renumbered, only placed, ascending, so vertex(owner(v), local(v)) = v.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/base/search.hpp"
#include "espalier/base/shared_list.hpp"
#include "espalier/graph/row_range.hpp"
#include "espalier/partition/row_partition.hpp"

namespace espalier {

class Ownership {
 public:
  Ownership() = default;
  /// By ranges; every RowPartition is an ownership.
  Ownership(RowPartition ranges) : ranges_(std::move(ranges)) {}
  /// By a map: part owner[v] of `parts` owns vertex v. Parts may own nothing.
  Ownership(std::vector<std::int32_t> owner, int parts);

  int parts() const { return ranges_.parts(); }
  std::int64_t rows() const { return ranges_.rows(); }
  std::int64_t size(int part) const { return ranges_.size(part); }
  int owner(std::int64_t vertex) const { return map_ ? map_->owner[vertex] : ranges_.owner(vertex); }
  /// The place of a vertex among those of its owner.
  std::int64_t local(std::int64_t vertex) const {
    return map_ ? map_->local[vertex] : vertex - ranges_.begin(ranges_.owner(vertex));
  }
  /// The vertex at place k of a part, 0 <= k < size(part); ascends with k.
  std::int64_t vertex(int part, std::int64_t k) const {
    return map_ ? map_->vertices[ranges_.begin(part) + k] : ranges_.begin(part) + k;
  }

  bool is_map() const { return map_ != nullptr; }
  /// The ranges, where there is no map.
  const RowPartition& ranges() const;
  /// The vertices at `places` of a part, as ranges of ids, ascending: one without a map.
  std::vector<RowRange> vertices(int part, RowRange places) const;
  /// The places in a part of those of `ids` that it owns, in their order.
  std::vector<std::int64_t> places_of(int part, std::span<const std::int64_t> ids) const;
  /// Each part's places cut into so many even ranges: part i becomes parts i pieces, i pieces + 1,
  /// ... So the c ranks of a process row share a block row, and part r is of rank r.
  Ownership cut(int pieces) const;

 private:
  template <class Space>
  friend struct OwnersOn;
  struct Map {
    std::vector<std::int32_t> owner;     ///< [n]
    std::vector<std::int64_t> local;     ///< [n]
    std::vector<std::int64_t> vertices;  ///< [n], part after part
  };

  RowPartition ranges_;  ///< of vertices; with a map, of places in map_->vertices
  std::shared_ptr<const Map> map_;
};

/// Place of a vertex among those of one part, which owns it. Small: copied into kernels.
struct PlaceOf {
  const std::int64_t* local = nullptr;  ///< [n], memory of the space; null: vertices from
                                        ///< `begin` on
  std::int64_t begin = 0;
  template <class Id>
  ESPALIER_HD std::int64_t operator()(Id vertex) const {
    return local != nullptr ? local[vertex] : static_cast<std::int64_t>(vertex) - begin;
  }
};

/// The owner of a vertex. Small: copied into kernels.
struct OwnerOf {
  const std::int64_t* bounds;  ///< [parts + 1], memory of the space, as are the others
  std::int64_t parts;
  const std::int32_t* owner = nullptr;  ///< [n] with a map
  const std::int32_t* group = nullptr;  ///< of owner[v], with a map whose parts are grouped
  template <class Id>
  ESPALIER_HD std::int64_t operator()(Id vertex) const {
    if (owner == nullptr) return segment_of(bounds, parts, vertex);
    return group == nullptr ? owner[vertex] : group[owner[vertex]];
  }
};

/// What leaves of a space read of an ownership. Copies share the memory.
template <class Space>
struct OwnersOn {
  SharedList<std::int64_t, Space> bounds;  ///< [parts + 1] where each part's range begins
  SharedList<std::int32_t, Space> owner;   ///< [n] with a map, and then what counts; else empty
  SharedList<std::int64_t, Space> local;   ///< [n] with a map
  SharedList<std::int32_t, Space> group;   ///< with a map: of each part, where parts are grouped

  OwnersOn() = default;
  OwnersOn(const Space& space, const Ownership& ownership);
  bool is_map() const { return owner.size() > 0; }
  int parts() const { return static_cast<int>(bounds.size()) - 1; }
  PlaceOf places(int part) const { return {local.data(), bounds[part]}; }
  OwnerOf owners() const { return {bounds.data(), parts(), owner.data(), group.data()}; }
  /// Owners of groups of parts, in order: group g has the parts groups.begin(g) .. groups.end(g).
  /// It is not asked for places.
  OwnersOn grouped(const Space& space, const RowPartition& groups) const;
};

template <class Space>
OwnersOn<Space>::OwnersOn(const Space& space, const Ownership& ownership) {
  std::vector<std::int64_t> begins;
  for (int part = 0; part <= ownership.parts(); ++part) begins.push_back(ownership.ranges_.begin(part));
  bounds = {space, std::move(begins)};
  if (!ownership.is_map()) return;
  owner = {space, ownership.map_->owner};
  local = {space, ownership.map_->local};
}

template <class Space>
OwnersOn<Space> OwnersOn<Space>::grouped(const Space& space, const RowPartition& groups) const {
  OwnersOn all = *this;
  std::vector<std::int64_t> begins;
  for (int g = 0; g <= groups.parts(); ++g) begins.push_back(bounds[groups.begin(g)]);
  all.bounds = {space, std::move(begins)};
  if (!is_map()) return all;
  std::vector<std::int32_t> of_part;
  for (int part = 0; part < parts(); ++part) of_part.push_back(groups.owner(part));
  all.group = {space, std::move(of_part)};
  return all;
}

/// ids[0 .. count), memory of the space, are of vertices of `part`: they become places there, but
/// for what is returned: the place is ids[k] - that. So ranges cost nothing. Id: int64_t, int32_t.
template <class Id>
std::int64_t to_places(const Cpu& cpu, const OwnersOn<Cpu>& owners, int part, Id* ids, std::int64_t count);
template <class Id>
std::int64_t to_places(const Cuda& cuda, const OwnersOn<Cuda>& owners, int part, Id* ids, std::int64_t count);

}  // namespace espalier
