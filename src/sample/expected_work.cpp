#include "expected_work.hpp"

#include <algorithm>
#include <cmath>

namespace espalier {

namespace {

// How many different ids `draws` draws out of `ids` equally likely ones hit, on average.
double distinct(double draws, double ids) {
  return ids > 0 ? ids * -std::expm1(-draws / ids) : 0;
}

// Rows of the batches of one rank: `frontier` vertices each, of this mean degree.
ProductWork rows_of(double frontier, double degree, const DegreeMoments& degrees, const SamplerShape& shape) {
  ProductWork work;
  work.batches = shape.batches_per_rank;
  work.rows = work.batches * frontier;
  work.row_entries = work.rows * degree;
  work.distinct = distinct(work.rows, degrees.rows);
  work.distinct_entries = std::min(work.distinct * degree, degrees.entries);
  return work;
}

}  // namespace

namespace {

// Calls add(entries, relation) for the part of each relation in a row, or for all of it.
template <class Index, class Add>
void for_each_part(const ColumnsOf& columns, std::span<const Index> row, Add add) {
  if (columns.begins == nullptr) return add(row.size(), 0);
  for (auto from = row.begin(); from != row.end();) {
    const int relation = columns.relation(*from);
    const auto end = std::lower_bound(from, row.end(), static_cast<Index>(columns.begins[relation + 1]));
    add(static_cast<std::uint64_t>(end - from), relation);
    from = end;
  }
}

}  // namespace

template <class Index>
DegreeMoments degree_moments(const DistCsr<Index>& a, const SamplerShape& shape) {
  const auto& fanout = shape.fanout;
  const auto fanout_of = [&](std::size_t k, int relation) {
    return shape.relation_fanout.empty() ? fanout[k] : shape.relation_fanout[k][relation];
  };
  // Integers: every process column gets the same sums, so every rank chooses the same schedules.
  const auto relations = shape.relation_fanout.empty() ? 0 : static_cast<std::size_t>(a.columns.relations());
  const auto first_relation = 3 + 2 * fanout.size();
  std::vector<std::uint64_t> sums(first_relation + relations, 0);
  for (std::int64_t row = 0; row < a.local.rows; ++row) {
    const auto degree = static_cast<std::uint64_t>(a.local.row_size(row));
    sums[0] += 1;
    sums[1] += degree;
    sums[2] += degree * degree;
    for_each_part(a.columns.leaf(), a.local.row_indices(row), [&](std::uint64_t entries, int relation) {
      if (relations > 0) sums[first_relation + static_cast<std::size_t>(relation)] += entries;
      for (std::size_t k = 0; k < fanout.size(); ++k) {
        const auto most = fanout_of(k, relation);
        const auto picks = most < 0 ? entries : std::min(static_cast<std::uint64_t>(most), entries);
        sums[3 + 2 * k] += picks;
        sums[4 + 2 * k] += picks * degree;
      }
    });
  }
  if (a.parts() > 1)
    a.grid->column_comm().all_reduce(std::span<std::uint64_t>(sums), Reduction::kSum, "setup");
  const auto sum = [&](std::size_t k) { return static_cast<double>(sums[k]); };
  const double rows = std::max(sum(0), 1.0), ends = std::max(sum(1), 1.0);
  DegreeMoments moments = {sum(0), sum(1), sum(1) / rows, sum(2) / ends, {}, {}, {}};
  for (std::size_t k = 0; k < fanout.size(); ++k) {
    moments.picks.push_back(sum(3 + 2 * k) / rows);
    moments.neighbour_picks.push_back(sum(4 + 2 * k) / ends);
  }
  for (std::size_t r = 0; r < relations; ++r) moments.of_relations.push_back(sum(first_relation + r));
  return moments;
}

std::vector<ProductWork> node_wise_work(const DegreeMoments& degrees, const SamplerShape& shape,
                                        bool values_beside_picks) {
  std::vector<ProductWork> layers;
  double frontier = static_cast<double>(shape.batch_size);
  for (std::size_t k = 0; k < shape.fanout.size(); ++k) {
    const bool seeds = k == 0;
    auto work = rows_of(frontier, seeds ? degrees.mean : degrees.neighbour, degrees, shape);
    const double picks = seeds ? degrees.picks[k] : degrees.neighbour_picks[k];
    work.results = work.rows * picks;
    work.result_value_bytes = values_beside_picks ? 4 : 0;
    layers.push_back(work);
    frontier = distinct(frontier * (1 + picks), degrees.rows);
  }
  return layers;
}

namespace {

// The columns that a batch draws in layer k from a support of all, or from each relation's, in
// proportion to its entries.
double picks_of_layer(const DegreeMoments& degrees, const SamplerShape& shape, std::size_t k,
                      double support) {
  const auto at_most = [](std::int64_t fanout, double of) {
    return fanout < 0 ? of : std::min(static_cast<double>(fanout), of);
  };
  if (degrees.of_relations.empty()) return at_most(most_of_layer(shape, k), support);
  double picks = 0;
  for (std::size_t r = 0; r < degrees.of_relations.size(); ++r)
    picks += at_most(shape.relation_fanout[k][r],
                     support * degrees.of_relations[r] / std::max(degrees.entries, 1.0));
  return picks;
}

}  // namespace

std::vector<ProductWork> layer_wise_work(const DegreeMoments& degrees, const SamplerShape& shape, int parts,
                                         bool sums, bool induces) {
  std::vector<ProductWork> layers;
  double frontier = std::min(static_cast<double>(shape.batch_size), degrees.rows), degree = degrees.mean;
  for (std::size_t k = 0; k < shape.fanout.size(); ++k) {
    if (induces && k > 0) {
      layers.push_back(layers.front());  // the schedule of the one product
      continue;
    }
    auto work = rows_of(frontier, degree, degrees, shape);
    const double support = sums ? distinct(frontier * degree, degrees.rows) : degrees.rows;
    const double picks = induces ? frontier : picks_of_layer(degrees, shape, k, support);
    if (sums) work.sums = work.batches * parts * distinct(frontier * degree / parts, degrees.rows);
    work.picks = work.batches * picks;
    work.results = work.row_entries * std::min(1.0, picks / std::max(support, 1.0));
    layers.push_back(work);
    frontier = std::min(frontier + picks, degrees.rows);
    degree = degrees.neighbour;
  }
  return layers;
}

std::vector<Schedule> choose_schedules(const ProductShape& product, const SamplerShape& shape,
                                       const std::vector<ProductWork>& work) {
  std::vector<Schedule> schedules;
  for (const auto& layer : work)
    schedules.push_back(shape.schedule == Schedule::kAuto ? choose_schedule(shape.link, product, layer)
                                                          : shape.schedule);
  return schedules;
}

template <class Index>
std::vector<Schedule> choose_schedules(const DistCsr<Index>& a, const SamplerShape& shape,
                                       const std::vector<ProductWork>& work) {
  return choose_schedules({.parts = a.parts(),
                           .replication = a.grid->replication(),
                           .index_bytes = sizeof(Index),
                           .value_bytes = a.has_values ? 4 : 0},
                          shape, work);
}

#define ESPALIER_INSTANTIATE(Index)                                                           \
  template DegreeMoments degree_moments(const DistCsr<Index>&, const SamplerShape&);          \
  template std::vector<Schedule> choose_schedules(const DistCsr<Index>&, const SamplerShape&, \
                                                  const std::vector<ProductWork>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
