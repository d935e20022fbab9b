// The law of a sampled block of one layer, enumerated: how probable it is that an entry is there,
// and the moments of its value. From the definitions in the samplers' files, in double, over maps;
// of the program only the rule by which weights become integers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "espalier/base/fixed_point.hpp"
#include "espalier/sample/sampler.hpp"
#include "sample/ordered_draws.hpp"

namespace espalier {

using LawRow = std::map<std::int64_t, double>;  ///< value by column: a vertex or (relation, source)
using LawRows = std::vector<LawRow>;
using LawIds = std::vector<std::int64_t>;
using Place = std::pair<std::int64_t, std::int64_t>;  ///< row, column

struct EntryLaw {
  double probability = 0;                    ///< that it is there; where it is not its value is 0
  double mean = 0, square = 0, largest = 0;  ///< of the value, which is never negative

  void add(double p, double value) {
    probability += p;
    mean += p * value;
    square += p * value * value;
    largest = std::max(largest, value);
  }
};
using BlockLaw = std::map<Place, EntryLaw>;

/// For integers round(w 2^shift), at least 1 (fixed_point_weight), of up to so many weights, none
/// above `largest`: their sum is below 2^63.
inline int law_shift(double largest, std::int64_t terms) {
  int exponent = 0, log_terms = 0;
  std::frexp(largest, &exponent);
  while (std::int64_t{1} << log_terms < terms) ++log_terms;
  return largest > 0 ? 62 - exponent - log_terms : 0;
}

/// What a law is asked of.
struct LawInput {
  const SamplerKind& kind;
  const SamplerShape& shape;
  const Schema& schema;
  const LawRows& m;        ///< the matrix that is sampled; of a mean its shares
  const LawRows& weights;  ///< of the edges, which a weighted draw for a mean goes by
  std::int64_t batch = 0;  ///< `induces`: vertices of a batch at most

  std::int64_t vertices() const { return std::ssize(m); }
  bool is_mean() const { return shape.aggregation == Aggregation::kMean; }
  /// The parts that are drawn from by themselves: of a layer-wise sampler its lists.
  bool cut_by_relation() const { return !kind.layer_wise || !shape.relation_fanout.empty(); }
  int part_of(std::int64_t column) const { return cut_by_relation() ? schema.relation_of(column) : 0; }
  std::int64_t fanout(int part) const {
    return shape.relation_fanout.empty() ? shape.fanout[0] : shape.relation_fanout[0][part];
  }
};

/// graphsage and labor: the entries of a row, or of a relation's part of it, but for v itself of a
/// matrix, which is kept.
inline void add_law_of_part(const LawInput& in, std::int64_t v, const LawRow& part, std::int64_t fanout,
                            BlockLaw& law) {
  LawIds columns;
  for (const auto& [u, value] : part)
    if (in.is_mean() || u != v) columns.push_back(u);
  if (std::ssize(columns) < std::ssize(part)) law[{v, v}].add(1, part.at(v));
  const auto count = std::ssize(columns);
  const double n = static_cast<double>(count), s = static_cast<double>(fanout);
  if (fanout < 0 || count <= fanout) {
    for (const auto u : columns) law[{v, u}].add(1, part.at(u));
    return;
  }
  const auto uniform = [&](std::int64_t u) { return in.is_mean() ? 1 / s : part.at(u) * n / s; };
  if (in.kind.shares_draws) {  // LABOR: each for itself
    for (const auto u : columns) law[{v, u}].add(s / n, uniform(u));
    return;
  }
  std::vector<std::uint64_t> weights(columns.size(), 1);
  double total = 0;
  if (in.shape.weighted) {
    const auto& row = in.is_mean() ? in.weights[v] : in.m[v];
    double largest = 0;
    for (const auto u : columns) largest = std::max(largest, row.at(u));
    for (std::size_t k = 0; k < columns.size(); ++k) {
      weights[k] = fixed_point_weight(row.at(columns[k]), law_shift(largest, count));
      total += static_cast<double>(weights[k]);
    }
  }
  for_each_draw(weights, fanout, [&](const auto& order, double probability, const auto& left) {
    const auto factors = des_raj_factors(weights, order, left);
    for (std::size_t j = 0; j < order.size(); ++j) {
      const auto u = columns[order[j]];
      const double value = !in.shape.weighted ? uniform(u)
                           : in.is_mean()     ? factors[j] * static_cast<double>(weights[order[j]]) / total
                                              : factors[j] * part.at(u);
      law[{v, u}].add(probability, value);
    }
  });
}

/// subgraph: v is in one of the batches of an epoch, any other vertex of it as probably.
inline void add_law_of_subgraph(const LawInput& in, BlockLaw& law) {
  const auto n = in.vertices(), batches = (n + in.batch - 1) / in.batch;
  for (std::int64_t b = 0; b < batches; ++b) {
    const auto size = static_cast<double>(n * (b + 1) / batches - n * b / batches);
    const double of_v = size / static_cast<double>(n), meets = (size - 1) / static_cast<double>(n - 1);
    for (std::int64_t v = 0; v < n; ++v)
      for (const auto& [column, value] : in.m[v]) {
        const bool is_self = in.schema.vertex_of(column) == v;
        law[{v, column}].add(is_self ? of_v : of_v * meets, is_self ? value : value / meets);
      }
  }
}

/// The integer weights of columns in ladies and fastgcn; those of 0 are left out.
inline std::map<std::int64_t, std::uint64_t> column_weights(const LawInput& in, const LawIds& frontier) {
  double largest = 0;
  std::int64_t entries = 0;
  for (const auto& row : in.m)
    for (const auto& [u, value] : row) largest = std::max(largest, value * value), ++entries;
  const int shift = law_shift(largest, entries);
  const bool ladies = in.kind.sums_rows, counts = ladies && in.shape.mode == SamplerMode::kPaper;
  std::map<std::int64_t, std::uint64_t> weights;
  for (std::int64_t v = 0; v < in.vertices(); ++v) {
    if (ladies && std::ranges::find(frontier, v) == frontier.end()) continue;
    for (const auto& [u, value] : in.m[v])
      weights[u] += counts ? value != 0 : fixed_point_weight(value * value, shift);
  }
  for (auto& [u, weight] : weights) {
    if (counts) weight *= weight;
    if (!ladies && in.shape.mode == SamplerMode::kReference)
      weight = fixed_point_weight(std::sqrt(static_cast<double>(weight)), 20);
  }
  std::erase_if(weights, [](const auto& of) { return of.second == 0; });
  return weights;
}

/// ladies and fastgcn: all entries of the frontier's rows in the columns that a list picks.
inline void add_law_of_list(const LawInput& in, const LawIds& frontier, int list,
                            const std::map<std::int64_t, std::uint64_t>& all, BlockLaw& law) {
  const auto mode = in.shape.mode;
  const bool ladies = in.kind.sums_rows, normalizes = ladies && mode == SamplerMode::kReference;
  LawIds columns;
  std::vector<std::uint64_t> weights;
  double total = 0;
  for (const auto& [u, weight] : all) {
    if (in.part_of(u) != list) continue;
    columns.push_back(u);
    weights.push_back(weight);
    total += static_cast<double>(weight);
  }
  const auto add = [&](LawRow factors, double probability) {
    if (normalizes)
      for (const auto v : frontier)
        if (const auto seed = std::ranges::find(columns, v); seed != columns.end())
          factors[v] = total / static_cast<double>(weights[seed - columns.begin()]);
    for (const auto v : frontier) {
      double sum = normalizes ? 0 : 1;
      std::map<std::int64_t, double> row;
      for (const auto& [u, value] : in.m[v])
        if (const auto found = factors.find(u); found != factors.end()) row[u] = value * found->second;
      if (normalizes)
        for (const auto& [u, value] : row) sum += value;
      for (const auto& [u, value] : row) law[{v, u}].add(probability, value / sum);
    }
  };
  const auto fanout = in.fanout(list);
  const bool whole = fanout < 0 || std::ssize(columns) <= fanout;
  const auto picks = static_cast<double>(whole ? std::ssize(columns) : fanout);
  const auto factor = [&](std::size_t k, double debiased) {
    if (mode == SamplerMode::kDebiased) return debiased;
    if (ladies && mode == SamplerMode::kPaper) return 1.0;
    return total / static_cast<double>(weights[k]) / (ladies ? 1 : picks);
  };
  if (whole) {
    LawRow factors;
    for (std::size_t k = 0; k < columns.size(); ++k) factors[columns[k]] = factor(k, 1);
    return add(std::move(factors), 1);
  }
  for_each_draw(weights, fanout, [&](const auto& order, double probability, const auto& left) {
    const auto des_raj = des_raj_factors(weights, order, left);
    LawRow factors;
    for (std::size_t j = 0; j < order.size(); ++j) factors[columns[order[j]]] = factor(order[j], des_raj[j]);
    add(std::move(factors), probability);
  });
}

/// The law of the block of a batch with these seeds; `induces`: of an epoch's batches together.
inline BlockLaw law_of_block(const LawInput& in, const LawIds& seeds) {
  BlockLaw law;
  if (in.kind.induces) {
    add_law_of_subgraph(in, law);
  } else if (in.kind.layer_wise) {
    const auto weights = column_weights(in, seeds);
    const auto lists = in.cut_by_relation() ? std::ssize(in.shape.relation_fanout[0]) : 1;
    for (int list = 0; list < lists; ++list) add_law_of_list(in, seeds, list, weights, law);
  } else {
    for (const auto v : seeds) {
      std::map<int, LawRow> parts;
      for (const auto& [u, value] : in.m[v]) parts[in.part_of(u)][u] = value;
      for (const auto& [part, row] : parts) add_law_of_part(in, v, row, in.fanout(part), law);
    }
  }
  return law;
}

}  // namespace espalier
