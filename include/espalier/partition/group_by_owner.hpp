// Ids grouped by the part that owns them: how a list becomes the pieces of an all-to-all-v.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/shared_list.hpp"
#include "espalier/partition/ownership.hpp"
#include "espalier/partition/row_holders.hpp"

namespace espalier {

/// A list of ids, part after part, in the order of the list within a part.
template <class Id, class Space = Cpu>
struct OwnerGroups {
  Array<Space, Id> ids;              ///< [count], as they travel
  Array<Space, std::int64_t> order;  ///< [count] ids[j] is number order[j] of the list
  std::vector<std::int64_t> counts;  ///< [parts], on the host

  std::int64_t size() const { return static_cast<std::int64_t>(ids.size()); }
};

/// Groups list [count] by owner. The ids of part `last` (-1: of none) come after all others, and
/// are not counted. Every id is also a number of type Id. On a GPU `list` is device memory; the
/// host waits once, for the counts. From, Id: int64_t or int32_t.
template <class From, class Id>
void group_by_owner(const Cpu& cpu, const From* list, std::int64_t count, const OwnersOn<Cpu>& owners,
                    OwnerGroups<Id>& groups, int last = -1);
template <class From, class Id>
void group_by_owner(const Cuda& cuda, const From* list, std::int64_t count, const OwnersOn<Cuda>& owners,
                    OwnerGroups<Id, Cuda>& groups, int last = -1);

/// The same by the parts that hold entries of the rows `list`: an id is of each of them, so there
/// are as many ids as pieces. On a GPU the host waits twice.
template <class From, class Id>
void group_by_holder(const Cpu& cpu, const From* list, std::int64_t count, const HoldersOf& holders,
                     int parts, OwnerGroups<Id>& groups, int last = -1);
template <class From, class Id>
void group_by_holder(const Cuda& cuda, const From* list, std::int64_t count, const HoldersOf& holders,
                     int parts, OwnerGroups<Id, Cuda>& groups, int last = -1);

/// The same for points of an axis: part i owns bounds[i] .. bounds[i+1].
void group_by_owner(const Cpu& cpu, const std::uint64_t* list, std::int64_t count,
                    const SharedList<std::uint64_t>& bounds, OwnerGroups<std::uint64_t>& groups);
void group_by_owner(const Cuda& cuda, const std::uint64_t* list, std::int64_t count,
                    const SharedList<std::uint64_t, Cuda>& bounds, OwnerGroups<std::uint64_t, Cuda>& groups);

}  // namespace espalier
