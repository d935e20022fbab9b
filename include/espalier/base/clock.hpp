// One clock and one compute-charge hook. Everything that measures time asks `now()`; everything
// that wants to say "this much computing would have happened" calls `charge()`. A network simulator
// replaces both with its own. And StageTimers: seconds by stage, of nested scopes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

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

// Nested timers. A scope named "draw" opened inside a scope named "sample" adds its seconds to
// "sample/draw" as well as, through its parent, to "sample". One StageTimers belongs to one rank
// and one thread.

class StageTimers {
 public:
  /// Seconds of one path ("sample" or "sample/draw"); 0 when it never ran.
  double seconds(std::string_view path) const;
  /// All paths in alphabetical order.
  const std::map<std::string, double, std::less<>>& all() const { return seconds_; }
  void clear() { seconds_.clear(); }
  /// The path that a scope `name` opened now would have, and its seconds when they were measured
  /// otherwise.
  std::string path_of(std::string_view name) const;
  void add(const std::string& path, double seconds) { seconds_[path] += seconds; }

  /// Times one scope, from construction to destruction.
  class Scope {
   public:
    Scope(StageTimers& timers, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StageTimers& timers_;
    std::size_t parent_length_;
    double start_;
  };

 private:
  std::map<std::string, double, std::less<>> seconds_;
  std::string open_path_;
};

}  // namespace espalier
