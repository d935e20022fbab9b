// Which part owns which vertex, and which place it has there: contiguous ranges of the id space, as
// everywhere in the program, or any map. Ids are the file's in both: a part's vertices are not
// renumbered, only placed, ascending, so vertex(owner(v), local(v)) = v.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

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

/// What leaves of a space read of an ownership. Copies share the memory.
template <class Space>
struct OwnersOn {
  SharedList<std::int64_t, Space> bounds;  ///< [parts + 1] where each part's range begins
  SharedList<std::int32_t, Space> owner;   ///< [n] with a map, and then what counts; else empty
  SharedList<std::int64_t, Space> local;   ///< [n] with a map

  OwnersOn() = default;
  OwnersOn(const Space& space, const Ownership& ownership);
  bool is_map() const { return owner.size() > 0; }
  int parts() const { return static_cast<int>(bounds.size()) - 1; }
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

/// ids[0 .. count), memory of the space, are of vertices of `part`: they become places there, but
/// for what is returned: the place is ids[k] - that. So ranges cost nothing. Id: int64_t, int32_t.
template <class Id>
std::int64_t to_places(const Cpu& cpu, const OwnersOn<Cpu>& owners, int part, Id* ids, std::int64_t count);
template <class Id>
std::int64_t to_places(const Cuda& cuda, const OwnersOn<Cuda>& owners, int part, Id* ids, std::int64_t count);

}  // namespace espalier
