#include "espalier/base/arrays.hpp"

namespace espalier {

void copy_from_zero(const Cpu&, const std::int64_t* from, std::int64_t count, std::int64_t* to) {
  for (std::int64_t k = 0; k < count; ++k) to[k] = from[k] - from[0];
}

std::vector<std::int64_t> read_at(const Cpu&, const std::int64_t* values,
                                  std::span<const std::int64_t> places) {
  std::vector<std::int64_t> read;
  for (const auto place : places) read.push_back(values[place]);
  return read;
}

}  // namespace espalier
