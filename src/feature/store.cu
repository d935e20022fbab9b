// A fetch on a GPU, and the copy of a host's store there.
#include "espalier/base/launch.hpp"
#include "store.inl.hpp"

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

namespace {

template <class T>
Matrix<T, Cuda> on_device(const Cuda& cuda, std::int64_t rows, std::int64_t columns, const Buffer<T>& data,
                          Placement placement) {
  Matrix<T, Cuda> matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.data = upload(cuda, data, placement);
  return matrix;
}

Buffer<BFloat16> narrowed(const Buffer<float>& data) {
  Buffer<BFloat16> narrow(data.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t k = 0; k < std::ssize(data); ++k) narrow[k] = to_bfloat16(data[k]);
  return narrow;
}

}  // namespace

FeatureStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const FeatureStore& host,
                               Placement placement, bool narrow) {
  const DevicePurpose purpose("the features");
  auto block = std::visit(
      [&]<class T>(const Matrix<T>& own) -> StoredRows<Cuda> {
        if constexpr (std::is_same_v<T, float>)
          if (narrow) return on_device(cuda, own.rows, own.columns, narrowed(own.data), placement);
        return on_device(cuda, own.rows, own.columns, own.data, placement);
      },
      host.block());
  return {grid, host.partition(), std::move(block)};
}

template class FeatureStoreOn<Cuda>;

}  // namespace espalier
