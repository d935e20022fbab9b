// What an operation does to memory, for a machine that is simulated: there the time of computing is
// not measured but charged, from counts that the operation gives and rates that the simulation
// installs. Sampling and fetching do hardly any arithmetic, so memory is what is counted. On a real
// machine no rates are installed, and `charge` returns at once.
//
// The counts are those of a bulk on a GPU: all batches of a rank in one pass, uniform draws, ids
// without padding.
#pragma once

#include <optional>

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

/// From now on work is charged at these rates, or not at all. Not thread safe: for the start of
/// a program.
void set_work_rates(const std::optional<WorkRates>& rates);

/// Charges the seconds that `work` takes at the installed rates to the clock.
void charge(const Work& work);

}  // namespace espalier
