// Ranges for a profiler: there is none here, but those that a thread has open can be asked for.
#pragma once
#include <string>
#include <vector>

inline thread_local std::vector<std::string> emulated_ranges;  ///< the outermost first

inline int nvtxRangePushA(const char* name) {
  emulated_ranges.emplace_back(name);
  return static_cast<int>(emulated_ranges.size()) - 1;
}
inline int nvtxRangePop() {
  if (emulated_ranges.empty()) return -2;
  emulated_ranges.pop_back();
  return static_cast<int>(emulated_ranges.size());
}
#define ESPALIER_EMULATED_RANGES
