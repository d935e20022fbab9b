// What is said of kept rows, and of bytes that were not moved, before and after a training
// (kept_rows.inl.hpp).
#pragma once

#include <span>
#include <string>

#include "espalier/comm/communicator.hpp"
#include "espalier/feature/row_storage.hpp"
#include "espalier/train/planned_parts.hpp"
#include "espalier/train/report.hpp"

namespace espalier {

/// The group of what was read from disk.
inline constexpr const char* kDiskGroup = "disk";

/// Collective. Seconds of an epoch's reads, and those that its steps waited for them: the most of a
/// rank.
void say_seconds_of_disk(const Communicator& comm, const DiskCounts& mine, EpochReport& report);

/// What was read from disk, and how long that took; empty where nothing is there.
std::string disk_line(std::span<const EpochReport> epochs);

/// What history and kept rows saved between ranks; empty where nothing was.
std::string saved_line(std::span<const EpochReport> epochs);

/// Copies of rows that other ranks own (feature/row_cache.hpp), the most that there are and that
/// the parts before leave of run.cache_memory.
PlannedPart plan_kept_rows(const PlannedTraining& training, double rows_kept_before);

}  // namespace espalier
