// Networks on the CPU, and what is known of their layers.
#include "espalier/base/named.hpp"
#include "network.inl.hpp"

namespace espalier {

namespace {

#define ESPALIER_KIND(known, Made) known,
constexpr LayerKind kKinds[] = {ESPALIER_LAYERS(ESPALIER_KIND)};
#undef ESPALIER_KIND

}  // namespace

std::span<const LayerKind> layer_kinds() {
  return std::span(kKinds).first(std::size(kKinds) - 1);
}

const LayerKind& layer_kind_of(std::string_view name) {
  return name == kNoLayer.name ? kNoLayer : entry_named(layer_kinds(), std::string(name), "model.kind =");
}

template class Network<float>;
template class Network<double>;

}  // namespace espalier
