// Networks on the CPU, and what is known of their layers.
#include "espalier/base/nearest.hpp"
#include "network.inl.hpp"

namespace espalier {

namespace {

#define ESPALIER_KIND(known, Made) known,
constexpr LayerKind kKinds[] = {ESPALIER_LAYERS(ESPALIER_KIND)};
#undef ESPALIER_KIND

}  // namespace

std::span<const LayerKind> layer_kinds() {
  return kKinds;
}

const LayerKind& layer_kind_of(std::string_view name) {
  std::vector<std::string> names;
  std::string list;
  for (const auto& kind : kKinds) {
    if (name == kind.name) return kind;
    names.emplace_back(kind.name);
    list += std::string(list.empty() ? "" : ", ") + names.back();
  }
  usage_error("model.kind = {} is not a layer; did you mean {}? The layers are {}", name,
              nearest(std::string(name), names), list);
}

ESPALIER_INSTANTIATE_SAGE(float, Cpu)
ESPALIER_INSTANTIATE_SAGE(double, Cpu)
ESPALIER_INSTANTIATE_GCN(float, Cpu)
ESPALIER_INSTANTIATE_GCN(double, Cpu)

template class Network<float>;
template class Network<double>;

}  // namespace espalier
