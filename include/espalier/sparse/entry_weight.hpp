// The integer that an entry of a matrix counts in a sum of rows. CPU and GPU compile these
// same lines.
#pragma once

#include <cstdint>

#include "espalier/base/fixed_point.hpp"
#include "espalier/base/host_device.hpp"

namespace espalier {

/// 1, or the fixed-point square of the entry's value.
struct EntryWeight {
  bool squared = false;
  bool skip_zeros = false;  ///< an entry of value 0 counts 0
  int shift = 0;            ///< of fixed_point_weight
  ESPALIER_HD std::uint64_t operator()(const float* value) const {
    if (!squared) return skip_zeros && value != nullptr && *value == 0 ? 0 : 1;
    const double entry = value == nullptr ? 1.0 : static_cast<double>(*value);
    return fixed_point_weight(entry * entry, shift);
  }
};

}  // namespace espalier
