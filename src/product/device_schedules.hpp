// Sparse rows on a GPU on their way between ranks: what the schedules of device_product.hpp share.
#pragma once

#include <string>
#include <vector>

#include "cost_model.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/device_search.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/product/device_product.hpp"

namespace espalier {

/// The two schedules where there are several block rows; as apply_product.
template <class Index>
void push_product(const Cuda& cuda, const DeviceCommunicator& column, const RowKey* keys, std::int64_t count,
                  const DeviceDistCsr<Index>& a, const std::string& label,
                  const DeviceRowOperation<Index>& operation, DeviceRowEntries<Index>& out);
template <class Index>
void pull_product(const Cuda& cuda, const DeviceCommunicator& column, const RowKey* keys, std::int64_t count,
                  const DeviceDistCsr<Index>& a, const std::string& label,
                  const DeviceRowOperation<Index>& operation, DeviceRowEntries<Index>& out);

/// Rows one after another in device memory, for kernels.
template <class Index>
struct RowsInMemory {
  const std::int64_t* offsets;
  const Index* indices;
  const float* values;  ///< or null

  __device__ RowView<Index> operator[](std::int64_t row) const {
    const std::int64_t begin = offsets[row];
    return {indices + begin, values == nullptr ? nullptr : values + begin, offsets[row + 1] - begin};
  }
};

template <class Index>
RowsInMemory<Index> rows_of(const Csr<Index, Cuda>& matrix) {
  return {matrix.indptr.data(), matrix.indices.data(), matrix.has_values() ? matrix.values.data() : nullptr};
}

/// The partition's offsets [parts + 1].
inline DeviceArray<std::int64_t> offsets_of(const Cuda& cuda, const RowPartition& partition) {
  Buffer<std::int64_t> offsets;
  for (int part = 0; part <= partition.parts(); ++part) offsets.push_back(partition.begin(part));
  return upload(cuda, offsets);
}

/// {0, counts[0], counts[0] + counts[1], ...}: where the pieces of ranks begin, and the end.
inline Buffer<std::int64_t> begins_of(const std::vector<std::int64_t>& counts) {
  Buffer<std::int64_t> begins = {0};
  for (const auto count : counts) begins.push_back(begins.back() + count);
  return begins;
}

/// Differences of neighbours.
inline std::vector<std::int64_t> counts_between(std::span<const std::int64_t> begins) {
  std::vector<std::int64_t> counts;
  for (std::size_t k = 0; k + 1 < begins.size(); ++k) counts.push_back(begins[k + 1] - begins[k]);
  return counts;
}

/// values[places[k]] for all k; the host waits.
inline Buffer<std::int64_t> read_at(const Cuda& cuda, const std::int64_t* values,
                                    const Buffer<std::int64_t>& places) {
  const auto at = upload(cuda, places);
  DeviceArray<std::int64_t> read(places.size());
  auto* const to = read.data();
  const auto* const from = at.data();
  for_each(cuda, "read_at", std::ssize(places), [=] __device__(std::int64_t k) { to[k] = values[from[k]]; });
  return download(cuda, read);
}

/// sizes [rows] of rows that begin at `offsets`, as they travel.
template <class Index>
void sizes_of_rows(const Cuda& cuda, const std::int64_t* offsets, std::int64_t rows, Index* sizes) {
  for_each(cuda, "sizes_of_rows", rows,
           [=] __device__(std::int64_t r) { sizes[r] = static_cast<Index>(offsets[r + 1] - offsets[r]); });
}

/// offsets [rows + 1] = where rows of these sizes begin.
template <class Index>
void offsets_of_sizes(const Cuda& cuda, const Index* sizes, std::int64_t rows,
                      DeviceArray<std::int64_t>& offsets) {
  DeviceArray<std::int64_t> wide(static_cast<std::size_t>(rows));
  auto* const to = wide.data();
  for_each(cuda, "widen_sizes", rows, [=] __device__(std::int64_t r) { to[r] = sizes[r]; });
  offsets.resize(static_cast<std::size_t>(rows) + 1);
  exclusive_sum(cuda, to, offsets.data(), rows);
}

/// Copies rows[r] to indices + offsets[r] (values beside them, unless null) for r < count; a thread for each entry,
/// however long its row is. entries = offsets[count].
template <class Index>
void copy_entries(const Cuda& cuda, const RowView<Index>* rows, const std::int64_t* offsets,
                  std::int64_t count, std::int64_t entries, Index* indices, float* values) {
  for_each(cuda, "copy_entries", entries, [=] __device__(std::int64_t e) {
    const std::int64_t row = segment_of(offsets, count, e), k = e - offsets[row];
    indices[e] = rows[row].indices[k];
    if (values != nullptr) values[e] = rows[row].values[k];
  });
}

/// Rows that lie one after another, to the ranks of a column: first their sizes, then their entries; counts[r] of them to
/// rank r, my_counts[r] from it. Collective; books under `label`.
template <class Index>
class RowExchange {
 public:
  /// Sends the sizes. `offsets`: of the rows that I send. The host waits once, for the numbers of entries.
  RowExchange(const Cuda& cuda, const DeviceCommunicator& column, const std::int64_t* offsets,
              const std::vector<std::int64_t>& counts, const std::vector<std::int64_t>& my_counts,
              const std::string& label);
  /// How many entries I send.
  std::int64_t sent() const { return begins_of(sent_).back(); }
  std::int64_t received() const { return begins_of(received_).back(); }
  /// mine = the rows that I get. with_values: the same on every rank.
  void send(const Cuda& cuda, const Index* indices, const float* values, bool with_values,
            DeviceRowEntries<Index>& mine);

 private:
  const DeviceCommunicator& column_;
  std::string label_;
  DeviceArray<std::int64_t> my_offsets_;
  std::vector<std::int64_t> sent_, received_;
};

template <class Index>
RowExchange<Index>::RowExchange(const Cuda& cuda, const DeviceCommunicator& column,
                                const std::int64_t* offsets, const std::vector<std::int64_t>& counts,
                                const std::vector<std::int64_t>& my_counts, const std::string& label)
    : column_(column), label_(label) {
  const auto begins = begins_of(counts), my_begins = begins_of(my_counts);
  DeviceArray<Index> sizes(static_cast<std::size_t>(begins.back())),
      my_sizes(static_cast<std::size_t>(my_begins.back()));
  sizes_of_rows(cuda, offsets, begins.back(), sizes.data());
  column.all_to_all_v(sizes.data(), counts, my_sizes.data(), my_counts, label);
  offsets_of_sizes(cuda, my_sizes.data(), my_begins.back(), my_offsets_);
  sent_ = counts_between(read_at(cuda, offsets, begins));
  received_ = counts_between(read_at(cuda, my_offsets_.data(), my_begins));
}

template <class Index>
void RowExchange<Index>::send(const Cuda&, const Index* indices, const float* values, bool with_values,
                              DeviceRowEntries<Index>& mine) {
  mine.offsets.swap(my_offsets_);
  mine.indices.resize(static_cast<std::size_t>(received()));
  auto pending = column_.begin_all_to_all_v(indices, sent_, mine.indices.data(), received_, label_);
  mine.values.resize(with_values ? mine.indices.size() : 0);
  if (with_values) column_.all_to_all_v(values, sent_, mine.values.data(), received_, label_);
  pending.finish();
}

}  // namespace espalier
