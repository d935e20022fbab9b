#include "espalier/partition/held_types.hpp"

#include "espalier/base/launch.hpp"

namespace espalier {

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
