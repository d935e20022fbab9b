// Networks on the CPU.
#include "network.inl.hpp"

namespace espalier {

ESPALIER_INSTANTIATE_SAGE(float, Cpu)
ESPALIER_INSTANTIATE_SAGE(double, Cpu)
ESPALIER_INSTANTIATE_GCN(float, Cpu)
ESPALIER_INSTANTIATE_GCN(double, Cpu)

template class Network<float>;
template class Network<double>;

}  // namespace espalier
