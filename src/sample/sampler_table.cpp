// What the program knows of its samplers; the table is in samplers.inl.hpp.
#include <fmt/format.h>

#include "espalier/base/config.hpp"
#include "espalier/base/named.hpp"
#include "samplers.inl.hpp"
#include "subgraph.hpp"

namespace espalier {

namespace {

#define ESPALIER_KIND(name, ...) {#name, __VA_ARGS__},
constexpr SamplerKind kKinds[] = {ESPALIER_SAMPLERS(ESPALIER_KIND)};
#undef ESPALIER_KIND

}  // namespace

std::span<const SamplerKind> sampler_kinds() {
  return kKinds;
}

const SamplerKind& sampler_kind_of(const std::string& name) {
  return entry_named(kKinds, name, "sampler.kind =");
}

void check_weighted(const SamplerKind& kind, bool weighted) {
  if (weighted && !kind.takes_weighted)
    usage_error("sampler.weighted = true is not available for {}; use false, or sampler.kind = \"graphsage\"",
                kind.name);
}

void check_sampler_keys(const SamplerConfig& sampler, bool own_weights) {
  const auto& kind = sampler_kind_of(sampler.kind);
  check_weighted(kind, sampler.weighted);
  if (sampler.weighted && kind.layer_wise && own_weights)
    usage_error(
        "sampler.weighted = true has no meaning for {} with a model whose matrix has the edge weights in any "
        "case (gcn, gin, and sage with model.aggregator = \"sum\"); use false",
        kind.name);
  if (const bool draws = kind.takes_weighted && !kind.layer_wise;
      sampler.draw != "its" && !(draws && sampler.weighted))
    usage_error(
        "sampler.draw = {} has no meaning for {}{}: it says how neighbours are drawn by weight; leave it "
        "out, or use sampler.kind = \"graphsage\" and sampler.weighted = true",
        sampler.draw, kind.name, draws ? " with sampler.weighted = false" : "");
  if (sampler.mode != "debiased" && !kind.takes_mode)
    usage_error(
        "sampler.mode = {} has no meaning for {}; leave it out, or use sampler.kind = \"ladies\" or "
        "\"fastgcn\"",
        sampler.mode, kind.name);
  if (kind.induces) {
    for (const auto fanout : sampler.fanout)
      if (fanout != -1)
        usage_error(
            "sampler.fanout has {}, but sampler.kind = \"{}\" takes every edge between the vertices of "
            "a batch; write -1 for each layer",
            fanout, kind.name);
    if (!sampler.relation_fanout.empty())
      usage_error("sampler.relation_fanout has no meaning for sampler.kind = \"{}\"; leave it out",
                  kind.name);
    if (sampler.groups > 0)
      usage_error(
          "sampler.groups = {} has no meaning for sampler.kind = \"{}\", whose batches are of all vertices; "
          "leave it out",
          sampler.groups, kind.name);
  }
  if (sampler.share_batches > 1 && !kind.shares_draws)
    usage_error(
        "sampler.share_batches = {} has no meaning for {}; leave it out, or use sampler.kind = \"labor\"",
        sampler.share_batches, kind.name);
}

DrawLaw draw_law_of(const std::string& name) {
  constexpr Named<DrawLaw> kLaws[] = {{"its", DrawLaw::kIts}, {"race", DrawLaw::kRace}};
  return entry_named(kLaws, name, "sampler.draw =").value;
}

SamplerMode sampler_mode_of(const std::string& name) {
  constexpr Named<SamplerMode> kModes[] = {{"paper", SamplerMode::kPaper},
                                           {"reference", SamplerMode::kReference},
                                           {"debiased", SamplerMode::kDebiased}};
  return entry_named(kModes, name, "sampler.mode =").value;
}

SamplerShape whole_rows_shape(const SamplerShape& training, const char* label) {
  // A relation that is left out is so here, too.
  std::vector<std::vector<std::int64_t>> relation_fanout;
  if (!training.relation_fanout.empty()) {
    relation_fanout.push_back(training.relation_fanout[0]);
    for (auto& fanout : relation_fanout[0]) fanout = fanout == 0 ? 0 : -1;
  }
  return {.fanout = {training.fanout[0] == 0 ? 0 : -1},
          .relation_fanout = std::move(relation_fanout),
          .weighted = training.weighted,
          .aggregation = training.aggregation,
          .label = label,
          .schedule = Schedule::kPull};
}

ESPALIER_INSTANTIATE_SAMPLERS(std::int32_t, Cpu)
ESPALIER_INSTANTIATE_SAMPLERS(std::int64_t, Cpu)
ESPALIER_INSTANTIATE_SAMPLER(subgraph, Cpu)

}  // namespace espalier
