#include "epoch_windows.hpp"

namespace espalier {

template class EpochSamplerOn<Cuda>;

}  // namespace espalier
