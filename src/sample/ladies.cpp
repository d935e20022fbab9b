// LADIES, layer-dependent importance sampling (Zou et al. 2019; as matrices, Tripathy et al. 2024,
// section 4.2): per batch and layer, s vertices next to the frontier F.
//
//     P      = Q M      one row per batch, Q has a 1 for each frontier vertex; entries
//                       count as integers
//     weight of column u:   paper      e_u^2 with e_u = the frontier's edges to u, those of
//                                      weight 0 left out
//                           others     sum over v in F of M_vu^2, in fixed point
//     picks  = SAMPLE(P, s), one after another without replacement; a support of at most s
//            is taken whole
//     factor of a picked column u, with p_u = weight / total:
//                           paper      1: the entries as they are
//                           reference  1 / p_u, then each row of the block is normalised to
//                                      sum 1; the batch's own seeds are added to the picks (Zou et
//                                      al.'s own code)
//                           debiased   (r_j / p_u + s - j) / s for the j-th draw, r_j = 1 - what
//                                      was drawn before (Des Raj; Chen et al. 2023): E[B H] = M H;
//                                      1 when the support is taken whole
//
// With a fanout for each relation P is cut into the columns of each, and each part is
// drawn from so.
// A frontier without neighbours has an empty support and yields only itself.
#include "ladies.inl.hpp"

#include <algorithm>

#include "espalier/base/error.hpp"
#include "espalier/sample/block_value.hpp"
#include "espalier/sample/draw.hpp"
#include "samplers.inl.hpp"

namespace espalier {

namespace {

// The columns of one batch.
template <class Index>
struct Picks {
  Buffer<Index> columns;  // ascending global ids
  Buffer<double> factors;
};

// Does a tree over the support pay? It takes O(support); without it draw t passes t intervals.
bool pays_for_tree(std::int64_t support, std::int64_t picks) {
  return picks * picks > 2 * support + 64 * picks;
}

double factor(const std::vector<std::uint64_t>& prefix, std::size_t k) {
  return inverse_probability(prefix.back(), prefix[k + 1] - prefix[k]);
}

template <class Index>
Picks<Index> draw(SamplerMode mode, const SparseSum<Index>& sum, const std::vector<std::uint64_t>& prefix,
                  const KeyedStream& stream, std::int64_t fanout) {
  Picks<Index> picks;
  const auto support = std::ssize(sum.columns);
  if (fanout < 0 || support <= fanout) {
    picks.columns = sum.columns;
    picks.factors.assign(sum.columns.size(), 1.0);
    if (mode == SamplerMode::kReference)
      for (std::size_t k = 0; k < sum.columns.size(); ++k) picks.factors[k] = factor(prefix, k);
    return picks;
  }
  std::vector<std::int64_t> chosen(fanout), in_order(chosen.size());
  if (pays_for_tree(support, fanout))
    draw_weighted_many(stream, prefix.data(), support, fanout, chosen.data(), in_order.data());
  else
    draw_weighted(stream, prefix.data(), support, fanout, 0, chosen.data(), in_order.data());
  for (const auto position : chosen) picks.columns.push_back(sum.columns[position]);
  picks.factors.assign(chosen.size(), 1.0);
  if (mode == SamplerMode::kPaper) return picks;
  std::vector<std::uint64_t> weights;
  for (const auto position : in_order) {
    const auto k = static_cast<std::size_t>(position);
    weights.push_back(prefix[k + 1] - prefix[k]);
  }
  const auto factors = pick_factors(mode, prefix.back(), weights, 1.0);
  for (std::size_t j = 0; j < in_order.size(); ++j) {
    const auto place = std::lower_bound(chosen.begin(), chosen.end(), in_order[j]) - chosen.begin();
    picks.factors[place] = factors[j];
  }
  return picks;
}

// The batch's own vertices join the picks. M has a diagonal in this mode and seeds are in every
// frontier, so each is in the support unless its entries count 0.
template <class Index>
void add_seeds(std::span<const std::int64_t> seeds, const SparseSum<Index>& sum,
               const std::vector<std::uint64_t>& prefix, Picks<Index>& picks) {
  std::vector<std::pair<Index, double>> all;
  for (std::size_t k = 0; k < picks.columns.size(); ++k) all.emplace_back(picks.columns[k], picks.factors[k]);
  for (const auto vertex : seeds) {
    const auto seed = static_cast<Index>(vertex);
    const auto found = std::lower_bound(sum.columns.begin(), sum.columns.end(), seed);
    if (found != sum.columns.end() && *found == seed)
      all.emplace_back(seed, factor(prefix, static_cast<std::size_t>(found - sum.columns.begin())));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  picks.columns.clear();
  picks.factors.clear();
  for (const auto& [column, of_column] : all) {
    picks.columns.push_back(column);
    picks.factors.push_back(of_column);
  }
}

}  // namespace

void check_ladies_weights(bool overflow, std::int64_t support) {
  ESPALIER_CHECK(!overflow, "the squared edge counts of a batch of support {} do not fit in 64 bits",
                 support);
}

template <class Index>
std::vector<std::uint64_t> ladies_prefix(const SparseSum<Index>& sum, SamplerMode mode) {
  std::vector<std::uint64_t> prefix(sum.sums.size() + 1, 0);
  bool overflow = false;
  for (std::size_t k = 0; k < sum.sums.size(); ++k) {
    const auto weight = ladies_weight(sum.sums[k], mode, &overflow);
    overflow |= __builtin_add_overflow(prefix[k], weight, &prefix[k + 1]);
  }
  check_ladies_weights(overflow, std::ssize(sum.sums));
  return prefix;
}

template std::vector<std::uint64_t> ladies_prefix(const SparseSum<std::int32_t>&, SamplerMode);
template std::vector<std::uint64_t> ladies_prefix(const SparseSum<std::int64_t>&, SamplerMode);

namespace {

// A list of a batch, from the sums of its columns.
template <class Index>
Picks<Index> draw_list(SamplerMode mode, const LayerInputOn<Cpu>& input, std::int64_t batch,
                       std::int64_t list, const SparseSum<Index>& sum) {
  const auto prefix = ladies_prefix(sum, mode);
  auto stream = input.stream;
  stream.batch = static_cast<std::uint64_t>(input.frontier.numbers[batch]);
  stream.relation = static_cast<std::uint64_t>(list);
  auto picks = draw(mode, sum, prefix, stream, input.fanout.of_list(list));
  if (mode == SamplerMode::kReference)
    add_seeds({input.frontier.vertices.data() + input.frontier.begin(batch),
               static_cast<std::size_t>(input.seeds[batch])},
              sum, prefix, picks);
  return picks;
}

// The lists of relations one after another, as their columns stand.
template <class Index>
Picks<Index> draw_relations(SamplerMode mode, const LayerInputOn<Cpu>& input, std::int64_t batch,
                            const SparseSum<Index>& sum) {
  Picks<Index> all;
  SparseSum<Index> of_relation;
  auto from = sum.columns.begin();
  for (std::int64_t relation = 0; relation < input.fanout.lists(); ++relation) {
    const auto end = std::lower_bound(from, sum.columns.end(),
                                      static_cast<Index>(input.fanout.columns.begins[relation + 1]));
    of_relation.columns.assign(from, end);
    of_relation.sums.assign(sum.sums.begin() + (from - sum.columns.begin()),
                            sum.sums.begin() + (end - sum.columns.begin()));
    const auto picks = draw_list(mode, input, batch, relation, of_relation);
    all.columns.insert(all.columns.end(), picks.columns.begin(), picks.columns.end());
    all.factors.insert(all.factors.end(), picks.factors.begin(), picks.factors.end());
    from = end;
  }
  return all;
}

}  // namespace

template <class Index>
GroupPicks<Index, Cpu> draw_from_sums(const Cpu&, SamplerMode mode, const LayerInputOn<Cpu>& input,
                                      std::int64_t batch, SparseSum<Index>& sum) {
  auto picks = input.fanout.lists() == 1 ? draw_list(mode, input, batch, 0, sum)
                                         : draw_relations(mode, input, batch, sum);
  return {{std::ssize(picks.columns)}, std::move(picks.columns), std::move(picks.factors)};
}

template <class Index>
std::unique_ptr<Sampler> make_ladies(const Cpu&, const DistCsr<Index>& m, const SamplerShape& shape) {
  return make_layer_wise<Index, Cpu>("ladies", m, shape,
                                     std::make_unique<LadiesDistribution<Index, Cpu>>(m, shape.mode));
}

ESPALIER_INSTANTIATE_SAMPLER(ladies, Cpu)

}  // namespace espalier
