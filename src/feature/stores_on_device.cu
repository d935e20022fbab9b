// The copy of a host's features on a GPU, those of vertices and those of edges.
#include "espalier/feature/edge_store.hpp"

namespace espalier {

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

// Codes where `placement` says; what they stand for is read again and again.
PackedRowsOn<Cuda> on_device(const Cuda& cuda, const PackedRows& own, Placement placement) {
  PackedRowsOn<Cuda> packed;
  static_cast<Matrix<PackedWord, Cuda>&>(packed) =
      on_device(cuda, own.rows, own.columns, own.data, placement);
  packed.packing = {own.packing.columns, own.packing.bits, upload(cuda, own.packing.least),
                    upload(cuda, own.packing.step)};
  return packed;
}

struct OnDevice {
  const Cuda& cuda;
  Placement placement;
  bool narrow;

  StoredRows<Cuda> operator()(const PackedRows& own) const { return on_device(cuda, own, placement); }
  StoredRows<Cuda> operator()(const Matrix<Half>& own) const {
    return on_device(cuda, own.rows, own.columns, own.data, placement);
  }
  StoredRows<Cuda> operator()(const Matrix<float>& own) const {
    if (narrow) return on_device(cuda, own.rows, own.columns, narrowed(own.data), placement);
    return on_device(cuda, own.rows, own.columns, own.data, placement);
  }
};

StoredRows<Cuda> on_device(const Cuda& cuda, const StoredRows<Cpu>& block, Placement placement, bool narrow) {
  return std::visit(OnDevice{cuda, placement, narrow}, block);
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
