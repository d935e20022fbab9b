// What the model expects of a fetch.
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Rows lie evenly over the block rows; an id and a row of `row_bytes` for each of the `wanted` that lies elsewhere.
inline void predict_fetch(const Communicator& column, std::string_view label, std::int64_t wanted,
                          std::int64_t row_bytes) {
  const double peers = column.size() - 1;
  column.traffic().predict(
      label, 3 * peers,
      8 * peers + static_cast<double>(wanted) * peers / column.size() * (8 + static_cast<double>(row_bytes)));
}

}  // namespace espalier
