#include "espalier/base/launch.hpp"

#include "espalier/partition/held_types.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

template <class Id>
std::int64_t to_places(const Cuda& cuda, const OwnersOn<Cuda>& owners, int part, Id* ids,
                       std::int64_t count) {
  if (!owners.is_map()) return owners.bounds[part];
  const auto places = owners.places(cuda, part);
  const auto place = places.view;
  for_each(cuda, "to_places", count,
           [=] __device__(std::int64_t k) { ids[k] = static_cast<Id>(place(ids[k])); });
  return 0;
}
template std::int64_t to_places(const Cuda&, const OwnersOn<Cuda>&, int, std::int32_t*, std::int64_t);
template std::int64_t to_places(const Cuda&, const OwnersOn<Cuda>&, int, std::int64_t*, std::int64_t);

void numbers_of(const Cuda& cuda, const HeldTypes& held, std::span<const TypeRun> runs,
                std::span<const std::int64_t> vertices, DeviceArray<std::int64_t>& numbers) {
  std::int64_t count = 0;
  for (const auto& run : runs) count += held.holds_type(run.type) ? run.end - run.begin : 0;
  numbers.resize(count);
  auto* to = numbers.data();
  for (const auto& run : runs) {
    if (!held.holds_type(run.type)) continue;
    const auto shift = held.shift(run.type), size = run.end - run.begin;
    const auto* const from = vertices.data() + run.begin;
    auto* const of_run = to;
    for_each(cuda, "numbers_of_run", size, [=] __device__(std::int64_t k) { of_run[k] = from[k] - shift; });
    to += size;
  }
}

}  // namespace espalier
