#include "samplers.inl.hpp"
#include "subgraph.hpp"

namespace espalier {

ESPALIER_INSTANTIATE_SAMPLERS(std::int32_t, Cuda)
ESPALIER_INSTANTIATE_SAMPLERS(std::int64_t, Cuda)
ESPALIER_INSTANTIATE_SAMPLER(subgraph, Cuda)

}  // namespace espalier
