#include "layerwise_pass.inl.hpp"

namespace espalier {

template class LayerwisePassOn<Cpu>;

}  // namespace espalier
