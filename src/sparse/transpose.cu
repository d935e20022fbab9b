// By a stable sort: entries come in their order, so sorting them by column alone leaves each row of
// the transpose in ascending column, equal ones in the order they had. Alongside go its row and the
// bits of its value; or its position, from which the two follow.
#include "espalier/sparse/transpose.hpp"

#include <bit>

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {
namespace {

/// The row of an entry.
__device__ std::int64_t row_of(const BlockView<Cuda>& block, std::int64_t entry) {
  return segment_of(block.indptr, block.rows, entry);
}

void find_rows(const Cuda& cuda, const BlockView<Cuda>& block, std::uint32_t* columns, std::int32_t* rows) {
  for_each(cuda, "transpose: rows of entries", block.entries(), [=] __device__(std::int64_t k) {
    const std::int64_t entry = block.indptr[0] + k;
    columns[k] = static_cast<std::uint32_t>(block.indices[entry]);
    rows[k] = static_cast<std::int32_t>(row_of(block, entry));
  });
}

/// Row in the upper, value in the lower half of a number.
void find_rows_and_values(const Cuda& cuda, const BlockView<Cuda>& block, std::uint32_t* columns,
                          std::int64_t* kept) {
  for_each(cuda, "transpose: rows and values of entries", block.entries(), [=] __device__(std::int64_t k) {
    const std::int64_t entry = block.indptr[0] + k;
    columns[k] = static_cast<std::uint32_t>(block.indices[entry]);
    kept[k] = row_of(block, entry) << 32 | static_cast<std::int64_t>(__float_as_uint(block.values[entry]));
  });
}

void split(const Cuda& cuda, const std::int64_t* kept, std::int64_t entries, std::int32_t* rows,
           float* values) {
  for_each(cuda, "transpose: split", entries, [=] __device__(std::int64_t k) {
    rows[k] = static_cast<std::int32_t>(kept[k] >> 32);
    values[k] = __uint_as_float(static_cast<unsigned>(kept[k]));
  });
}

void find_columns(const Cuda& cuda, const BlockView<Cuda>& block, std::uint32_t* columns,
                  std::int64_t* positions) {
  for_each(cuda, "transpose: columns of entries", block.entries(), [=] __device__(std::int64_t k) {
    columns[k] = static_cast<std::uint32_t>(block.indices[block.indptr[0] + k]);
    positions[k] = k;
  });
}

/// The rows and values (unless null) of entries by their positions.
void follow(const Cuda& cuda, const BlockView<Cuda>& block, const std::int64_t* positions, std::int32_t* rows,
            float* values) {
  for_each(cuda, "transpose: follow positions", block.entries(), [=] __device__(std::int64_t k) {
    const std::int64_t entry = block.indptr[0] + positions[k];
    rows[k] = static_cast<std::int32_t>(row_of(block, entry));
    if (values != nullptr) values[k] = block.values[entry];
  });
}

/// indptr[j] = the number of entries in columns before j.
void find_row_starts(const Cuda& cuda, const std::uint32_t* sorted, std::int64_t entries,
                     std::int64_t columns, std::int64_t* indptr) {
  for_each(cuda, "transpose: row starts", columns + 1, [=] __device__(std::int64_t j) {
    indptr[j] = count_below(sorted, entries, static_cast<std::uint32_t>(j));
  });
}

}  // namespace

void transpose(const Cuda& cuda, const BlockView<Cuda>& block, Csr<std::int32_t, Cuda>& result,
               DeviceArray<std::int64_t>* positions) {
  ESPALIER_CHECK(block.entries() < std::int64_t{1} << 31, "a block of {} entries", block.entries());
  const auto entries = static_cast<std::size_t>(block.entries());
  result.rows = block.columns;
  result.columns = block.rows;
  result.indptr.resize(block.columns + 1);
  result.indices.resize(entries);
  result.values.resize(block.has_values() ? entries : 0);
  result.weighted = block.has_values();
  const int bits = std::bit_width(static_cast<std::uint64_t>(block.columns));
  DeviceArray<std::uint32_t> columns(entries), sorted(entries);
  if (positions != nullptr) {
    positions->resize(entries);
    DeviceArray<std::int64_t> unsorted(entries);
    find_columns(cuda, block, columns.data(), unsorted.data());
    sort_pairs(cuda, columns.data(), sorted.data(), unsorted.data(), positions->data(), block.entries(),
               bits);
    follow(cuda, block, positions->data(), result.indices.data(),
           block.has_values() ? result.values.data() : nullptr);
  } else if (block.has_values()) {
    DeviceArray<std::int64_t> kept(entries), sorted_kept(entries);
    find_rows_and_values(cuda, block, columns.data(), kept.data());
    sort_pairs(cuda, columns.data(), sorted.data(), kept.data(), sorted_kept.data(), block.entries(), bits);
    split(cuda, sorted_kept.data(), block.entries(), result.indices.data(), result.values.data());
  } else {
    DeviceArray<std::int32_t> rows(entries);
    find_rows(cuda, block, columns.data(), rows.data());
    sort_pairs(cuda, columns.data(), sorted.data(), rows.data(), result.indices.data(), block.entries(),
               bits);
  }
  find_row_starts(cuda, sorted.data(), block.entries(), block.columns, result.indptr.data());
}

}  // namespace espalier
