// What is said of history (history_part.inl.hpp) before, in and after a training.
#pragma once

#include <span>
#include <string>

#include "espalier/history/held_rows.hpp"
#include "espalier/train/planned_parts.hpp"
#include "espalier/train/report.hpp"

namespace espalier {

/// "held" of the group "history": what caches held, by layer and age.
void say_held(std::span<const HeldHistory> held, EpochReport& report);

/// What history spared. Empty without.
std::string history_lines(std::span<const EpochReport> epochs);

/// Rows that it holds, and that steps have written which it does not hold yet
/// (history/history_cache.hpp), as many as training will ever have at once; none where no row can
/// be read.
PlannedPart plan_history(const PlannedTraining& training, double rows_kept_before);

}  // namespace espalier
