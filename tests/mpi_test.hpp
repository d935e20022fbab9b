// What distributed tests share. A test file says at which rank counts it runs in its first lines:
// `// ranks: 1 2 3 4 6 8` (default 1).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "espalier/comm/grid.hpp"
#include "espalier/comm/session.hpp"

namespace espalier {

/// All ranks of this test run.
const Communicator& test_world();

/// The numbers of copies c that divide p.
inline std::vector<int> divisors(int p) {
  std::vector<int> found;
  for (int c = 1; c <= p; ++c)
    if (p % c == 0) found.push_back(c);
  return found;
}

/// The seed of a randomised test: ESPALIER_TEST_SEED, else `fallback`. Print it with SCOPED_TRACE.
inline std::uint64_t test_seed(std::uint64_t fallback) {
  const char* text = std::getenv("ESPALIER_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

/// Collective. A folder that all ranks share, empty, removed by the next test that asks for the
/// same name.
inline std::string test_folder(const std::string& name) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("espalier-test-" + std::to_string(test_world().size()) + "-" + name);
  if (test_world().rank() == 0) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  test_world().barrier();
  return path.string();
}

}  // namespace espalier
