#include "tensor_updates.inl.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

template void clip_to_norm(const Cuda&, double, std::vector<Matrix<float, Cuda>>&, Array<Cuda, double>&);
template void blend(const Cuda&, double, const Matrix<float, Cuda>&, Matrix<float, Cuda>&);
template void weigh(const Cuda&, double, const Matrix<float, Cuda>&, Matrix<float, Cuda>&,
                    Matrix<float, Cuda>&, std::int64_t);
template void blend_mean(const Cuda&, double, const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                         std::int64_t, Matrix<float, Cuda>&);

}  // namespace espalier
