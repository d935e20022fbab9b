// LABOR-0, layer-neighbour sampling (Balin and Catalyurek 2023, section 3.2): node-wise inclusion
// with shared randomness. A vertex v with d neighbours takes neighbour u iff
//
//     r_u < s / d        one r_u in [0, 1) per (batch, layer, u), whoever asks
//
// so u is included with probability min(1, s/d), rows of one batch tend to include the same
// vertices, and a layer needs fewer distinct inputs than GraphSAGE at the same fanout. Inclusions
// of one row are independent of each other: s picks on average, not exactly. In integers: floor(r_u
// d / 2^64) < s with r_u of 2^64, whose top byte decides but for one in 256 (row_rules.hpp). A row
// with at most s neighbours is taken whole.
//
// Block values are Horvitz-Thompson's, entry / probability, and unbiased: mean, (1/d) (d/s) = 1/s;
// matrix (GCN), a_vu d/s with d the off-diagonal entries, and the diagonal kept exactly.
//
// Dependent batches (Balin et al. 2025, "Cooperative minibatching in graph neural networks"): with
// share_batches = k the batch that r_u is drawn for is n / k rounded down, so k batches in a row
// tend to include the same vertices, too. Each of them is what it would be as a batch of that
// number: unbiased; only the joint law of the k changes.
#include "espalier/base/random_blocks.hpp"
#include "espalier/sample/block_value.hpp"
#include "node_wise.hpp"
#include "samplers.inl.hpp"

namespace espalier {

namespace {

template <class Index>
class LaborDraw final : public RowDraw<Index> {
 public:
  explicit LaborDraw(const SamplerShape& shape)
      : aggregation_(shape.aggregation), share_batches_(shape.share_batches) {}

  bool has_values() const override { return true; }

  void draw(const Cpu&, const LayerDraw& layer, const RowView<Index>* rows, const RowKey* keys,
            std::int64_t count, Entries<Index>& out) const override {
    for (std::int64_t r = 0; r < count; ++r) {
      const auto self = diagonal_of(layer, rows[r], keys[r]);
      draw_row(layer, rows[r], labor_row(rows[r], self, layer.fanout_of(keys[r])), keys[r], out);
      out.end_row();
    }
  }
  // Whoever asks, an entry is kept or not by its own number and how many there are.
  JoinPieces join() const override { return JoinPieces::kConcatenate; }
  void draw_pieces(const LayerDraw& layer, const RowView<Index>* rows, const HeldWholeRows& wholes,
                   const RowKey* keys, std::int64_t count, Entries<Index>& out) const override {
    for (std::int64_t r = 0; r < count; ++r) {
      const auto self = diagonal_of(layer, rows[r], keys[r]);
      const auto whole = wholes(keys[r].vertex, rows[r].size);
      const bool excluded =
          whole.is_here ? self >= 0 : aggregation_ == Aggregation::kMatrix && whole.diagonal >= 0;
      draw_row(layer, rows[r], labor_row(self, whole.size - excluded, layer.fanout_of(keys[r])), keys[r],
               out);
      out.end_row();
    }
  }

 private:
  std::int64_t diagonal_of(const LayerDraw& layer, const RowView<Index>& row, const RowKey& key) const {
    return diagonal_position(row, key.vertex, layer.fanout_of(key), aggregation_);
  }

  void draw_row(const LayerDraw& layer, const RowView<Index>& row, const LaborRow& rule, const RowKey& key,
                Entries<Index>& out) const {
    if (rule.whole()) {
      out.ids.insert(out.ids.end(), row.indices, row.indices + row.size);
      for (std::int64_t k = 0; k < row.size; ++k) out.values.push_back(rule.value(row, k, aggregation_));
      return;
    }
    auto shared = key;
    shared.batch /= share_batches_;
    const auto stream = layer.stream_of(shared);
    BlockCounters counters;
    std::ranges::fill(counters.batch, stream.batch);
    const auto border = rule.border();
    for (std::int64_t first = 0; first < row.size; first += kBlocksAtOnce) {
      const auto count = std::min<std::int64_t>(kBlocksAtOnce, row.size - first);
      for (std::int64_t i = 0; i < count; ++i)  // the neighbours' columns: shared by all rows
        counters.row[i] = static_cast<std::uint64_t>(row.indices[first + i]) / 16;
      std::uint32_t words[4 * kBlocksAtOnce];
      random_blocks(stream.key, counters, words);
      // Who is kept is noted without a branch, which nothing could predict.
      std::int64_t kept[kBlocksAtOnce], kept_count = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        kept[kept_count] = first + i;
        const auto at = static_cast<std::uint64_t>(row.indices[first + i]) % 16;
        const auto byte = words[4 * i + at / 4] >> at % 4 * 8 & 255;
        kept_count += (byte < border) | (first + i == rule.self_position);
        if (byte == border) [[unlikely]]
          kept_count += first + i != rule.self_position &&
                        rule.keeps(byte, labor_low_bits(stream, row.indices[first + i]));
      }
      for (std::int64_t i = 0; i < kept_count; ++i) {
        out.ids.push_back(row.indices[kept[i]]);
        out.values.push_back(rule.value(row, kept[i], aggregation_));
      }
    }
  }

  Aggregation aggregation_;
  std::int64_t share_batches_;
};

}  // namespace

template <class Index>
std::unique_ptr<Sampler> make_labor(const Cpu&, const DistCsr<Index>& a, const SamplerShape& shape) {
  return make_node_wise<Index, Cpu>("labor", a, shape, std::make_unique<LaborDraw<Index>>(shape));
}

ESPALIER_INSTANTIATE_SAMPLER(labor, Cpu)

}  // namespace espalier
