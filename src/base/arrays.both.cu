#include "espalier/base/arrays.hpp"

#include "espalier/base/kernels.hpp"

namespace espalier {

void copy_from_zero(const Space& space, const std::int64_t* from, std::int64_t count, std::int64_t* to) {
  for_each(space, "copy_from_zero", count,
           [=] ESPALIER_DEVICE(std::int64_t k) { to[k] = from[k] - from[0]; });
}

std::vector<std::int64_t> read_at(const Space& space, const std::int64_t* values,
                                  std::span<const std::int64_t> places) {
  const auto places_there = copy_to(space, places);
  Array<Space, std::int64_t> read(places.size());
  auto* const to = read.data();
  const auto* const at = places_there.data();
  for_each(space, "read_at", std::ssize(places),
           [=] ESPALIER_DEVICE(std::int64_t k) { to[k] = values[at[k]]; });
  const auto on_host = copy_from(space, read);
  return {on_host.begin(), on_host.end()};
}

}  // namespace espalier
