// A fetch on a GPU.
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "row_store.inl.hpp"

namespace espalier {

void concatenate(const Cuda& cuda, IdLists lists, std::int64_t* all) {
  for (const auto& list : lists) {
    copy_bytes_on_device(cuda, list.data(), all, list.size_bytes());
    all += list.size();
  }
}

template <class Id>
void find_sources(const Cuda& cuda, const OwnerGroups<Id, Cuda>& groups, std::int64_t others,
                  std::int64_t first_row, std::int64_t* source) {
  const auto* const order = groups.order.data();
  const auto* const ids = groups.ids.data();
  for_each(cuda, "find_sources", groups.size(),
           [=] __device__(std::int64_t j) { source[order[j]] = j < others ? j : ~(ids[j] - first_row); });
}

template <class Id>
void count_changed(const Cuda& cuda, const Id* asked, std::int64_t count, std::int64_t first,
                   const DeviceArray<std::int32_t>& changed, std::int32_t version,
                   DeviceArray<std::int64_t>& before) {
  DeviceArray<std::int64_t> counted(count);
  auto* const has = counted.data();
  const auto* const since = changed.data();
  for_each(cuda, "count_changed", count,
           [=] __device__(std::int64_t k) { has[k] = since[asked[k] - first] > version; });
  before.resize(count + 1);
  exclusive_sum(cuda, has, before.data(), count);
}

template <class Id>
void take_changed(const Cuda& cuda, const Id* asked, std::int64_t count, const std::int64_t* before,
                  Id* numbers, Id* rows) {
  for_each(cuda, "take_changed", count, [=] __device__(std::int64_t k) {
    const auto at = before[k] - before[0];
    if (before[k + 1] == before[k]) return;
    numbers[at] = static_cast<Id>(k);
    rows[at] = asked[k];
  });
}

template <class Id>
void put_rows(const Cuda& cuda, ConstMatrixView<float, Cuda> from, const Id* places,
              MatrixView<float, Cuda> to) {
  const auto columns = from.columns;
  for_each(cuda, "put_rows", from.rows * columns, [=] __device__(std::int64_t thread) {
    const auto k = thread / columns, j = thread % columns;
    to(static_cast<std::int64_t>(places[k]), j) = from(k, j);
  });
}

void mark_changed(const Cuda& cuda, const DeviceArray<std::int64_t>& places, std::int32_t version,
                  DeviceArray<std::int32_t>& changed) {
  const auto* const place = places.data();
  auto* const since = changed.data();
  for_each(cuda, "mark_changed", std::ssize(places),
           [=] __device__(std::int64_t k) { since[place[k]] = version; });
}

template void put_rows(const Cuda&, ConstMatrixView<float, Cuda>, const std::int32_t*,
                       MatrixView<float, Cuda>);
template void put_rows(const Cuda&, ConstMatrixView<float, Cuda>, const std::int64_t*,
                       MatrixView<float, Cuda>);
template class RowStoreOn<Cuda>;

RowStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const RowStore& host,
                           Placement placement, bool narrow) {
  const DevicePurpose purpose("the features");
  RowStoreOn<Cuda> store(grid, host.ownership(), to_device(cuda, host.storage().rows(), placement, narrow));
  store.hold(host.held());
  return store;
}

}  // namespace espalier
