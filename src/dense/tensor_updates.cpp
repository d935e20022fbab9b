#include "tensor_updates.inl.hpp"

namespace espalier {

template void clip_to_norm(const Cpu&, double, std::vector<Matrix<float>>&, Array<Cpu, double>&);
template void blend(const Cpu&, double, const Matrix<float>&, Matrix<float>&);
template void blend(const Cpu&, double, const Matrix<double>&, Matrix<double>&);
template void weigh(const Cpu&, double, const Matrix<float>&, Matrix<float>&, Matrix<float>&, std::int64_t);
template void weigh(const Cpu&, double, const Matrix<double>&, Matrix<double>&, Matrix<double>&,
                    std::int64_t);
template void blend_mean(const Cpu&, double, const Matrix<float>&, const Matrix<float>&, std::int64_t,
                         Matrix<float>&);
template void blend_mean(const Cpu&, double, const Matrix<double>&, const Matrix<double>&, std::int64_t,
                         Matrix<double>&);

}  // namespace espalier
