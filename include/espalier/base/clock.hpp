// One clock and one compute-charge hook. Everything that measures time asks `now()`; everything
// that wants to say "this much computing would have happened" calls `charge()`. A network simulator
// replaces both with its own.
#pragma once

#include <functional>

namespace espalier {

struct Clock {
  std::function<double()> now;                 ///< seconds since some fixed moment, monotone
  std::function<void(double seconds)> charge;  ///< accounts for computing that is
                                               ///< simulated, not done
};

/// Installs a clock (comm/ does at start-up). Not thread safe.
void set_clock(Clock clock);

/// Seconds since some fixed moment.
double now();

/// Seconds since set_clock, which is the beginning of the program.
double seconds_since_start();

/// Charges `seconds` of computing to the simulated time; nothing happens on a real machine.
void charge(double seconds);

}  // namespace espalier
