#include "tensor_updates.inl.hpp"

namespace espalier {

template void clip_to_norm(const Cpu&, double, std::vector<Matrix<float>>&, Array<Cpu, double>&);
template void blend(const Cpu&, double, const Matrix<float>&, Matrix<float>&);
template void blend(const Cpu&, double, const Matrix<double>&, Matrix<double>&);

}  // namespace espalier
