// LABOR on a GPU: a thread for each entry of the rows that are not taken whole finds out whether it
// stays (kept_entries.hpp), by labor.cpp's numbers.
#include "device_row_draw.hpp"
#include "kept_entries.hpp"
#include "samplers.inl.hpp"

namespace espalier {

namespace {

template <class Index>
__device__ inline LaborRow rule_of(const RowsToDraw<Index>& rows, std::int64_t row, const LayerDraw& layer) {
  return labor_row(rows.views[row], rows.self_position(row), layer.fanout_of(rows.keys[row]));
}

// The entries that stay, of the rows that are not taken whole.
template <class Index>
KeptEntries find_kept_neighbours(const Cuda& cuda, const LayerDraw& layer, const RowsToDraw<Index>& rows,
                                 std::int64_t share_batches) {
  const auto size_of = [=] __device__(std::int64_t row) {
    return rule_of(rows, row, layer).whole() ? std::int64_t{0} : rows.views[row].size;
  };
  const auto keeps = [=] __device__(std::int64_t row, std::int64_t position) {
    // The neighbour's number: shared by all rows of the batch, and of those that share its draws.
    auto key = rows.keys[row];
    key.batch /= share_batches;
    return rule_of(rows, row, layer)
        .keeps(layer.stream_of(key), position, static_cast<std::int64_t>(rows.views[row].indices[position]));
  };
  return find_kept(cuda, rows.count, size_of, keeps);
}

template <class Index>
std::int64_t make_room(const Cuda& cuda, const LayerDraw& layer, const RowsToDraw<Index>& rows,
                       const KeptEntries& kept, Entries<Index, Cuda>& out) {
  const auto bits = kept.view();
  const auto picks_of = [=] __device__(std::int64_t row) {
    return rule_of(rows, row, layer).whole() ? rows.views[row].size : bits.in_row(row);
  };
  return make_room(cuda, rows.count, true, picks_of, out);
}

template <class Index>
void write_picks(const Cuda& cuda, const LayerDraw& layer, const RowsToDraw<Index>& rows,
                 Aggregation aggregation, const KeptEntries& kept, std::int64_t total,
                 Entries<Index, Cuda>& out) {
  const auto* offsets = out.offsets.data();
  auto* indices = out.ids.data();
  auto* values = out.values.data();
  for_each_entry(cuda, "take_whole_rows", offsets, rows.count, 0, total,
                 [=] __device__(std::int64_t at, std::int64_t row) {
                   const auto rule = rule_of(rows, row, layer);
                   if (!rule.whole()) return;
                   const auto view = rows.views[row];
                   const auto position = at - offsets[row];
                   indices[at] = view.indices[position];
                   values[at] = rule.value(view, position, aggregation);
                 });
  for_each_kept(cuda, "take_kept", kept,
                [=] __device__(std::int64_t row, std::int64_t position, std::int64_t rank) {
                  const auto view = rows.views[row];
                  indices[offsets[row] + rank] = view.indices[position];
                  values[offsets[row] + rank] = rule_of(rows, row, layer).value(view, position, aggregation);
                });
}

template <class Index>
class LaborDraw final : public RowDraw<Index, Cuda> {
 public:
  explicit LaborDraw(const SamplerShape& shape)
      : aggregation_(shape.aggregation), share_batches_(shape.share_batches) {}

  bool has_values() const override { return true; }

  void draw(const Cuda& cuda, const LayerDraw& layer, const RowView<Index>* views, const RowKey* keys,
            std::int64_t count, Entries<Index, Cuda>& out) const override {
    const auto diagonal = diagonal_positions(cuda, layer, views, keys, count, aggregation_);
    const RowsToDraw<Index> rows = {views, keys, diagonal.data(), count};
    const auto kept = find_kept_neighbours(cuda, layer, rows, share_batches_);
    const auto total = make_room(cuda, layer, rows, kept, out);
    write_picks(cuda, layer, rows, aggregation_, kept, total, out);
  }

 private:
  Aggregation aggregation_;
  std::int64_t share_batches_;
};

}  // namespace

template <class Index>
std::unique_ptr<SamplerOn<Cuda>> make_labor(const Cuda&, const DistCsr<Index, Cuda>& a,
                                            const SamplerShape& shape) {
  return make_node_wise<Index, Cuda>("labor", a, shape, std::make_unique<LaborDraw<Index>>(shape));
}

ESPALIER_INSTANTIATE_SAMPLER(labor, Cuda)

}  // namespace espalier
