// The table of samplers. A new one is a file for each space that defines make_NAME, with
// ESPALIER_INSTANTIATE_SAMPLER, and a line here.
#pragma once

#include <string_view>

#include "espalier/sample/sampler.hpp"

// clang-format off
//       name       layers?    induced? sums?  spread? values? weighted? modes? shares? mean?  does
#define ESPALIER_SAMPLERS(sampler) \
  sampler(graphsage, false,     false,   false, false,  false,  true,     false, false,  false, "each vertex draws s of its neighbours (Hamilton et al. 2017)") \
  sampler(labor,     false,     false,   false, false,  true,   false,    false, true,   false, "as graphsage, with randomness shared within a layer (Balin and Catalyurek 2023)") \
  sampler(ladies,    true,      false,   true,  false,  true,   true,     true,  false,  true,  "each layer draws s vertices next to its frontier (Zou et al. 2019)") \
  sampler(fastgcn,   true,      false,   false, true,   true,   true,     true,  false,  false, "each layer draws s vertices of the whole graph (Chen et al. 2018)") \
  sampler(subgraph,  true,      true,    false, false,  true,   true,     false, false,  false, "a batch is vertices drawn from all, with the edges between them (Zeng et al. 2020)")
// clang-format on

namespace espalier {

#define ESPALIER_DECLARE(name, ...)                                                             \
  template <class Index>                                                                        \
  std::unique_ptr<Sampler> make_##name(const Cpu&, const DistCsr<Index>&, const SamplerShape&); \
  template <class Index>                                                                        \
  std::unique_ptr<SamplerOn<Cuda>> make_##name(const Cuda&, const DistCsr<Index, Cuda>&,        \
                                               const SamplerShape&);
ESPALIER_SAMPLERS(ESPALIER_DECLARE)
#undef ESPALIER_DECLARE

/// make_NAME in a space, for ids of both widths.
#define ESPALIER_INSTANTIATE_SAMPLER(name, Space)                                                           \
  template std::unique_ptr<SamplerOn<Space>> make_##name(const Space&, const DistCsr<std::int32_t, Space>&, \
                                                         const SamplerShape&);                              \
  template std::unique_ptr<SamplerOn<Space>> make_##name(const Space&, const DistCsr<std::int64_t, Space>&, \
                                                         const SamplerShape&);

/// Throws UserError(kUsage) where a weighted draw is asked for that `kind` does not know.
void check_weighted(const SamplerKind& kind, bool weighted);

template <class Index, class Space>
std::unique_ptr<SamplerOn<Space>> make_sampler(const Space& space, const std::string& kind,
                                               const DistCsr<Index, Space>& a, const SamplerShape& shape) {
  const auto& known = sampler_kind_of(kind);
  check_weighted(known, shape.weighted);
#define ESPALIER_MAKE(sampler, ...) \
  if (known.name == std::string_view(#sampler)) return make_##sampler(space, a, shape);
  ESPALIER_SAMPLERS(ESPALIER_MAKE)
#undef ESPALIER_MAKE
  return nullptr;
}

#define ESPALIER_INSTANTIATE_SAMPLERS(Index, Space)        \
  template std::unique_ptr<SamplerOn<Space>> make_sampler( \
      const Space&, const std::string&, const DistCsr<Index, Space>&, const SamplerShape&);

}  // namespace espalier
