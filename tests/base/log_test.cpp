// ranks: 1
// Laws of logs: nothing is said before it is asked for; Quietly leaves warnings, and gives back
// what was; a listener is told what is formatted, and nobody where there is none.
#include "espalier/base/log.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(Log, NothingIsSaidBeforeItIsAskedFor) {
  EXPECT_FALSE(log::enabled(log::Level::kError));
  testing::internal::CaptureStderr();
  log::warning("nobody asked");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");

  log::set_up(0, log::Level::kInfo);
  EXPECT_TRUE(log::enabled(log::Level::kInfo));
  EXPECT_FALSE(log::enabled(log::Level::kDebug));
  {
    const log::Quietly quietly;
    EXPECT_FALSE(log::enabled(log::Level::kInfo));
    EXPECT_TRUE(log::enabled(log::Level::kWarning));
  }
  EXPECT_TRUE(log::enabled(log::Level::kInfo));
  log::set_up(0, log::Level::kError);
  {
    const log::Quietly quietly;
    EXPECT_FALSE(log::enabled(log::Level::kWarning));
  }
}

TEST(Log, AListenerIsTold) {
  std::vector<std::string> heard;
  log::tell(
      [&](log::Level level, std::string_view words) {
        EXPECT_EQ(level, log::Level::kWarning);
        heard.emplace_back(words);
      },
      log::Level::kWarning, "{} of {}", 1, "two");
  log::tell({}, log::Level::kWarning, "{}", "nobody");
  EXPECT_EQ(heard, std::vector<std::string>{"1 of two"});
}

}  // namespace
}  // namespace espalier
