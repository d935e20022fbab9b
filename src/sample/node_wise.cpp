#include "node_wise.hpp"

#include <omp.h>

#include <array>

#include "espalier/base/work.hpp"
#include "espalier/product/collect_rows.hpp"
#include "expected_work.hpp"
#include "extract.hpp"

namespace espalier {

namespace {

// A draw reads where each row begins, its key and the column of each pick, and writes the picks.
void charge_draw(std::int64_t rows, std::int64_t picks) {
  const auto r = static_cast<double>(rows), e = static_cast<double>(picks);
  charge(Work{.gathers = r + e, .bytes = 32 * r + 4 * e, .launches = 3});
}

// An extraction sets a mark for each pick, ranks the marks of all ids batch by batch, and looks each pick up: its
// word of marks and its place.
void charge_extract(std::int64_t rows, std::int64_t picks, std::int64_t vertices, std::int64_t words) {
  const auto e = static_cast<double>(picks);
  charge(Work{.gathers = 3 * e + static_cast<double>(rows),
              .bytes = 12 * e + 8.0 * static_cast<double>(rows) + 12.0 * static_cast<double>(vertices) +
                       40.0 * static_cast<double>(words),
              .launches = 8});
}

// A RowDraw as the operation that the product applies where the row lies.
template <class Index>
class DrawOperation final : public RowOperation<Index> {
 public:
  DrawOperation(const RowDraw<Index>& draw, const LayerDraw& layer) : draw_(draw), layer_(layer) {}
  bool has_values() const override { return draw_.has_values(); }
  void apply(std::span<const RowView<Index>> rows, std::span<const RowKey> keys,
             RowEntries<Index>& out) const override {
    const auto before = std::ssize(out.indices);
    draw_.draw(layer_, rows, keys, out);
    charge_draw(std::ssize(rows), std::ssize(out.indices) - before);
  }

 private:
  const RowDraw<Index>& draw_;
  LayerDraw layer_;
};

template <class Index>
class NodeWise final : public Sampler {
 public:
  NodeWise(const DistCsr<Index>& a, const SamplerShape& shape, std::unique_ptr<RowDraw<Index>> draw)
      : a_(a), shape_(shape), draw_(std::move(draw)) {
    const auto moments = degree_moments(a, shape.fanout);
    schedules_ = choose_schedules(a, shape, node_wise_work(moments, shape, draw_->has_values()));
  }

  std::vector<Minibatch> sample(const Cpu& cpu, std::span<const SeedBatch> batches, std::uint64_t seed,
                                std::uint64_t epoch) override {
    auto minibatches = begin_minibatches(batches, shape_.fanout.size());
    while (std::ssize(scratch_) < cpu.threads) scratch_.push_back({LocalIds(a_.rows()), {}});
    const RandomStream stream = {.seed = seed, .purpose = Purpose::kSample, .epoch = epoch};
    if (a_.partition.parts() == 1)
      sample_local(cpu, stream, minibatches);
    else
      for (auto block = shape_.fanout.size(); block-- > 0;)
        sample_layer(cpu, block, layer_draw(stream, block), minibatches);
    return finish_minibatches(std::move(minibatches));
  }

  const std::vector<Schedule>& schedules() const override { return schedules_; }

 private:
  // What is drawn for blocks[block], which layer block + 1 uses.
  LayerDraw layer_draw(RandomStream stream, std::size_t block) const {
    stream.layer = block + 1;
    return {stream, shape_.fanout[shape_.fanout.size() - 1 - block]};
  }

  // P = Q A by the product's schedule, and the draw on its finished rows.
  void sample_layer(const Cpu& cpu, std::size_t block, const LayerDraw& layer,
                    std::vector<OwnedMinibatch>& minibatches) {
    const auto frontier = stack(minibatches);
    const auto schedule = schedules_[schedules_.size() - 1 - block];
    const auto picks = open_product(cpu, frontier, a_, schedule, shape_.label)
                           ->apply(cpu, DrawOperation<Index>(*draw_, layer));
    for_each_batch(cpu, minibatches, [&](const Cpu& inner, Scratch& scratch, std::int64_t b) {
      const std::span<const std::int64_t> offsets(
          picks.offsets.data() + frontier.begin(b),
          static_cast<std::size_t>(frontier.end(b) - frontier.begin(b)) + 1);
      auto& minibatch = minibatches[static_cast<std::size_t>(b)];
      minibatch.blocks[block] = extract(inner, offsets, picks, scratch.ids, minibatch);
    });
    charge_layer(block, minibatches, false);
  }

  // Every row lies on this rank: P is not formed. A batch goes through all its layers while what it touches is in
  // the cache, and its picks go from the draw straight into its block.
  void sample_local(const Cpu& cpu, const RandomStream& stream, std::vector<OwnedMinibatch>& minibatches) {
    for_each_batch(cpu, minibatches, [&](const Cpu& inner, Scratch& scratch, std::int64_t b) {
      auto& minibatch = minibatches[static_cast<std::size_t>(b)];
      for (auto block = shape_.fanout.size(); block-- > 0;) {
        const auto layer = layer_draw(stream, block);
        const auto picks = std::ssize(minibatch.vertices) * (layer.fanout < 0 ? kManyPicks : layer.fanout);
        draw_local(worth_sharing(inner, picks), layer, minibatch, scratch.picks);
        minibatch.blocks[block] =
            extract(inner, scratch.picks.offsets, scratch.picks, scratch.ids, minibatch);
      }
    });
    for (auto block = shape_.fanout.size(); block-- > 0;) charge_layer(block, minibatches, true);
  }

  // What extracting (and drawing) the blocks of one layer takes, all batches together.
  void charge_layer(std::size_t block, const std::vector<OwnedMinibatch>& minibatches, bool with_draw) const {
    std::int64_t rows = 0, picks = 0, vertices = 0, words = 0;
    for (const auto& minibatch : minibatches) {
      const auto& b = minibatch.blocks[block];
      rows += b.rows;
      picks += b.entries();
      vertices += b.columns;
      if (LocalIds::prefers_marks(a_.rows(), b.rows + b.entries())) words += a_.rows() / 64 + 1;
    }
    if (with_draw) charge_draw(rows, picks);
    charge_extract(rows, picks, vertices, words);
  }

  void draw_local(const Cpu& cpu, const LayerDraw& layer, const OwnedMinibatch& minibatch,
                  RowEntries<Index>& picks) const {
    const auto& vertices = minibatch.vertices;
    collect_rows(
        cpu, std::ssize(vertices),
        [&](std::int64_t first, std::int64_t last, RowEntries<Index>& out) {
          std::array<RowView<Index>, kRowsAtOnce> rows;
          std::array<RowKey, kRowsAtOnce> keys;
          for (auto from = first; from < last; from += kRowsAtOnce) {
            const auto count = static_cast<std::size_t>(std::min(kRowsAtOnce, last - from));
            for (std::size_t k = 0; k < count; ++k) {
              const auto at = static_cast<std::size_t>(from) + k;
              // Where the next rows begin is fetched while these are drawn.
              if (at + kRowsAtOnce < vertices.size())
                __builtin_prefetch(a_.local.indptr.data() + vertices[at + kRowsAtOnce]);
              rows[k] = row_view(a_.local, vertices[at]);
              keys[k] = {vertices[at], minibatch.number};
            }
            draw_->draw(layer, std::span(rows).first(count), std::span(keys).first(count), out);
          }
        },
        picks);
  }

  Block extract(const Cpu& cpu, std::span<const std::int64_t> offsets, const RowEntries<Index>& picks,
                LocalIds& ids, OwnedMinibatch& minibatch) const {
    const auto from = static_cast<std::size_t>(offsets.front()),
               count = static_cast<std::size_t>(offsets.back()) - from;
    const std::span<const float> values(picks.values);
    return extract_block(worth_sharing(cpu, offsets.back() - offsets.front()), offsets,
                         std::span<const Index>(picks.indices).subspan(from, count),
                         draw_->has_values() ? values.subspan(from, count) : values, ids, minibatch.vertices);
  }

  // What a thread keeps from batch to batch.
  struct Scratch {
    LocalIds ids;
    RowEntries<Index> picks;
  };

  // run(cpu, scratch, b) for every batch: one thread for each while there are enough of them, else
  // all threads inside of each.
  template <class Run>
  void for_each_batch(const Cpu& cpu, const std::vector<OwnedMinibatch>& minibatches, const Run& run) {
    const bool share = std::ssize(minibatches) < cpu.threads;
    const Cpu inner{share ? cpu.threads : 1};
#pragma omp parallel for num_threads(share ? 1 : cpu.threads) schedule(dynamic, 1)
    for (std::int64_t b = 0; b < std::ssize(minibatches); ++b)
      run(inner, scratch_[static_cast<std::size_t>(omp_get_thread_num())], b);
  }

  // Waking threads costs what thousands of picks do.
  static Cpu worth_sharing(const Cpu& cpu, std::int64_t picks) {
    return picks < kManyPicks ? Cpu{1} : cpu;
  }

  static constexpr std::int64_t kRowsAtOnce = 64, kManyPicks = 1 << 17;

  const DistCsr<Index>& a_;
  SamplerShape shape_;
  std::unique_ptr<RowDraw<Index>> draw_;
  std::vector<Schedule> schedules_;
  std::vector<Scratch> scratch_;  // one for each thread
};

}  // namespace

template <class Index>
std::unique_ptr<Sampler> make_node_wise(const DistCsr<Index>& a, const SamplerShape& shape,
                                        std::unique_ptr<RowDraw<Index>> draw) {
  return std::make_unique<NodeWise<Index>>(a, shape, std::move(draw));
}

template std::unique_ptr<Sampler> make_node_wise(const DistCsr<std::int32_t>&, const SamplerShape&,
                                                 std::unique_ptr<RowDraw<std::int32_t>>);
template std::unique_ptr<Sampler> make_node_wise(const DistCsr<std::int64_t>&, const SamplerShape&,
                                                 std::unique_ptr<RowDraw<std::int64_t>>);

}  // namespace espalier
