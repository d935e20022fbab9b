#include "espalier/sample/type_runs.hpp"

#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

// nvcc wants types that kernels capture outside of functions.
struct AscendingList {
  const std::int64_t* ids;
  std::int64_t size;
};

}  // namespace

std::vector<std::int64_t> count_below(const Cuda& cuda, std::span<const std::span<const std::int64_t>> lists,
                                      const SharedList<std::int64_t, Cuda>& ends) {
  std::vector<AscendingList> on_host;
  for (const auto& list : lists) on_host.push_back({list.data(), std::ssize(list)});
  DeviceArray<AscendingList> on_device;
  upload(cuda, std::span<const AscendingList>(on_host), on_device);
  const auto types = ends.size();
  DeviceArray<std::int64_t> counts(lists.size() * static_cast<std::size_t>(types));
  const auto* const from = on_device.data();
  const auto* const bounds = ends.data();
  auto* const to = counts.data();
  for_each(cuda, "count_below", std::ssize(counts), [=] __device__(std::int64_t at) {
    const auto list = from[at / types];
    to[at] = count_below(list.ids, list.size, bounds[at % types]);
  });
  const auto all = download(cuda, counts);
  return {all.begin(), all.end()};
}

}  // namespace espalier
