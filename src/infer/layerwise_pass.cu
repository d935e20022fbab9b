#include "layerwise_pass.inl.hpp"

namespace espalier {

template class LayerwisePassOn<Cuda>;

}  // namespace espalier
