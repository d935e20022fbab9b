// The version of the program and of its library.
#pragma once

namespace espalier {
inline constexpr const char* kVersion = "0.1.0";
}
