// std::bit_cast for functions that the CPU and the GPU share: that of the standard library is the
// host's alone, and nvcc refuses it in device code.
#pragma once

#include <type_traits>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// The value of To that has the bits of `from`.
template <class To, class From>
ESPALIER_HD constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> &&
                std::is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, from);
}

}  // namespace espalier
