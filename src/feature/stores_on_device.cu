// The copy of a host's features on a GPU, those of vertices and those of edges.
#include "espalier/feature/edge_store.hpp"

namespace espalier {

RowStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const RowStore& host,
                           Placement placement, bool narrow) {
  const DevicePurpose purpose("the features");
  RowStoreOn<Cuda> store(grid, host.ownership(), to_device(cuda, host.storage().rows(), placement, narrow));
  store.hold(host.held());
  return store;
}

EdgeStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const EdgeStore& host,
                            const Schema& schema, Placement placement) {
  const DevicePurpose purpose("features of edges");
  const auto& rows = host.rows();
  return {RowStoreOn<Cuda>(grid, rows.ownership(), to_device(cuda, *rows.entries()),
                           to_device(cuda, rows.storage().rows(), placement)),
          EdgeColumnsOn<Cuda>(cuda, schema, host.held()), schema.columns()};
}

}  // namespace espalier
