// Laws: nested scopes add to paths; a scope's time is part of its parent's; one clock serves all.
#include "espalier/base/clock.hpp"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(StageTimers, NestedScopesAddUpUnderTheirPaths) {
  static double time = 0;  // the clock outlives the test
  set_clock({[] { return time; }, [](double seconds) { time += seconds; }});
  StageTimers timers;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const StageTimers::Scope whole(timers, "sample");
    charge(1);  // the compute-charge hook of a simulated clock
    {
      const StageTimers::Scope inner(timers, "draw");
      charge(2);
    }
    const StageTimers::Scope inner(timers, "extract");
    charge(4);
  }
  EXPECT_DOUBLE_EQ(timers.seconds("sample"), 14);
  EXPECT_DOUBLE_EQ(timers.seconds("sample/draw"), 4);
  EXPECT_DOUBLE_EQ(timers.seconds("sample/extract"), 8);
  EXPECT_DOUBLE_EQ(timers.seconds("draw"), 0) << "a path, not a name";
  EXPECT_EQ(timers.all().size(), 3u);
}

}  // namespace
}  // namespace espalier
