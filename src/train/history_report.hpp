// What a report says of history beside its counters, and the lines of a log.
#pragma once

#include <span>
#include <string>

#include "espalier/history/history_audit.hpp"
#include "espalier/train/report.hpp"

namespace espalier {

/// "held" of the group "history": what caches held, by layer and age.
void say_held(std::span<const HeldHistory> held, EpochReport& report);

/// What history spared; and, audited, what it held after the last epoch. Empty without.
std::string history_lines(std::span<const EpochReport> epochs);

}  // namespace espalier
