#include "espalier/dense/blend.hpp"

#include "espalier/base/error.hpp"

namespace espalier {

template <class T>
void blend(const Cpu&, double share, const Matrix<T>& from, Matrix<T>& to) {
  ESPALIER_CHECK(from.data.size() == to.data.size(), "{} elements and {}", from.data.size(), to.data.size());
  for (std::size_t k = 0; k < to.data.size(); ++k) to.data[k] = blended(share, from.data[k], to.data[k]);
}

template void blend(const Cpu&, double, const Matrix<float>&, Matrix<float>&);
template void blend(const Cpu&, double, const Matrix<double>&, Matrix<double>&);

}  // namespace espalier
