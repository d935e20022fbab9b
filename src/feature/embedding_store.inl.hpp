// What EmbeddingStoreOn does, for every space: embedding_store.cpp and embedding_store.cu
// instantiate it and define the kernels that are declared here.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "espalier/base/host_device.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/dense/device_matrix.hpp"
#include "espalier/feature/embedding_store.hpp"
#include "row_push.inl.hpp"

namespace espalier {

// ---- The kernels --------------------------------------------------------------------------------

/// The numbers of a step that all rows share.
struct RowStep {
  float rate, beta1, beta2, epsilon;
  float rest1 = 0, rest2 = 0;  ///< 1 - beta1, 1 - beta2, rounded once
};

/// Adam's state of a shard, memory of the space.
template <class Space>
struct AdamRows {
  MatrixView<float, Space> first, second;
  float* steps;              ///< [rows] taken by each
  const float* corrections;  ///< [most + 1] by the number of steps
  std::int64_t most;
};

/// One element; `correction` of the row's step.
ESPALIER_HD inline void adam_element(const RowStep& s, float correction, float g, float& first, float& second,
                                     float& weight) {
  first = s.beta1 * first + s.rest1 * g;
  second = s.beta2 * second + s.rest2 * (g * g);
  weight -= s.rate * correction * first / (std::sqrt(second) + s.epsilon);
}
ESPALIER_HD inline void adagrad_element(const RowStep& s, float g, float& squares, float& weight) {
  squares += g * g;
  weight -= s.rate * g / (std::sqrt(squares) + s.epsilon);
}
ESPALIER_HD inline std::int64_t row_of_correction(float steps, std::int64_t most) {
  return steps < static_cast<float>(most) ? static_cast<std::int64_t>(steps) : most;
}

// Rows order.rows[k] of a shard take a step by the sum of their gradients, in the order of them:
// Adam's, or Adagrad's, which has `squares`.
void update_rows(const Cpu&, const RowStep& step, const PushOrder<Cpu>& order,
                 ConstMatrixView<float> gradients, const AdamRows<Cpu>& state, MatrixView<float> weights);
void update_rows(const Cuda&, const RowStep& step, const PushOrder<Cuda>& order,
                 ConstMatrixView<float, Cuda> gradients, const AdamRows<Cuda>& state,
                 MatrixView<float, Cuda> weights);
void update_rows(const Cpu&, const RowStep& step, const PushOrder<Cpu>& order,
                 ConstMatrixView<float> gradients, MatrixView<float> squares, MatrixView<float> weights);
void update_rows(const Cuda&, const RowStep& step, const PushOrder<Cuda>& order,
                 ConstMatrixView<float, Cuda> gradients, MatrixView<float, Cuda> squares,
                 MatrixView<float, Cuda> weights);

// to[k] = from[k] + shift.
void shifted(const Cpu&, const Buffer<std::int64_t>& from, std::int64_t shift, Buffer<std::int64_t>& to);
void shifted(const Cuda&, const DeviceArray<std::int64_t>& from, std::int64_t shift,
             DeviceArray<std::int64_t>& to);

// -------------------------------------------------------------------------------------------------

/// sqrt(1 - b2^t) / (1 - b1^t) for t = 0 (unused), 1, .. until it is 1 as a float, and so it stays.
/// Made on the host, so that all spaces have the same bits.
inline std::vector<float> adam_corrections(double beta1, double beta2) {
  std::vector<float> corrections = {1.0f};
  for (double power1 = beta1, power2 = beta2;; power1 *= beta1, power2 *= beta2) {
    corrections.push_back(static_cast<float>(std::sqrt(1 - power2) / (1 - power1)));
    if (corrections.back() == 1.0f && power1 < 1e-12) return corrections;
  }
}

/// The first rows of a block, on the host.
inline Matrix<float> first_embeddings(const Ownership& owners, int part, const HeldTypes& held,
                                      std::int64_t width, std::uint64_t seed) {
  Matrix<float> rows(owners.size(part), width);
  const double limit = 1 / std::sqrt(static_cast<double>(width));
  const KeyedStream of_all = RandomStream{.seed = seed, .purpose = Purpose::kInitialEmbeddings};
  for (std::int64_t k = 0; k < rows.rows; ++k) {
    const auto stream = of_all.of_row(held.vertex(owners.vertex(part, k)));
    for (std::int64_t j = 0; j < width; ++j)
      rows(k, j) = static_cast<float>(
          limit * (2 * to_unit_double(random64(stream, static_cast<std::uint64_t>(j))) - 1));
  }
  return rows;
}

template <class Space>
EmbeddingStoreOn<Space>::EmbeddingStoreOn(const Space& space, const GridOn<Space>& grid,
                                          const Ownership& vertices, const InputTable& table,
                                          const Schema& schema, const EmbeddingOptions& options)
    : grid_(&grid),
      rows_(grid, table.held.owners(vertices),
            placed(space, first_embeddings(table.held.owners(vertices), grid.row(), table.held, table.width,
                                           options.seed))),
      options_(options),
      types_(embedded_types(table.held, schema)),
      shard_(even_range(block().rows, grid.replication(), grid.column())) {
  rows_.hold(table.held);
  const auto add = [&](const char* name, std::int64_t columns) {
    auto& state = state_.emplace_back(name, Matrix<float, Space>(shard_.size(), columns));
    fill_zero(space, state.value.data);
  };
  if (options.optimizer == "adagrad") {
    add("squares", table.width);
    return;
  }
  add("first_moment", table.width);
  add("second_moment", table.width);
  add("steps", 1);
  corrections_ = copy_to<float>(space, adam_corrections(options.beta1, options.beta2));
}

template <class Space>
MatrixView<float, Space> EmbeddingStoreOn<Space>::my_shard() {
  const auto rows = rows_.rows_to_change();
  return {shard_.size(), rows.columns, rows.row(shard_.begin)};
}

// ---- a step -------------------------------------------------------------------------------------

/// Collective over the grid. What is for my shard: row r of it is number r + first.
template <class Space>
template <class Id>
const PushedRows<Id, Space>& EmbeddingStoreOn<Space>::send_to_shards(
    const Space& space, IdLists lists, std::span<const std::int64_t> batches,
    std::span<const Matrix<float, Space>> gradients, std::int64_t& first, std::string_view label) {
  if (!std::holds_alternative<PushMemory<Id, Space>>(memory_))
    memory_.template emplace<PushMemory<Id, Space>>();
  auto& memory = std::get<PushMemory<Id, Space>>(memory_);
  const auto &column = grid_->column_comm(), &row = grid_->row_comm();
  const auto& owners = rows_.owners(space);
  group_pushed<Id, Space>(space, owners, lists, batches, gradients, block().columns, memory);
  send_to_owners<Id, Space>(column, memory.groups.counts, memory.grouped, memory.arrived, label);
  // From here on the numbers of rows are places in my block, plus `first`.
  first = to_places(space, owners, grid_->row(), memory.arrived.ids.data(), memory.arrived.size());
  if (row.size() == 1) return memory.arrived;
  std::vector<std::int64_t> begins = {0};
  for (int j = 1; j <= row.size(); ++j)
    begins.push_back(first + even_range(block().rows, row.size(), j).begin);
  begins.back() = first + block().rows;
  const OwnersOn<Space> shards(space, RowPartition(std::move(begins)));
  group_by_owner(space, memory.arrived.ids.data(), memory.arrived.size(), shards, memory.groups);
  regroup(space, memory.arrived, memory.groups, memory.grouped);
  send_to_owners<Id, Space>(row, memory.groups.counts, memory.grouped, memory.shared, label);
  first += shard_.begin;
  return memory.shared;
}

template <class Space>
void EmbeddingStoreOn<Space>::update(const Space& space, double rate, IdLists lists,
                                     std::span<const std::int64_t> batches,
                                     std::span<const Matrix<float, Space>> gradients,
                                     std::string_view label) {
  std::int64_t sent = 0, changed = 0;
  for (const auto& list : lists) sent += std::ssize(list);
  const RowStep step = {static_cast<float>(rate),
                        static_cast<float>(options_.beta1),
                        static_cast<float>(options_.beta2),
                        static_cast<float>(options_.epsilon()),
                        static_cast<float>(1 - options_.beta1),
                        static_cast<float>(1 - options_.beta2)};
  with_index_type(ownership().rows(), [&]<class Id>(Id) {
    std::int64_t first = 0;
    const auto& pushed = send_to_shards<Id>(space, lists, batches, gradients, first, label);
    auto& order = std::get<PushMemory<Id, Space>>(memory_).order;
    order_pushed<Id>(space, pushed, first, shard_.size(), order);
    if (options_.optimizer == "adagrad")
      update_rows(space, step, order, pushed.rows, state_[0].value, my_shard());
    else
      update_rows(space, step, order, pushed.rows,
                  AdamRows<Space>{state_[0].value, state_[1].value, state_[2].value.data.data(),
                                  corrections_.data(), std::ssize(corrections_) - 1},
                  my_shard());
    share_rows(space, order.rows, label);
    changed = std::ssize(order.rows);
  });
  const auto cost = row_update_cost(grid_->rows(), grid_->replication(), static_cast<double>(sent),
                                    static_cast<double>(changed), index_bytes(ownership().rows()),
                                    static_cast<double>(block().columns) * sizeof(float));
  grid_->traffic().predict(label, cost.messages, cost.bytes);
}

/// Collective over the process row. Every copy of the block gets rows of each shard as they are.
template <class Space>
void EmbeddingStoreOn<Space>::share_rows(const Space& space, const Array<Space, std::int64_t>& rows,
                                         std::string_view label) {
  const auto& row = grid_->row_comm();
  if (row.size() == 1) return rows_.note_changes(space, rows);
  const auto counts = row.host().all_gather(static_cast<std::int64_t>(rows.size()), label);
  const auto width = block().columns;
  Array<Space, std::int64_t> mine, places(total(counts));
  Matrix<float, Space> my_rows(std::ssize(rows), width), all_rows(total(counts), width);
  shifted(space, rows, shard_.begin, mine);
  copy_rows<float>(space, block(), mine.data(), 0, my_rows);
  gather_all(row, mine, counts, places, label);
  gather_all(row, my_rows.data, times(counts, width), all_rows.data, label);
  put_rows(space, ConstMatrixView<float, Space>(all_rows), places.data(), rows_.rows_to_change());
  rows_.note_changes(space, places);
}

// ---- state --------------------------------------------------------------------------------------

template <class Space>
template <class Visit>
void EmbeddingStoreOn<Space>::for_each_range(RowRange places, const Visit& visit) const {
  for (const auto& numbers : ownership().vertices(grid_->row(), places))
    for (const auto& type : types_) {
      const RowRange part = {std::max(numbers.begin, type.begin), std::min(numbers.end, type.end)};
      if (part.begin < part.end)
        visit(type, RowRange{part.begin - type.begin, part.end - type.begin}, ownership().local(part.begin));
    }
}

/// Of `numbers`, memory of `where`, of which the first are the row at place `first` of my block.
template <class Space>
template <class Where>
StateTensor EmbeddingStoreOn<Space>::tensor_of(const Where& where, const EmbeddedType& type, std::string name,
                                               const float* numbers, std::int64_t columns,
                                               std::int64_t first) const {
  StateTensor tensor = {std::move(name), type.end - type.begin, columns, {}, {}};
  for_each_range(shard_, [&](const EmbeddedType& of, RowRange rows, std::int64_t) {
    if (&of == &type) tensor.mine.push_back(rows);
  });
  tensor.read = [=, this, &type](RowRange rows, float* to) {
    if (rows.size() == 0) return;
    const auto place = ownership().local(rows.begin + type.begin) - first;
    copy_from(where, numbers + place * columns, rows.size() * columns, to);
  };
  return tensor;
}

template <class Space>
std::vector<StateTensor> EmbeddingStoreOn<Space>::weights(const Space& space) const {
  std::vector<StateTensor> all;
  for (const auto& type : types_)
    all.push_back(tensor_of(space, type, "weights/embedding." + type.name, block().data, block().columns, 0));
  return all;
}

template <class Space>
std::vector<StateTensor> EmbeddingStoreOn<Space>::state(const Space& space) const {
  auto all = weights(space);
  for (const auto& type : types_)
    for (const auto& [name, value] : state_)
      all.push_back(tensor_of(space, type, "optimizer/embedding." + type.name + "/" + name, value.data.data(),
                              value.columns, shard_.begin));
  return all;
}

/// The rows at `places` of my block to `to`, memory of `where`, some at a time.
template <class Space>
template <class Where>
void EmbeddingStoreOn<Space>::read_rows(const Where& where, RowRange places, const Find& find,
                                        const std::string& prefix, const std::string& suffix,
                                        std::int64_t columns, float* to) const {
  for_each_range(places, [&](const EmbeddedType& type, RowRange rows, std::int64_t place) {
    const auto& saved = find(prefix + "embedding." + type.name + suffix, type.end - type.begin, columns);
    saved.for_each_piece(rows, [&](RowRange piece, const Buffer<float>& numbers) {
      copy_to(where, numbers.data(), std::ssize(numbers),
              to + (place + piece.begin - rows.begin - places.begin) * columns);
    });
  });
}

template <class Space>
void EmbeddingStoreOn<Space>::restore(const Space& space, const Find& find, bool with_state) {
  const auto rows = rows_.rows_to_change();
  read_rows(space, {0, rows.rows}, find, "weights/", "", rows.columns, rows.data);
  for (auto& [name, value] : state_)
    if (with_state)
      read_rows(space, shard_, find, "optimizer/", "/" + name, value.columns, value.data.data());
}

template <class Space>
Buffer<float> EmbeddingStoreOn<Space>::kept_rows(const Space& space) const {
  Buffer<float> kept(static_cast<std::size_t>(shard_.size() * block().columns));
  if (!kept.empty()) copy_from(space, block().row(shard_.begin), std::ssize(kept), kept.data());
  return kept;
}

template <class Space>
std::vector<StateTensor> EmbeddingStoreOn<Space>::state_of_kept(const Buffer<float>& kept) const {
  std::vector<StateTensor> all;
  for (const auto& type : types_)
    all.push_back(tensor_of(Cpu{}, type, "best/weights/embedding." + type.name, kept.data(), block().columns,
                            shard_.begin));
  return all;
}

template <class Space>
Buffer<float> EmbeddingStoreOn<Space>::restore_kept(const Find& find) const {
  const auto columns = block().columns;
  Buffer<float> kept(static_cast<std::size_t>(shard_.size() * columns));
  read_rows(Cpu{}, shard_, find, "best/weights/", "", columns, kept.data());
  return kept;
}

template <class Space>
void EmbeddingStoreOn<Space>::put_back(const Space& space, const Buffer<float>& kept,
                                       std::string_view label) {
  const auto shard = my_shard();
  if (!kept.empty()) copy_to(space, kept.data(), std::ssize(kept), shard.row(0));
  std::vector<std::int64_t> all(static_cast<std::size_t>(shard_.size()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  share_rows(space, copy_to<std::int64_t>(space, all), label);
}

}  // namespace espalier
