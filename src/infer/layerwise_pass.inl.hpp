// What LayerwisePassOn does, for every space: layerwise_pass.cpp and layerwise_pass.cu instantiate
// it.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/grid.hpp"
#include "espalier/dense/first_not_finite.hpp"
#include "espalier/feature/spilled_rows.hpp"
#include "espalier/infer/layerwise_pass.hpp"
#include "espalier/infer/row_sink.hpp"
#include "espalier/partition/ownership.hpp"
#include "espalier/sample/type_runs.hpp"

namespace espalier {

// Takes the rows of a hidden layer into a file (feature/spilled_rows.hpp), and gives the block row
// of this rank, of which the c ranks of a process row have a share each.
class SpillSink final : public RowSink {
 public:
  /// Collective over the grid. `shares`: LayerwisePassOn::shares. `also`: another that is given the
  /// rows, or null. All must outlive it. Throws UserError(kUsage) where there can be no file.
  SpillSink(const Grid& grid, const Ownership& ownership, const Ownership& shares, const std::string& folder,
            std::int64_t width, RowSink* also);

  void take(const Cpu& cpu, std::int64_t first, Matrix<float>& rows) override;

  /// Collective over the grid. The rows of the block row, once all shares were given. Throws
  /// UserError(kUsage), on every rank, where some could not be written.
  std::shared_ptr<const DiskRows> gathered(const std::string& label);

 private:
  template <class Work>
  void attempt(Work work);
  void exchange_shares(const std::string& label);

  const Grid& grid_;
  const Ownership& shares_;
  std::int64_t width_, begin_ = 0;  // where my share begins in the block row
  RowSink* also_;
  std::optional<SpilledRows> rows_;
  std::optional<UserError> wrong_;  // what this rank met first
};

template <class Space>
LayerwisePassOn<Space>::LayerwisePassOn(const GridOn<Space>& grid, SamplerOn<Space>& sampler,
                                        const Ownership& ownership, const EntriesOfRows& entries,
                                        PassMemory memory, std::string label)
    : collectives_(grid),
      grid_(grid.host()),
      sampler_(sampler),
      ownership_(ownership),
      shares_(ownership.cut(grid_.replication())),
      entries_(entries),
      memory_(std::move(memory)),
      label_(std::move(label)) {}

template <class Space>
std::vector<std::int64_t> LayerwisePassOn<Space>::vertices_by_entries(std::int64_t most) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> sorted;
  for (std::int64_t place = 0; place < ownership_.size(grid_.row()); ++place) {
    const auto vertex = ownership_.vertex(grid_.row(), place);
    sorted.emplace_back(-entries_(vertex), vertex);
  }
  const auto taken = std::min<std::int64_t>(most, std::ssize(sorted));
  std::ranges::partial_sort(sorted, sorted.begin() + taken);
  std::vector<std::int64_t> vertices;
  for (std::int64_t k = 0; k < taken; ++k) vertices.push_back(sorted[k].second);
  return vertices;
}

template <class Space>
void LayerwisePassOn<Space>::make_caches(const Space& space, const InputStoresOn<Space>& input,
                                         Scratch& scratch) const {
  std::int64_t most = 0;
  for (const auto& table : input.features())
    if (const auto& storage = table.storage(); storage.on_disk())
      most = std::max(most, RowCache::slots_of(memory_.cache_bytes, storage.row_bytes()));
  scratch.caches = {};
  if (most > 0) {
    const auto vertices = vertices_by_entries(most);
    scratch.caches = {input, {memory_.cache_bytes, CacheRule::kDegree, vertices, /*of_others=*/false}};
    scratch.caches.set_memory(space, memory_.cache_bytes);
  }
  scratch.pending = scratch.caches.pending();
}

template <class Space>
std::vector<MinibatchOn<Space>> LayerwisePassOn<Space>::blocks_of(const Space& space, int layer, int layers,
                                                                  std::span<const SeedBatch> chunk) const {
  if (!seed_) return sampler_.sample(space, chunk, 0, 0);
  auto blocks = sampler_.sample_layer(space, chunk, *seed_, 0, static_cast<std::size_t>(layers - layer));
  if (blocks.empty()) return blocks;
  const auto type_ends = blocks[0].type_ends;
  add_type_runs(space, type_ends, chunk, blocks);
  return blocks;
}

// One layer of my share into the sink; false: given up.
template <class Space>
bool LayerwisePassOn<Space>::compute_layer(const Space& space, const Network<float, Space>& network,
                                           int layer, const InputStoresOn<Space>& input, Scratch& scratch,
                                           RowSinkOn<Space>& sink, const GoesOn& goes_on) const {
  const int me = grid_.world().rank();
  const bool on_disk =
      std::ranges::any_of(input.features(), [](const auto& table) { return table.storage().on_disk(); });
  const auto limit =
      chunk_limit(layer == 1 ? std::max(input.width(), widened_width(network.shape())) : input.width(),
                  network.output_width(layer), memory_.chunk_bytes, on_disk);
  const auto end_of = [&](std::int64_t from) {
    return chunk_end(from, rows(), limit, [&](std::int64_t k) { return entries_(shares_.vertex(me, k)); });
  };
  std::int64_t mine = 0;
  for (std::int64_t from = 0; from < rows(); from = end_of(from)) ++mine;
  make_caches(space, input, scratch);
  const auto chunks = grid_.world().all_reduce(mine, Reduction::kMax, label_);

  Matrix<float, Space> output;
  for (std::int64_t chunk = 0, from = 0, to = 0; chunk < chunks; ++chunk, from = to) {
    to = end_of(from);
    std::vector<std::int64_t> vertices;
    for (auto k = from; k < to; ++k) vertices.push_back(shares_.vertex(me, k));
    const SeedBatch batch = {0, vertices};
    auto sampled = blocks_of(space, layer, network.shape().layers, {&batch, from < to ? std::size_t{1} : 0});
    input.fetch(space, sampled, scratch.rows, label_, scratch.pending);
    if (scratch.edge_store) scratch.edge_store->read(space, sampled, scratch.edges);
    for (const auto& minibatch : sampled) {
      std::vector<const Matrix<float, Space>*> rows;
      for (const auto& table : scratch.rows) rows.push_back(&table[0]);
      network.evaluate_layer(space, layer, minibatch.blocks[0], InputRows<float, Space>(std::move(rows)),
                             scratch.layer, output);
      sink.take(space, from, output);
    }
    if (goes_on && !goes_on()) return false;
  }
  return true;
}

template <class Space>
Matrix<float, Space> LayerwisePassOn<Space>::gathered(Matrix<float, Space> mine) const {
  if (grid_.replication() == 1) return mine;
  Matrix<float, Space> block(ownership_.size(grid_.row()), mine.columns);
  std::vector<std::int64_t> counts;
  const int first = grid_.row() * grid_.replication();
  for (int r = 0; r < grid_.replication(); ++r) counts.push_back(shares_.size(first + r) * mine.columns);
  const auto& group = collectives_.row_comm();
  if constexpr (std::is_same_v<Space, Cpu>)
    group.all_gather_v(std::span<const float>(mine.data), counts, block.data, label_);
  else
    group.all_gather_v(mine.data.data(), counts, block.data.data(), label_);
  return block;
}

template <class Space>
std::optional<RowStoreOn<Space>> LayerwisePassOn<Space>::compute_hidden(
    const Space& space, const Network<float, Space>& network, int layer, const InputStoresOn<Space>& input,
    Scratch& scratch, RowSinkOn<Space>* also, const GoesOn& goes_on) const {
  const auto width = network.output_width(layer);
  if constexpr (std::is_same_v<Space, Cpu>)
    if (!memory_.spill.empty()) {
      SpillSink spill(grid_, ownership_, shares_, memory_.spill, width, also);
      if (!compute_layer(space, network, layer, input, scratch, spill, goes_on)) return {};
      return RowStore(grid_, ownership_, spill.gathered(label_));
    }
  KeptRowsOn<Space> kept(rows(), width, also);
  if (!compute_layer(space, network, layer, input, scratch, kept, goes_on)) return {};
  return RowStoreOn<Space>(collectives_, ownership_, gathered(kept.release()));
}

// Gives rows to another sink, and remembers the first number among them that is not finite.
template <class Space>
class FiniteRowsOn final : public RowSinkOn<Space> {
 public:
  explicit FiniteRowsOn(RowSinkOn<Space>& to) : to_(to) {}

  void take(const Space& space, std::int64_t first, Matrix<float, Space>& rows) override {
    const auto* const values = rows.data.data();
    const auto k = place_ < 0 ? first_not_finite(space, values, rows.rows * rows.columns) : -1;
    if (k >= 0) {
      place_ = first + k / rows.columns;
      column_ = k % rows.columns;
      copy_from(space, values + k, 1, &value_);
    }
    to_.take(space, first, rows);
  }

  /// Collective, when the rows of the stage were given.
  void check(const Grid& grid, const Ownership& shares, int stage) const {
    agree(grid.world(), [&] {
      if (place_ >= 0)
        throw UserError(ExitCode::kDiverged,
                        fmt::format("layer {} gives vertex {} {} in column {}", stage,
                                    shares.vertex(grid.world().rank(), place_), value_, column_));
    });
  }

 private:
  RowSinkOn<Space>& to_;
  std::int64_t place_ = -1, column_ = 0;
  float value_ = 0;
};

// With jumping knowledge: takes up the rows of each layer, and gives them to `also`, too, unless
// that is null.
template <class Space>
class JumpSink final : public RowSinkOn<Space> {
 public:
  JumpSink(const Network<float, Space>& network, std::int64_t rows)
      : network_(network), jumped_(rows, network.input_width(network.stages())) {}

  RowSinkOn<Space>* of_layer(int layer, RowSinkOn<Space>* also) {
    layer_ = layer;
    also_ = also;
    return this;
  }
  void take(const Space& space, std::int64_t first, Matrix<float, Space>& rows) override {
    const MatrixView<float, Space> to(rows.rows, jumped_.columns, jumped_.row(first));
    network_.take_up_layer(space, layer_, rows, winners_, to);
    if (also_ != nullptr) also_->take(space, first, rows);
  }
  const Matrix<float, Space>& jumped() const { return jumped_; }

 private:
  const Network<float, Space>& network_;
  Matrix<float, Space> jumped_;
  Array<Space, std::int32_t> winners_;
  int layer_ = 1;
  RowSinkOn<Space>* also_ = nullptr;
};

// `hidden` holds the input of the layer under way: nothing before the first, or its input itself,
// which that of the second then replaces.
template <class Space>
bool LayerwisePassOn<Space>::compute_layers(const Space& space, const Network<float, Space>& network,
                                            const InputStoresOn<Space>& input,
                                            std::optional<InputStoresOn<Space>>& hidden,
                                            std::span<RowSinkOn<Space>* const> sinks,
                                            const GoesOn& goes_on) const {
  const int stages = static_cast<int>(sinks.size());
  ESPALIER_CHECK(stages >= 1 && stages <= network.stages() && sinks.back() != nullptr,
                 "{} sinks for {} stages", stages, network.stages());
  const int last = std::min(stages, network.shape().layers);
  std::optional<JumpSink<Space>> jump;
  const int first = 1 + done_;
  ESPALIER_CHECK(first <= last && (done_ == 0 || stages == last), "{} layers of {} are done", done_, last);
  if (stages > last) jump.emplace(network, rows());
  std::vector<std::unique_ptr<FiniteRowsOn<Space>>> finite;
  for (auto* const sink : sinks)
    finite.push_back(sink != nullptr ? std::make_unique<FiniteRowsOn<Space>>(*sink) : nullptr);
  const auto sink_of = [&](int layer) {
    RowSinkOn<Space>* const sink = finite[layer - 1].get();
    return jump ? jump->of_layer(layer, sink) : sink;
  };
  const auto check = [&](int stage) {
    if (finite[stage - 1]) finite[stage - 1]->check(grid_, shares_, stage);
  };
  Scratch scratch;
  scratch.edge_store = input.edges();
  for (int layer = first; layer < last; ++layer) {
    auto rows = compute_hidden(space, network, layer, layer == first ? input : *hidden, scratch,
                               sink_of(layer), goes_on);
    if (!rows) return false;
    check(layer);
    if (is_done_) is_done_(layer);
    hidden.emplace(std::move(*rows));
    if (layer == first) scratch.rows.resize(1);
  }
  if (!compute_layer(space, network, last, last == first ? input : *hidden, scratch, *sink_of(last), goes_on))
    return false;
  check(last);
  if (!jump) return true;
  const auto& jumped = jump->jumped();
  const auto step = std::max<std::int64_t>(64, memory_.chunk_bytes / (4 * network.shape().classes));
  Matrix<float, Space> logits;
  for (std::int64_t from = 0; from < jumped.rows; from += step) {
    network.evaluate_output(space, {std::min(step, jumped.rows - from), jumped.columns, jumped.row(from)},
                            logits);
    finite.back()->take(space, from, logits);
  }
  check(stages);
  return true;
}

template <class Space>
bool LayerwisePassOn<Space>::run(const Space& space, const Network<float, Space>& network,
                                 const InputStoresOn<Space>& input, std::span<RowSinkOn<Space>* const> sinks,
                                 const GoesOn& goes_on) const {
  std::optional<InputStoresOn<Space>> hidden;
  return compute_layers(space, network, input, hidden, sinks, goes_on);
}

template <class Space>
bool LayerwisePassOn<Space>::run(const Space& space, const Network<float, Space>& network,
                                 InputStoresOn<Space>&& input, std::span<RowSinkOn<Space>* const> sinks,
                                 const GoesOn& goes_on) const {
  std::optional<InputStoresOn<Space>> hidden(std::move(input));
  return compute_layers(space, network, *hidden, hidden, sinks, goes_on);
}

}  // namespace espalier
