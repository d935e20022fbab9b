// A line of `espalier info`, on its pages.
#pragma once

#include <string>

#include "espalier/base/escape.hpp"
#include "espalier/base/log.hpp"

namespace espalier {

inline constexpr const char* kInfoLabel = "info";  ///< of its traffic

inline void info_line(const char* name, const std::string& text) {
  log::info("{:<12} {}", name, excerpt(text));
}

}  // namespace espalier
