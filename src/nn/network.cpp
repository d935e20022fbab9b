// Networks on the CPU.
#include "network_passes.hpp"

namespace espalier {

template class Network<float>;
template class Network<double>;

}  // namespace espalier
