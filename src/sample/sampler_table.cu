// The samplers of the table (samplers.inl.hpp) and what they have in common, instantiated for GPUs.
#include "samplers.inl.hpp"

#include "epoch_sampler.inl.hpp"
#include "node_wise.inl.hpp"
#include "subgraph.hpp"

namespace espalier {

ESPALIER_INSTANTIATE_SAMPLERS(std::int32_t, Cuda)
ESPALIER_INSTANTIATE_SAMPLERS(std::int64_t, Cuda)
ESPALIER_INSTANTIATE_SAMPLER(subgraph, Cuda)

ESPALIER_INSTANTIATE_NODE_WISE(std::int32_t, Cuda)
ESPALIER_INSTANTIATE_NODE_WISE(std::int64_t, Cuda)

template class EpochSamplerOn<Cuda>;

}  // namespace espalier
