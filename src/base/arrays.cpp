#include "espalier/base/arrays.hpp"

namespace espalier {

std::vector<std::int64_t> read_at(const Cpu&, const std::int64_t* values,
                                  std::span<const std::int64_t> places) {
  std::vector<std::int64_t> read;
  for (const auto place : places) read.push_back(values[place]);
  return read;
}

}  // namespace espalier
