#include "window.hpp"

#include "each_entry.hpp"

namespace espalier {

DeviceArray<float> mean_values(const Cuda& cuda, const DeviceArray<std::int64_t>& row_offsets,
                               std::int64_t entries) {
  DeviceArray<float> values(entries);
  auto* const to = values.data();
  const auto* const offsets = row_offsets.data();
  for_each_entry(cuda, "mean_values", offsets, std::ssize(row_offsets) - 1, 0, entries,
                 [=] __device__(std::int64_t at, std::int64_t row) {
                   to[at] = mean_value(offsets[row + 1] - offsets[row]);
                 });
  return values;
}

}  // namespace espalier
