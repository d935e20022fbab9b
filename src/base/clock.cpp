#include "espalier/base/clock.hpp"

#include <chrono>
#include <utility>

namespace espalier {

namespace {
double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
Clock& installed() {
  static Clock clock{steady_seconds, [](double) {}};
  return clock;
}
double program_start = steady_seconds();
}  // namespace

void set_clock(Clock clock) {
  installed() = std::move(clock);
  program_start = now();
}
double seconds_since_start() {
  return now() - program_start;
}
double now() {
  return installed().now();
}
void charge(double seconds) {
  installed().charge(seconds);
}

}  // namespace espalier
