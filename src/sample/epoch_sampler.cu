#include "epoch_sampler.inl.hpp"

namespace espalier {

template class EpochSamplerOn<Cuda>;

}  // namespace espalier
