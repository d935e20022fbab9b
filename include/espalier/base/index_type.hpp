// The width of a vertex id, in memory and on the wire: 4 bytes below 2^31 vertices, 8 beyond.
#pragma once

#include <cstdint>

namespace espalier {

/// function(int32_t{}) or function(int64_t{}), whichever holds the ids of so many vertices.
template <class Function>
auto with_index_type(std::int64_t vertices, Function function) {
  if (vertices < (std::int64_t{1} << 31)) return function(std::int32_t{});
  return function(std::int64_t{});
}

/// Bytes of an id of so many vertices.
inline int index_bytes(std::int64_t vertices) {
  return with_index_type(vertices, [](auto id) { return static_cast<int>(sizeof id); });
}

}  // namespace espalier
