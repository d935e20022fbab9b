#include "elementwise.both.cu"

#include "row_sum.hpp"

namespace espalier {

ESPALIER_INSTANTIATE_ELEMENTWISE(float, Cpu)
ESPALIER_INSTANTIATE_ELEMENTWISE(double, Cpu)

}  // namespace espalier
