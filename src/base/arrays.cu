#include "espalier/base/arrays.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

void copy_from_zero(const Cuda& cuda, const std::int64_t* from, std::int64_t count, std::int64_t* to) {
  for_each(cuda, "copy_from_zero", count, [=] __device__(std::int64_t k) { to[k] = from[k] - from[0]; });
}

std::vector<std::int64_t> read_at(const Cuda& cuda, const std::int64_t* values,
                                  std::span<const std::int64_t> places) {
  const auto device_places = copy_to(cuda, places);
  DeviceArray<std::int64_t> read(places.size());
  auto* const to = read.data();
  const auto* const at = device_places.data();
  for_each(cuda, "read_at", std::ssize(places), [=] __device__(std::int64_t k) { to[k] = values[at[k]]; });
  const auto on_host = download(cuda, read);
  return {on_host.begin(), on_host.end()};
}

}  // namespace espalier
