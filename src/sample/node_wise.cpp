// Where every row lies on the rank, the CPU draws batch by batch without forming P: what a batch
// touches stays in the cache. The way over a product is node_wise.inl.hpp's.
#include "node_wise.inl.hpp"

#include <array>

namespace espalier {

namespace {

// The picks of one batch's list, from rows of its own block.
template <class Index>
void draw_in_place(const Cpu& cpu, const DistCsr<Index>& a, const RowDraw<Index>& draw,
                   const LayerDraw& layer, std::int64_t number, const Buffer<std::int64_t>& vertices,
                   Entries<Index>& picks) {
  constexpr std::int64_t kRowsAtOnce = 64;
  const auto draw_rows_of = [&](std::int64_t first, std::int64_t last, Entries<Index>& out) {
    std::array<RowView<Index>, kRowsAtOnce> rows;
    std::array<RowKey, kRowsAtOnce> keys;
    for (auto from = first; from < last; from += kRowsAtOnce) {
      const auto count = std::min(kRowsAtOnce, last - from);
      for (std::int64_t k = 0; k < count; ++k) {
        const auto at = from + k;
        // Where the next rows begin is fetched while these are drawn.
        if (at + kRowsAtOnce < std::ssize(vertices))
          __builtin_prefetch(a.local.indptr.data() + vertices[at + kRowsAtOnce]);
        rows[k] = row_view(a.local, vertices[at]);
        keys[k] = {vertices[at], number};
      }
      draw_rows(Cpu{1}, draw, layer, a.columns.view(), rows.data(), keys.data(), count, out);
    }
  };
  collect_rows(cpu, std::ssize(vertices), draw_rows_of, picks);
}

// A minibatch in arrays of its own.
struct OwnArrays {
  Buffer<std::int64_t> vertices;
  std::vector<LayerOn<Cpu>> layers;
};

template <class Index>
Minibatch sample_batch(const Cpu& cpu, const DistCsr<Index>& a, const RowDraw<Index>& draw,
                       std::span<const LayerDraw> layers, const SeedBatch& batch) {
  thread_local Entries<Index> picks;
  thread_local Buffer<Index> read;
  auto own = std::make_shared<OwnArrays>();
  auto& vertices = own->vertices;
  vertices.assign(batch.seeds().begin(), batch.seeds().end());
  own->layers.resize(layers.size());
  Minibatch minibatch = {batch.number, {}, std::vector<BlockView<Cpu>>(layers.size()), own};
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const auto rows = std::ssize(vertices);
    const auto expected = layers[k].fanout < 0 ? std::int64_t{1} << 40 : rows * layers[k].fanout;
    draw_in_place(threads_for(cpu, expected), a, draw, layers[k], batch.number, vertices, picks);
    const auto inner = threads_for(cpu, picks.entries());
    auto& blocks = own->layers[layers.size() - 1 - k];
    blocks.offsets = picks.offsets;
    blocks.ids.resize(picks.ids.size());
    if (draw.has_values()) blocks.values = picks.values;
    auto* const means = draw.has_values() ? nullptr : &blocks.values;
    const auto* sources = &picks.ids;
    blocks.typed = a.columns.typed();
    if (blocks.typed) {
      read_columns(inner, a.columns.view(), blocks.offsets, picks.ids, read, blocks.relations, means);
      sources = &read;
    } else if (means != nullptr) {
      *means = mean_values(inner, blocks.offsets, picks.entries());
    }
    kept_local_ids(a.rows()).extend(inner, std::span<const Index>(*sources), vertices, blocks.ids.data());
    minibatch.blocks[layers.size() - 1 - k] = blocks.block(0, rows, std::ssize(vertices), picks.entries());
  }
  minibatch.vertices = vertices;
  return minibatch;
}

}  // namespace

// One thread for each batch while there are enough of them, else all threads inside of each.
template <class Index>
std::vector<Minibatch> sample_in_place(const Cpu& cpu, const DistCsr<Index>& a, const RowDraw<Index>& draw,
                                       std::span<const LayerDraw> layers,
                                       std::span<const SeedBatch> batches) {
  std::vector<Minibatch> minibatches(batches.size());
  const bool share = std::ssize(batches) < cpu.threads;
  const Cpu inner{share ? cpu.threads : 1};
#pragma omp parallel for num_threads(share ? 1 : cpu.threads) schedule(dynamic, 1)
  for (std::int64_t b = 0; b < std::ssize(batches); ++b)
    minibatches[b] = sample_batch(inner, a, draw, layers, batches[b]);
  return minibatches;
}

ESPALIER_INSTANTIATE_NODE_WISE(std::int32_t, Cpu)
ESPALIER_INSTANTIATE_NODE_WISE(std::int64_t, Cpu)

}  // namespace espalier
