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
#include <algorithm>
#include <bit>

#include "espalier/base/buffer.hpp"
#include "espalier/base/random_blocks.hpp"
#include "espalier/sample/block_value.hpp"
#include "node_wise.hpp"
#include "samplers.inl.hpp"

namespace espalier {

namespace {

// The top bytes of r_u of the columns of one batch and layer, as a thread comes to need them. While
// it has looked at few neighbours each costs a block; once they are as many as blocks of all
// columns it makes these, in order, and reads them: at most twice the blocks of the better way.
class ColumnBytes {
  static_assert(std::endian::native == std::endian::little, "byte k of a block is byte k in memory");

 public:
  /// Of these draws from now on, of so many columns. `kept`: may a table be made?
  void begin(const KeyedStream& stream, std::int64_t columns, bool kept) {
    if (kept == kept_ && stream.key == stream_.key && stream.batch == stream_.batch && columns == columns_)
      return;
    stream_ = stream;
    columns_ = columns;
    kept_ = kept;
    looked_at_ = 0;
    is_made_ = false;
  }
  const KeyedStream& stream() const { return stream_; }

  /// Is there a byte for every column? Asked before `more` neighbours are looked at.
  bool has_table(std::int64_t more) {
    looked_at_ += more;
    if (!is_made_ && kept_ && looked_at_ > blocks()) make();
    return is_made_;
  }
  const std::uint8_t* table() const { return bytes_.data(); }

  /// bytes[k] = that of columns[k], a block each.
  template <class Index>
  void draw(std::span<const Index> columns, std::uint8_t* bytes) {
    BlockCounters counters;
    std::ranges::fill(counters.batch, stream_.batch);
    for (std::size_t first = 0; first < columns.size(); first += kBlocksAtOnce) {
      const auto here = columns.subspan(first, std::min<std::size_t>(kBlocksAtOnce, columns.size() - first));
      for (std::size_t k = 0; k < here.size(); ++k)
        counters.row[k] = static_cast<std::uint64_t>(here[k]) / 16;
      std::uint32_t words[4 * kBlocksAtOnce];
      random_blocks(stream_.key, counters, words);
      const auto* const of_blocks = reinterpret_cast<const std::uint8_t*>(words);
      for (std::size_t k = 0; k < here.size(); ++k)
        bytes[first + k] = of_blocks[16 * k + static_cast<std::uint64_t>(here[k]) % 16];
    }
  }

 private:
  std::int64_t blocks() const { return (columns_ + 15) / 16; }
  void make() {
    const auto groups = (blocks() + kBlocksAtOnce - 1) / kBlocksAtOnce;
    bytes_.resize(static_cast<std::size_t>(groups * kBlocksAtOnce * 16));
    BlockCounters counters;
    std::ranges::fill(counters.batch, stream_.batch);
    for (std::int64_t group = 0; group < groups; ++group) {
      for (int k = 0; k < kBlocksAtOnce; ++k)
        counters.row[k] = static_cast<std::uint64_t>(group * kBlocksAtOnce + k);
      std::uint32_t words[4 * kBlocksAtOnce];
      random_blocks(stream_.key, counters, words);
      __builtin_memcpy(bytes_.data() + group * kBlocksAtOnce * 16, words, sizeof words);
    }
    is_made_ = true;
  }

  KeyedStream stream_;
  std::int64_t columns_ = -1, looked_at_ = 0;
  bool kept_ = false, is_made_ = false;
  Buffer<std::uint8_t> bytes_;
};

template <class Index>
class LaborDraw final : public RowDraw<Index> {
 public:
  LaborDraw(const SamplerShape& shape, std::int64_t columns)
      : aggregation_(shape.aggregation), share_batches_(shape.share_batches), columns_(columns) {}

  bool has_values() const override { return true; }

  void draw(const Cpu&, const LayerDraw& layer, const RowView<Index>* rows, const RowKey* keys,
            std::int64_t count, Entries<Index>& out) const override {
    auto& scratch = scratch_of_thread();
    for (std::int64_t r = 0; r < count; ++r) {
      const auto self = diagonal_of(layer, rows[r], keys[r]);
      draw_row(layer, rows[r], labor_row(rows[r], self, layer.fanout_of(keys[r])), keys[r], scratch, out);
      out.end_row();
    }
  }
  // Whoever asks, an entry is kept or not by its own number and how many there are.
  JoinPieces join() const override { return JoinPieces::kConcatenate; }
  void draw_pieces(const LayerDraw& layer, const RowView<Index>* rows, const HeldWholeRows& wholes,
                   const RowKey* keys, std::int64_t count, Entries<Index>& out) const override {
    auto& scratch = scratch_of_thread();
    for (std::int64_t r = 0; r < count; ++r) {
      const auto self = diagonal_of(layer, rows[r], keys[r]);
      const auto whole = wholes(keys[r].vertex, rows[r].size);
      const bool excluded =
          whole.is_here ? self >= 0 : aggregation_ == Aggregation::kMatrix && whole.diagonal >= 0;
      draw_row(layer, rows[r], labor_row(self, whole.size - excluded, layer.fanout_of(keys[r])), keys[r],
               scratch, out);
      out.end_row();
    }
  }

 private:
  struct Scratch {
    ColumnBytes bytes;
    Buffer<std::uint8_t> of_row;
    Buffer<Index> kept;  // positions
  };
  static Scratch& scratch_of_thread() {
    thread_local Scratch scratch;
    return scratch;
  }

  std::int64_t diagonal_of(const LayerDraw& layer, const RowView<Index>& row, const RowKey& key) const {
    return diagonal_position(row, key.vertex, layer.fanout_of(key), aggregation_);
  }

  void draw_row(const LayerDraw& layer, const RowView<Index>& row, const LaborRow& rule, const RowKey& key,
                Scratch& scratch, Entries<Index>& out) const {
    if (rule.whole()) {
      auto* const ids = append(static_cast<std::size_t>(row.size), out);
      std::copy_n(row.indices, row.size, ids);
      return weigh(
          row, rule, row.size, [](std::int64_t k) { return k; }, out);
    }
    auto shared = key;
    shared.batch /= share_batches_;
    auto& bytes = scratch.bytes;
    // Of columns of one relation: those of a row's parts would take turns.
    bytes.begin(layer.stream_of(shared, 0), columns_, layer.keys == nullptr);
    if (bytes.has_table(row.size)) {
      keep(row, rule, scratch, out, [&](std::int64_t, Index u) { return bytes.table()[u]; });
    } else {
      scratch.of_row.resize(static_cast<std::size_t>(row.size));
      bytes.draw(row.columns(), scratch.of_row.data());
      keep(row, rule, scratch, out, [&](std::int64_t k, Index) { return scratch.of_row[k]; });
    }
  }

  // Appends the entries that stay. byte_of(position, column).
  template <class Byte>
  void keep(const RowView<Index>& row, const LaborRow& rule, Scratch& scratch, Entries<Index>& out,
            const Byte& byte_of) const {
    const auto border = rule.border();
    scratch.kept.resize(static_cast<std::size_t>(row.size) + 1);
    auto* const kept = scratch.kept.data();
    std::int64_t count = 0;
    // Who may stay is noted without a branch, which nothing could predict.
    const auto scan = [&](std::int64_t begin, std::int64_t end) {
#pragma GCC unroll 8
      for (auto k = begin; k < end; ++k) {
        kept[count] = static_cast<Index>(k);
        count += byte_of(k, row.indices[k]) <= border;
      }
    };
    if (rule.self_position < 0) {
      scan(0, row.size);
    } else {
      scan(0, rule.self_position);
      kept[count++] = static_cast<Index>(rule.self_position);
      scan(rule.self_position + 1, row.size);
    }
    auto stay = std::int64_t{0};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t k = kept[i];
      const std::uint32_t byte = byte_of(k, row.indices[k]);
      if (k != rule.self_position && byte == border &&
          !rule.keeps(byte, labor_low_bits(scratch.bytes.stream(), row.indices[k])))
        continue;
      kept[stay++] = kept[i];
    }
    auto* const ids = append(static_cast<std::size_t>(stay), out);
    for (std::int64_t i = 0; i < stay; ++i) ids[i] = row.indices[kept[i]];
    weigh(
        row, rule, stay, [&](std::int64_t i) { return static_cast<std::int64_t>(kept[i]); }, out);
  }

  // Room for `count` entries more; where their ids go.
  static Index* append(std::size_t count, Entries<Index>& out) {
    out.ids.resize(out.ids.size() + count);
    out.values.resize(out.ids.size());
    return out.ids.data() + out.ids.size() - count;
  }
  // The values of the last `count` entries, which are at place_of(i) in their row.
  template <class Place>
  void weigh(const RowView<Index>& row, const LaborRow& rule, std::int64_t count, const Place& place_of,
             Entries<Index>& out) const {
    auto* const values = out.values.data() + out.values.size() - count;
    if (aggregation_ == Aggregation::kMean)
      std::fill_n(values, count, mean_value(rule.fanout));
    else
      for (std::int64_t i = 0; i < count; ++i) values[i] = rule.value(row, place_of(i), aggregation_);
  }

  Aggregation aggregation_;
  std::int64_t share_batches_, columns_;
};

}  // namespace

template <class Index>
std::unique_ptr<Sampler> make_labor(const Cpu&, const DistCsr<Index>& a, const SamplerShape& shape) {
  return make_node_wise<Index, Cpu>("labor", a, shape,
                                    std::make_unique<LaborDraw<Index>>(shape, a.local.columns));
}

ESPALIER_INSTANTIATE_SAMPLER(labor, Cpu)

}  // namespace espalier
