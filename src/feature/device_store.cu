// A fetch on a GPU. The ids of all lists, one after another, are grouped by owner, my own last:
//
//   ids, grouped          [ owner 0 | owner 1 | ... | mine ]     counts: the one thing that the host waits for
//   arrived, as stored    [ owner 0 | owner 1 | ... | mine ]     rows of others by an all-to-all-v, mine by a copy
//   rows[m](k)            = row source[k] of those, as float32
//
// Between begin and finish the rows are on their way; finish launches one gather for each list.
#include "espalier/feature/device_store.hpp"

#include <numeric>
#include <utility>
#include <variant>

#include "espalier/base/error.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/gather.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/feature/fetch_model.hpp"
#include "espalier/partition/group_by_owner.hpp"

namespace espalier {

namespace {

using Ids = std::span<const std::int64_t>;

std::int64_t total(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::vector<std::int64_t> times(const std::vector<std::int64_t>& counts, std::int64_t factor) {
  std::vector<std::int64_t> scaled;
  for (const auto count : counts) scaled.push_back(count * factor);
  return scaled;
}

Ids span_of(const DeviceArray<std::int64_t>& ids) {
  return {ids.data(), ids.size()};
}

/// The lists one after another.
void concatenate(const Cuda& cuda, std::span<const Ids> lists, DeviceArray<std::int64_t>& all) {
  std::size_t size = 0;
  for (const auto& list : lists) size += list.size();
  all.resize(size);
  auto* to = all.data();
  for (const auto& list : lists) {
    copy_bytes_on_device(cuda, list.data(), to, list.size_bytes());
    to += list.size();
  }
}

/// to[k] = ids[k] - first, which may be the same array.
template <class From, class To>
void subtract(const Cuda& cuda, const From* ids, std::int64_t count, std::int64_t first, To* to) {
  for_each(cuda, "subtract", count,
           [=] __device__(std::int64_t k) { to[k] = static_cast<To>(ids[k] - first); });
}

/// source[order[j]] = j.
void invert(const Cuda& cuda, const std::int64_t* order, std::int64_t count, std::int64_t* source) {
  for_each(cuda, "invert", count, [=] __device__(std::int64_t j) { source[order[j]] = j; });
}

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
  for (std::int64_t k = 0; k < std::ssize(data); ++k)
    narrow[static_cast<std::size_t>(k)] = to_bfloat16(data[static_cast<std::size_t>(k)]);
  return narrow;
}

using StoredRows = std::variant<Matrix<float, Cuda>, Matrix<Half, Cuda>, Matrix<BFloat16, Cuda>>;

StoredRows stored_rows(const Cuda& cuda, const FeatureStore& host, Placement placement, bool narrow) {
  const DevicePurpose purpose("the features");
  return std::visit(
      [&]<class T>(const Matrix<T>& local) -> StoredRows {
        if constexpr (std::is_same_v<T, float>)
          if (narrow) return on_device(cuda, local.rows, local.columns, narrowed(local.data), placement);
        return on_device(cuda, local.rows, local.columns, local.data, placement);
      },
      host.block());
}

}  // namespace

struct DevicePendingFetch::State {
  std::vector<std::int64_t> sizes;         // rows of each list
  DeviceArray<std::int64_t> ids;           // of all lists; where all rows are local they are the sources too
  OwnerGroups<std::int64_t, Cuda> groups;  // of `ids`
  DeviceArray<std::int64_t> source;        // of each row, list after list: a place in arrived
  std::vector<std::int64_t> counts;        // [owners] rows that I want
  std::vector<std::int64_t> asked_counts;  // [owners] rows that they want of me
  DeviceArray<std::int64_t> asked;         // which, as rows of my block
  DeviceArray<std::byte> sent, received;   // ids as they travel
  DeviceArray<std::byte> reply, arrived;   // rows as they are stored
  DevicePendingExchange exchange;          // last: it uses the arrays

  /// What others want of me, in ids of this type. Collective over the column.
  template <class Id>
  void ask(const Cuda& cuda, const DeviceCommunicator& column, std::int64_t first_row,
           std::string_view label);
  /// Sends it, and takes from `local` what I want of myself.
  template <class T>
  void answer(const Cuda& cuda, const DeviceCommunicator& column, ConstMatrixView<T, Cuda> local,
              std::string_view label);
};

void DevicePendingFetch::progress() {
  state_->exchange.progress();
}

DevicePendingFetch::DevicePendingFetch() : state_(std::make_unique<State>()) {}
DevicePendingFetch::~DevicePendingFetch() = default;
DevicePendingFetch::DevicePendingFetch(DevicePendingFetch&&) noexcept = default;
DevicePendingFetch& DevicePendingFetch::operator=(DevicePendingFetch&&) noexcept = default;

struct DeviceFeatureStore::State {
  const DeviceGrid* grid;
  RowPartition partition;
  StoredRows block;                           // my rows of H
  mutable DevicePendingFetch fetch;           // of fetch(), for its memory
};

DeviceFeatureStore::DeviceFeatureStore(const Cuda& cuda, const DeviceGrid& grid, const FeatureStore& host,
                                       Placement placement, bool narrow)
    : state_(new State{&grid, host.partition(), stored_rows(cuda, host, placement, narrow), {}}) {}

DeviceFeatureStore::DeviceFeatureStore(const DeviceGrid& grid, RowPartition partition,
                                       Matrix<float, Cuda> local)
    : state_(new State{&grid, std::move(partition), std::move(local), {}}) {}

DeviceFeatureStore::~DeviceFeatureStore() = default;
DeviceFeatureStore::DeviceFeatureStore(DeviceFeatureStore&&) noexcept = default;

std::int64_t DeviceFeatureStore::width() const {
  return std::visit([](const auto& local) { return local.columns; }, state_->block);
}

const RowPartition& DeviceFeatureStore::partition() const {
  return state_->partition;
}

bool DeviceFeatureStore::rows_are_near() const {
  return std::visit([](const auto& local) { return local.data.placement() == Placement::kDevice; },
                    state_->block);
}

std::int64_t DeviceFeatureStore::bytes() const {
  return std::visit(
      []<class T>(const Matrix<T, Cuda>& local) {
        return static_cast<std::int64_t>(local.data.size() * sizeof(T));
      },
      state_->block);
}

void DeviceFeatureStore::fetch(const Cuda& cuda, std::span<const Ids> lists,
                               std::vector<Matrix<float, Cuda>>& rows, std::string_view label) const {
  begin_fetch(cuda, lists, state_->fetch, label);
  finish_fetch(cuda, state_->fetch, rows);
}

void DeviceFeatureStore::begin_fetch(const Cuda& cuda, std::span<const Ids> lists, DevicePendingFetch& fetch,
                                     std::string_view label) const {
  auto& f = *fetch.state_;
  f.exchange.finish();  // of a fetch that was given up: its arrays are written anew
  f.sizes.clear();
  for (const auto& list : lists) f.sizes.push_back(std::ssize(list));
  concatenate(cuda, lists, f.ids);
  if (all_local()) return;
  const auto& column = state_->grid->column_comm();
  const auto count = static_cast<std::int64_t>(f.ids.size());
  const int me = state_->grid->host().row();
  group_by_owner(cuda, f.ids.data(), count, bounds_of(cuda, partition()), f.groups, me);
  f.source.resize(f.ids.size());
  invert(cuda, f.groups.order.data(), count, f.source.data());
  with_index_type(partition().rows(),
                  [&]<class Id>(Id) { f.ask<Id>(cuda, column, partition().begin(me), label); });
  std::visit(
      [&]<class T>(const Matrix<T, Cuda>& local) {
        f.answer<T>(cuda, column, local, label);
        predict_fetch(column.host(), label, partition().rows(), count,
                      local.columns * static_cast<std::int64_t>(sizeof(T)));
      },
      state_->block);
}

template <class Id>
void DevicePendingFetch::State::ask(const Cuda& cuda, const DeviceCommunicator& column,
                                    std::int64_t first_row, std::string_view label) {
  counts = groups.counts;
  asked_counts = column.host().exchange_counts(counts, label);
  const auto others = total(counts), mine = static_cast<std::int64_t>(ids.size()) - others,
             of_me = total(asked_counts);
  sent.resize(static_cast<std::size_t>(others) * sizeof(Id));
  received.resize(static_cast<std::size_t>(of_me) * sizeof(Id));
  auto* const outgoing = reinterpret_cast<Id*>(sent.data());
  auto* const incoming = reinterpret_cast<Id*>(received.data());
  subtract(cuda, groups.ids.data(), others, 0, outgoing);
  column.all_to_all_v<Id>(outgoing, counts, incoming, asked_counts, label);
  asked.resize(static_cast<std::size_t>(of_me));
  subtract(cuda, incoming, of_me, first_row, asked.data());
  auto* const my_ids = groups.ids.data() + others;
  subtract(cuda, my_ids, mine, first_row, my_ids);
}

template <class T>
void DevicePendingFetch::State::answer(const Cuda& cuda, const DeviceCommunicator& column,
                                       ConstMatrixView<T, Cuda> local, std::string_view label) {
  const auto row_bytes = local.columns * static_cast<std::int64_t>(sizeof(T));
  const auto rows_of = [&](DeviceArray<std::byte>& rows, std::int64_t first, std::int64_t count) {
    return MatrixView<T, Cuda>(count, local.columns, reinterpret_cast<T*>(rows.data() + first * row_bytes));
  };
  reply.resize(asked.size() * static_cast<std::size_t>(row_bytes));
  copy_rows<T>(cuda, local, span_of(asked), rows_of(reply, 0, static_cast<std::int64_t>(asked.size())));
  arrived.resize(ids.size() * static_cast<std::size_t>(row_bytes));
  exchange = column.begin_all_to_all_v(reply.data(), times(asked_counts, row_bytes), arrived.data(),
                                       times(counts, row_bytes), label);
  const auto others = total(counts), mine = static_cast<std::int64_t>(ids.size()) - others;
  copy_rows<T>(cuda, local, span_of(groups.ids).subspan(static_cast<std::size_t>(others)),
               rows_of(arrived, others, mine));
}

void DeviceFeatureStore::finish_fetch(const Cuda& cuda, DevicePendingFetch& fetch,
                                      std::vector<Matrix<float, Cuda>>& rows) const {
  auto& f = *fetch.state_;
  f.exchange.finish();
  if (rows.size() < f.sizes.size()) rows.resize(f.sizes.size());
  std::visit(
      [&]<class T>(const Matrix<T, Cuda>& local) {
        const auto count = static_cast<std::int64_t>(f.ids.size());
        const auto from = all_local()
                              ? ConstMatrixView<T, Cuda>(local)
                              : ConstMatrixView<T, Cuda>(count, local.columns,
                                                         reinterpret_cast<const T*>(f.arrived.data()));
        auto source = span_of(all_local() ? f.ids : f.source);
        for (std::size_t m = 0; m < f.sizes.size(); ++m) {
          const auto size = static_cast<std::size_t>(f.sizes[m]);
          rows[m].resize(f.sizes[m], local.columns);
          gather_rows<T>(cuda, from, source.first(size), rows[m]);
          source = source.subspan(size);
        }
      },
      state_->block);
}

void DeviceFeatureStore::aggregate(const Cuda& cuda, const BlockView<Cuda>& block, Ids ids,
                                   Matrix<float, Cuda>& y) const {
  ESPALIER_CHECK(all_local(), "rows of {} other ranks", partition().parts() - 1);
  y.resize(block.rows, width());
  std::visit([&]<class T>(const Matrix<T, Cuda>& local) { spmm_gathered<T>(cuda, block, ids, local, y); },
             state_->block);
}

}  // namespace espalier
