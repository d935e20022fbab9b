#include "espalier/partition/ownership.hpp"

#include "espalier/base/kernels.hpp"
#include "espalier/partition/held_types.hpp"

namespace espalier {

template <class Id>
std::int64_t to_places(const Space& space, const OwnersOn<Space>& owners, int part, Id* ids,
                       std::int64_t count) {
  if (!owners.is_map()) return owners.bounds[part];
  const auto places = owners.places(space, part);
  const auto place = places.view;
  for_each(space, "to_places", count,
           [=] ESPALIER_DEVICE(std::int64_t k) { ids[k] = static_cast<Id>(place(ids[k])); });
  return 0;
}
template std::int64_t to_places(const Space&, const OwnersOn<Space>&, int, std::int32_t*, std::int64_t);
template std::int64_t to_places(const Space&, const OwnersOn<Space>&, int, std::int64_t*, std::int64_t);

void numbers_of(const Space& space, const HeldTypes& held, std::span<const TypeRun> runs,
                std::span<const std::int64_t> vertices, Array<Space, std::int64_t>& numbers) {
  std::int64_t count = 0;
  for (const auto& run : runs) count += held.holds_type(run.type) ? run.end - run.begin : 0;
  numbers.resize(count);
  auto* to = numbers.data();
  for (const auto& run : runs) {
    if (!held.holds_type(run.type)) continue;
    const auto shift = held.shift(run.type), size = run.end - run.begin;
    const auto* const from = vertices.data() + run.begin;
    auto* const of_run = to;
    for_each(space, "numbers_of_run", size,
             [=] ESPALIER_DEVICE(std::int64_t k) { of_run[k] = from[k] - shift; });
    to += size;
  }
}

}  // namespace espalier
