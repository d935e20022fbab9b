// The table of samplers. A new one is a file that defines make_NAME and a line here.
#include <fmt/format.h>

#include "espalier/base/error.hpp"
#include "espalier/sample/sampler.hpp"

// clang-format off
//      name        per layer  what it draws
#define ESPALIER_SAMPLERS(sampler)                                                                      \
  sampler(graphsage, false,    "each vertex draws s of its neighbours (Hamilton et al. 2017)")          \
  sampler(labor,     false,    "as graphsage, with randomness shared within a layer (Balin and Catalyurek 2023)") \
  sampler(ladies,    true,     "each layer draws s vertices next to its frontier (Zou et al. 2019)")    \
  sampler(fastgcn,   true,     "each layer draws s vertices of the whole graph (Chen et al. 2018)")
// clang-format on

namespace espalier {

#define ESPALIER_DECLARE(name, layer_wise, about) \
  template <class Index>                          \
  std::unique_ptr<Sampler> make_##name(const DistCsr<Index>& a, const SamplerShape& shape);
ESPALIER_SAMPLERS(ESPALIER_DECLARE)
#undef ESPALIER_DECLARE

namespace {

#define ESPALIER_KIND(name, layer_wise, about) {#name, layer_wise, about},
constexpr SamplerKind kKinds[] = {ESPALIER_SAMPLERS(ESPALIER_KIND)};
#undef ESPALIER_KIND

}  // namespace

std::span<const SamplerKind> sampler_kinds() {
  return kKinds;
}

const SamplerKind& sampler_kind_of(const std::string& name) {
  std::string names;
  for (const auto& kind : kKinds) {
    if (name == kind.name) return kind;
    names += (names.empty() ? "" : ", ") + std::string(kind.name);
  }
  usage_error("sampler.kind = {} is not a sampler; the samplers are {}", name, names);
}

SamplerMode sampler_mode_of(const std::string& name) {
  if (name == "paper") return SamplerMode::kPaper;
  if (name == "reference") return SamplerMode::kReference;
  if (name == "debiased") return SamplerMode::kDebiased;
  usage_error("sampler.mode = {} is not a mode; use paper, reference or debiased", name);
}

template <class Index>
std::unique_ptr<Sampler> make_sampler(const std::string& kind, const DistCsr<Index>& a,
                                      const SamplerShape& shape) {
  const auto* known = sampler_kind_of(kind).name;
#define ESPALIER_MAKE(name, layer_wise, about) \
  if (known == std::string_view(#name)) return make_##name(a, shape);
  ESPALIER_SAMPLERS(ESPALIER_MAKE)
#undef ESPALIER_MAKE
  return nullptr;
}

template std::unique_ptr<Sampler> make_sampler(const std::string&, const DistCsr<std::int32_t>&,
                                               const SamplerShape&);
template std::unique_ptr<Sampler> make_sampler(const std::string&, const DistCsr<std::int64_t>&,
                                               const SamplerShape&);

}  // namespace espalier
