// The copy of a host's features on a GPU, those of vertices and those of edges.
#include "espalier/feature/edge_store.hpp"

namespace espalier {

namespace {

Buffer<BFloat16> narrowed(const Buffer<float>& data) {
  Buffer<BFloat16> narrow(data.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t k = 0; k < std::ssize(data); ++k) narrow[k] = to_bfloat16(data[k]);
  return narrow;
}

StoredRows<Cuda> on_device(const Cuda& cuda, const StoredRows<Cpu>& block, Placement placement, bool narrow) {
  return std::visit(
      [&]<class Rows>(const Rows& own) -> StoredRows<Cuda> {
        const auto copied = [&]<class T>(const Buffer<T>& data) {
          Matrix<T, Cuda> matrix;
          matrix.rows = own.rows;
          matrix.columns = own.columns;
          matrix.data = upload(cuda, data, placement);
          return matrix;
        };
        if constexpr (std::is_same_v<Rows, QuantisedRows>) {
          // What codes stand for is read again and again.
          const auto& of = own.packing;
          return QuantisedRowsOn<Cuda>{copied(own.data),
                                       {of.columns, of.bits, upload(cuda, of.least), upload(cuda, of.step)}};
        } else {
          if constexpr (std::is_same_v<Rows, Matrix<float>>)
            if (narrow) return copied(narrowed(own.data));
          return copied(own.data);
        }
      },
      block);
}

}  // namespace

RowStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const RowStore& host,
                           Placement placement, bool narrow) {
  const DevicePurpose purpose("the features");
  RowStoreOn<Cuda> store(grid, host.ownership(),
                         on_device(cuda, host.storage().in_memory(), placement, narrow));
  store.hold(host.held());
  return store;
}

EdgeStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const EdgeStore& host,
                            const Schema& schema, Placement placement) {
  const DevicePurpose purpose("features of edges");
  const auto& rows = host.rows();
  return {RowStoreOn<Cuda>(grid, rows.ownership(), to_device(cuda, *rows.entries()),
                           on_device(cuda, rows.storage().in_memory(), placement, false)),
          EdgeColumnsOn<Cuda>(cuda, schema, host.held()), schema.columns()};
}

}  // namespace espalier
