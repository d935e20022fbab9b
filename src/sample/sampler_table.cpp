// The table of samplers. A new one is a file that defines make_NAME and a line here.
#include <fmt/format.h>

#include "espalier/base/error.hpp"
#include "espalier/base/nearest.hpp"
#include "espalier/sample/sampler.hpp"

// clang-format off
//      name       per layer? sums?  values? weighted?  modes?  what it draws
#define ESPALIER_SAMPLERS(sampler) \
  sampler(graphsage, false,     false, false,  true,      false,  "each vertex draws s of its neighbours (Hamilton et al. 2017)") \
  sampler(labor,     false,     false, true,   false,     false,  "as graphsage, with randomness shared within a layer (Balin and Catalyurek 2023)") \
  sampler(ladies,    true,      true,  true,   true,      true,   "each layer draws s vertices next to its frontier (Zou et al. 2019)") \
  sampler(fastgcn,   true,      false, true,   true,      true,   "each layer draws s vertices of the whole graph (Chen et al. 2018)")
// clang-format on

namespace espalier {

#define ESPALIER_DECLARE(name, ...) \
  template <class Index>            \
  std::unique_ptr<Sampler> make_##name(const DistCsr<Index>& a, const SamplerShape& shape);
ESPALIER_SAMPLERS(ESPALIER_DECLARE)
#undef ESPALIER_DECLARE

namespace {

#define ESPALIER_KIND(name, ...) {#name, __VA_ARGS__},
constexpr SamplerKind kKinds[] = {ESPALIER_SAMPLERS(ESPALIER_KIND)};
#undef ESPALIER_KIND

}  // namespace

std::span<const SamplerKind> sampler_kinds() {
  return kKinds;
}

const SamplerKind& sampler_kind_of(const std::string& name) {
  std::vector<std::string> names;
  std::string list;
  for (const auto& kind : kKinds) {
    if (name == kind.name) return kind;
    names.emplace_back(kind.name);
    list += std::string(list.empty() ? "" : ", ") + kind.name;
  }
  usage_error("sampler.kind = {} is not a sampler; did you mean {}? The samplers are {}", name,
              nearest(name, names), list);
}

namespace {

void check_weighted(const SamplerKind& kind, bool weighted) {
  if (weighted && !kind.takes_weighted)
    usage_error("sampler.weighted = true is not available for {}; use false, or sampler.kind = \"graphsage\"",
                kind.name);
}

}  // namespace

void check_sampler_keys(const SamplerKind& kind, bool weighted, const std::string& mode, bool gcn) {
  check_weighted(kind, weighted);
  if (weighted && kind.layer_wise && gcn)
    usage_error(
        "sampler.weighted = true has no meaning for {} with model.kind = \"gcn\", whose matrix has the edge "
        "weights in any case; use false",
        kind.name);
  if (mode != "debiased" && !kind.takes_mode)
    usage_error(
        "sampler.mode = {} has no meaning for {}; leave it out, or use sampler.kind = \"ladies\" or "
        "\"fastgcn\"",
        mode, kind.name);
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
  const auto& known = sampler_kind_of(kind);
  check_weighted(known, shape.weighted);
#define ESPALIER_MAKE(sampler, ...) \
  if (known.name == std::string_view(#sampler)) return make_##sampler(a, shape);
  ESPALIER_SAMPLERS(ESPALIER_MAKE)
#undef ESPALIER_MAKE
  return nullptr;
}

template std::unique_ptr<Sampler> make_sampler(const std::string&, const DistCsr<std::int32_t>&,
                                               const SamplerShape&);
template std::unique_ptr<Sampler> make_sampler(const std::string&, const DistCsr<std::int64_t>&,
                                               const SamplerShape&);

}  // namespace espalier
