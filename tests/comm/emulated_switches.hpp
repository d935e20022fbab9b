// The emulated GPUs on PCIe switches, while it lives. On real GPUs it changes nothing.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "comm/device_transports.hpp"

namespace espalier {

inline bool is_emulated() {
  return own_gpu().name() == "emulated GPU";
}

class EmulatedSwitches {
 public:
  /// The switch of each GPU; `nvlinks` as 0-1,2-3, where a number that is no GPU's is an NVSwitch.
  explicit EmulatedSwitches(const std::vector<int>& switches, const char* nvlinks = "") {
    std::string numbers;
    for (const int number : switches) numbers += (numbers.empty() ? "" : ",") + std::to_string(number);
    setenv("ESPALIER_EMULATED_SWITCHES", numbers.c_str(), 1);
    setenv("ESPALIER_EMULATED_NVLINKS", nvlinks, 1);
  }
  ~EmulatedSwitches() {
    unsetenv("ESPALIER_EMULATED_SWITCHES");
    unsetenv("ESPALIER_EMULATED_NVLINKS");
  }
  EmulatedSwitches(const EmulatedSwitches&) = delete;
  EmulatedSwitches& operator=(const EmulatedSwitches&) = delete;
};

}  // namespace espalier
