#include "espalier/base/launch.hpp"
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

}  // namespace espalier
