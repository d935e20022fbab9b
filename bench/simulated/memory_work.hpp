// What the steps of sampling and fetching (comm/traffic.hpp) take on a GPU that is simulated:
// there the time of computing is not measured but charged, from what each step went through and the
// rates of the machine. The counts are those of a bulk on a GPU: all batches of a rank in one pass,
// uniform draws, ids without padding.
#pragma once

#include <optional>

#include "espalier/base/clock.hpp"
#include "espalier/comm/traffic.hpp"

namespace espalier {

struct Work {
  double gathers = 0;  ///< reads or writes at random places, each of no more than a sector
                       ///< (32 bytes)
  double bytes = 0;    ///< read or written in order
  int launches = 1;    ///< passes, each a kernel that depends on the one before
};

struct WorkRates {
  double gathers_per_second = 0;
  double bytes_per_second = 0;
  double seconds_per_launch = 0;
};

inline Work work_of(MemoryStep step, const MemoryCounts& counts) {
  const auto rows = static_cast<double>(counts.rows), entries = static_cast<double>(counts.entries),
             bytes = static_cast<double>(counts.bytes);
  switch (step) {
    case MemoryStep::kFindDistinct:  // a table of ids, filled and read; distinct ids by owner
      return {3 * rows + entries, 16 * rows + 24 * entries, 6};
    case MemoryStep::kGroupByOwner:  // owner, count, scatter of ids and places
      return {rows, 24 * rows, 4};
    case MemoryStep::kKeys:
      return {0, 20 * rows, 2};
    case MemoryStep::kViewRows:
      return {rows, 24 * rows};
    case MemoryStep::kTakeViews:
      return {rows, 32 * rows};
    case MemoryStep::kReply:
      return {2 * rows, 2 * bytes, counts.rows > 0 ? 3 : 0};
    case MemoryStep::kWholeRows:
      return {rows, 2 * bytes, 3};
    case MemoryStep::kSizes:
      return {0, 12 * rows, 3};
    case MemoryStep::kInOrder:
      return {2 * rows, 8 * rows + 2 * bytes, 2};
    case MemoryStep::kDraw:  // where each row begins, its key, the column of each pick, weights
      return {rows + entries, 32 * rows + 4 * entries + bytes, 3};
    // A mark for each pick, the ranks of all marks, each pick's word and place.
    case MemoryStep::kExtract:
      return {3 * entries + rows,
              12 * entries + 8 * rows + 12 * static_cast<double>(counts.columns) +
                  40 * static_cast<double>(counts.words),
              8};
    case MemoryStep::kGroupFeatures:
      return {rows, 16 * rows + bytes, 4};
    case MemoryStep::kReplyFeatures:
      return {rows, 2 * bytes};
    case MemoryStep::kPlaceFeatures:
      return {rows, bytes};
  }
  return {};
}

inline double seconds_of(const Work& work, const WorkRates& rates) {
  return work.gathers / rates.gathers_per_second + work.bytes / rates.bytes_per_second +
         work.launches * rates.seconds_per_launch;
}

/// From now on the clock is charged for every step at these rates, or not at all. Not thread safe:
/// for the start of a program.
inline void charge_memory_steps(const std::optional<WorkRates>& rates) {
  if (!rates) return void(memory_observer() = {});
  memory_observer() = [rates = *rates](MemoryStep step, const MemoryCounts& counts) {
    charge(seconds_of(work_of(step, counts), rates));
  };
}

}  // namespace espalier
