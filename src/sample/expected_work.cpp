#include "expected_work.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "layer_wise.hpp"

namespace espalier {

double RowClasses::rows() const {
  double sum = 0;
  for (const auto& of : classes) sum += of.rows;
  return sum;
}

double RowClasses::entries() const {
  double sum = 0;
  for (const auto& of : classes) sum += of.rows * of.degree;
  return sum;
}

namespace {

// Classes of degrees: below 8 each its own, then four for each power of two.
constexpr std::size_t kClasses = 8 + 4 * (63 - 3);
std::size_t class_of(std::uint64_t degree) {
  if (degree < 8) return degree;
  const auto top = static_cast<std::size_t>(std::bit_width(degree)) - 1;
  return 8 + 4 * (top - 3) + ((degree >> (top - 2)) & 3);
}

// Sums over the rows of each class: rows, entries, picks of each layer.
class ClassSums {
 public:
  ClassSums(std::size_t layers, std::size_t others)
      : layers_(layers), sums_(kClasses * (2 + layers) + others, 0) {}

  std::uint64_t* of(std::uint64_t degree) { return sums_.data() + class_of(degree) * (2 + layers_); }
  std::span<std::uint64_t> others() { return std::span(sums_).subspan(kClasses * (2 + layers_)); }
  std::span<std::uint64_t> all() { return sums_; }

  RowClasses classes() {
    RowClasses rows;
    for (std::size_t k = 0; k < kClasses; ++k) {
      const auto* sums = sums_.data() + k * (2 + layers_);
      if (sums[0] == 0) continue;
      const auto count = static_cast<double>(sums[0]);
      auto& of = rows.classes.emplace_back(RowClass{count, static_cast<double>(sums[1]) / count, {}});
      for (std::size_t layer = 0; layer < layers_; ++layer)
        of.picks.push_back(static_cast<double>(sums[2 + layer]) / count);
    }
    for (const auto entries : others()) rows.of_relations.push_back(static_cast<double>(entries));
    return rows;
  }

 private:
  std::size_t layers_;
  std::vector<std::uint64_t> sums_;
};

std::uint64_t picks_of(std::int64_t fanout, std::uint64_t entries) {
  return fanout < 0 ? entries : std::min(static_cast<std::uint64_t>(fanout), entries);
}

}  // namespace

template <class Index>
RowClasses row_classes(const DistCsr<Index>& a, const SamplerShape& shape) {
  const auto layers = shape.fanout.size();
  const bool apart = !shape.relation_fanout.empty();
  ClassSums sums(layers, apart ? static_cast<std::size_t>(a.columns.relations()) : 0);
  for_each_whole_row(a, [&](std::span<const std::int64_t> sizes) {
    const auto degree =
        static_cast<std::uint64_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
    auto* const of_class = sums.of(degree);
    of_class[0] += 1;
    of_class[1] += degree;
    for (std::size_t relation = 0; relation < sizes.size(); ++relation) {
      const auto entries = static_cast<std::uint64_t>(sizes[relation]);
      if (apart) sums.others()[relation] += entries;
      for (std::size_t k = 0; k < layers; ++k)
        of_class[2 + k] += picks_of(apart ? shape.relation_fanout[k][relation] : shape.fanout[k], entries);
    }
  });
  if (a.parts() > 1) a.grid->column_comm().all_reduce(sums.all(), Reduction::kSum, "setup");
  return sums.classes();
}

RowClasses row_classes(const DegreeHistogram& degrees, std::span<const std::int64_t> fanout) {
  ClassSums sums(fanout.size(), 0);
  for (const auto& of : degrees) {
    const auto degree = static_cast<std::uint64_t>(of.degree), rows = static_cast<std::uint64_t>(of.vertices);
    auto* const of_class = sums.of(degree);
    of_class[0] += rows;
    of_class[1] += rows * degree;
    for (std::size_t k = 0; k < fanout.size(); ++k) of_class[2 + k] += rows * picks_of(fanout[k], degree);
  }
  return sums.classes();
}

namespace {

// Of each class how likely a row is in a frontier, and the share of its entries drawn before.
struct ExpectedFrontier {
  std::vector<RowClass> classes;
  std::vector<double> included, covered;

  /// term(class, included, covered), over all rows.
  template <class Term>
  double sum(const Term& term) const {
    double all = 0;
    for (std::size_t k = 0; k < classes.size(); ++k)
      all += classes[k].rows * term(classes[k], included[k], covered[k]);
    return all;
  }
};

// The columns that a batch draws in layer k from a support of so many, or from each relation's.
double picks_of_layer(const RowClasses& rows, const SamplerShape& shape, std::size_t k, double support) {
  const auto at_most = [](std::int64_t fanout, double of) {
    return fanout < 0 ? of : std::min(static_cast<double>(fanout), of);
  };
  if (rows.of_relations.empty()) return at_most(most_of_layer(shape, k), support);
  const double entries = std::max(rows.entries(), 1.0);
  double picks = 0;
  for (std::size_t r = 0; r < rows.of_relations.size(); ++r)
    picks += at_most(shape.relation_fanout[k][r], support * rows.of_relations[r] / entries);
  return picks;
}

}  // namespace

ExpectedLayers expected_layers(const RowClasses& rows, const SamplerKind& kind, const SamplerShape& shape,
                               int parts, double batches) {
  const double n = std::max(1.0, rows.rows()), edges = std::max(1.0, rows.entries());
  const double share = std::min(1.0, static_cast<double>(shape.batch_size) / n);
  ExpectedFrontier f = {rows.classes, std::vector(rows.classes.size(), share),
                        std::vector(rows.classes.size(), 0.0)};
  const auto met = [&](double degree, double ends) {  // by one of so many ends of edges
    return -std::expm1(-ends * degree / edges);
  };
  const auto count_met = [&](double ends) {
    return f.sum([&](const RowClass& of, double, double) { return met(of.degree, ends); });
  };
  ExpectedLayers expected;
  for (std::size_t k = 0; k < shape.fanout.size(); ++k) {
    const auto stacked = [&](double included) {
      return -std::expm1(batches * std::log1p(-std::min(included, 1 - 1e-12)));
    };
    const double vertices = f.sum([](const RowClass&, double in, double) { return in; }),
                 entries = f.sum([](const RowClass&of, double in, double) { return in * of.degree; });
    ProductWork work;
    work.batches = batches;
    work.rows = batches * vertices;
    work.row_entries = batches * entries;
    work.distinct = f.sum([&](const RowClass&, double in, double) { return stacked(in); });
    work.distinct_entries =
        f.sum([&](const RowClass& of, double in, double) { return of.degree * stacked(in); });
    work.result_value_bytes = !kind.layer_wise && kind.has_values(shape) ? 4 : 0;
    double ends = 0;  // of edges that reach the next frontier
    if (kind.induces) {
      work.picks = batches * vertices;
      work.results = batches * entries * vertices / n;
    } else if (kind.layer_wise) {
      const double support = count_met(kind.sums_rows ? entries : 1e3 * edges),
                   picks = picks_of_layer(rows, shape, k, support);
      double low = 0, high = edges;  // as many ends as meet so many rows
      for (int step = 0; step < 60; ++step) {
        ends = (low + high) / 2;
        (count_met(ends) < picks ? low : high) = ends;
      }
      work.picks = batches * picks;
      work.results = batches * entries * f.sum([&](const RowClass& of, double, double) {
        return of.degree / edges * met(of.degree, ends);
      });
      if (kind.sums_rows) work.sums = batches * parts * count_met(entries / parts);
    } else {  // who draws from a row again meets some of the same
      work.results = batches * f.sum([&](const RowClass& of, double in, double) { return in * of.picks[k]; });
      ends = f.sum(
          [&](const RowClass& of, double in, double covered) { return in * of.picks[k] * (1 - covered); });
    }
    expected.work.push_back(work);
    if (kind.induces) continue;
    for (std::size_t c = 0; c < f.classes.size(); ++c) {
      const auto& of = f.classes[c];
      auto& in = f.included[c];
      const double before = in, drawn = of.degree > 0 ? of.picks[k] / of.degree : 0;
      in += (1 - in) * met(of.degree, ends);
      f.covered[c] = in > 0 ? before * (f.covered[c] + (1 - f.covered[c]) * drawn) / in : 0;
    }
  }
  expected.input_rows = f.sum([](const RowClass&, double in, double) { return in; });
  return expected;
}

std::vector<Schedule> choose_schedules(const ProductShape& product, const SamplerShape& shape,
                                       const RowClasses& rows, const SamplerKind& kind) {
  std::vector<Schedule> schedules(shape.fanout.size(), shape.schedule);
  if (shape.schedule != Schedule::kAuto) return schedules;
  const auto expected = expected_layers(rows, kind, shape, product.parts, shape.batches_per_rank);
  for (std::size_t k = 0; k < schedules.size(); ++k) {
    auto work = expected.work[k];
    if (product.join == JoinPieces::kMerge) {  // each holder draws
      work.results = std::min(work.row_entries, work.results * product.copies);
      work.merged = work.rows * std::min(1.0, product.copies - 1);
    }
    schedules[k] = choose_schedule(kUsualLink, product, work);
  }
  return schedules;
}

template RowClasses row_classes(const DistCsr<std::int32_t>&, const SamplerShape&);
template RowClasses row_classes(const DistCsr<std::int64_t>&, const SamplerShape&);

Footprint minibatches_footprint(const MinibatchSize& size, double count, double relations) {
  Footprint sum;
  sum.add(8 * std::max(size.rows[0], 2 * size.rows[1]), count);  // a list that grew doubles
  for (std::size_t layer = 1; layer < size.rows.size(); ++layer)
    sum.add(8 * size.rows[layer], count)
        .add(4 * size.entries[layer], 2 * count)
        .add(relations > 1 ? size.entries[layer] : 0, count);
  return sum;
}

Footprint sampling_footprint(const PlannedEpoch& epoch, const EpochWork& work, const ProductShape& matrix,
                             int threads) {
  const auto& kind = sampler_kind_of(epoch.sampler);
  const auto layers = epoch.shape.fanout.size();
  auto stacked = static_cast<double>(work.stacked);
  if (kind.layer_wise && threads > 0)
    stacked = static_cast<double>(layer_wise_batches_together(Cpu{threads}, matrix.parts, work.stacked));
  const int result_value_bytes = has_result_values(epoch) ? 4 : 0;
  const int per_thread = std::max(1, threads);
  Footprint most, kept;  // kept: sums of the layer before (ladies.inl.hpp)
  for (std::size_t k = 0; k < layers; ++k) {
    const auto layer = layers - k;
    if (matrix.parts == 1 && !kind.layer_wise) {  // batch by batch: sample_in_place, node_wise.cpp
      most = larger(most, entries_footprint(work.largest.rows[layer], work.largest.entries[layer],
                                            matrix.index_bytes, result_value_bytes));
      continue;
    }
    auto of_layer = work.window[k];
    of_layer.sums *= stacked / std::max(1.0, static_cast<double>(work.stacked));
    const bool sums_are_here = matrix.parts == 1 || work.schedules[k] == Schedule::kPull;
    const double sum_bytes = of_layer.sums * (matrix.index_bytes + 8);
    const auto earlier = kept;
    kept = kind.sums_rows && sums_are_here && k + 1 < layers && sum_bytes <= kMostKeptSumBytes
               ? Footprint().add(sum_bytes / stacked, stacked)
               : Footprint();
    of_layer.rows = stacked * work.mean.rows[layer];
    of_layer.results = stacked * work.mean.entries[layer];
    of_layer.result_value_bytes = result_value_bytes;
    most = larger(most, product_footprint(work.schedules[k], matrix, of_layer, kind.layer_wise, per_thread) +
                            earlier + kept);
  }
  if (kind.spreads_weights) {
    // fastgcn.cpp: points, intervals, those taken, the axis without them
    double picks = 0;
    for (std::size_t k = 0; k < layers; ++k) picks += static_cast<double>(drawn_of_layer(epoch.shape, k));
    most.add(96 * picks, stacked);
  }
  return most + Footprint().add(matrix.rows / 8, 2 * per_thread).add(4 * work.largest.rows[0], per_thread);
}

double sampler_bytes(const PlannedEpoch& epoch, double columns) {
  // A weight for each column.
  return sampler_kind_of(epoch.sampler).spreads_weights ? 8 * columns / epoch.parts() : 0;
}

double sampler_bytes_of_thread(const PlannedEpoch& epoch, double columns) {
  // labor.cpp: a byte of each column's number
  return sampler_kind_of(epoch.sampler).shares_draws ? columns : 0;
}

}  // namespace espalier
