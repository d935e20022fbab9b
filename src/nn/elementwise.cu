#include "elementwise.both.cu"

#include "device_row_sum.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

ESPALIER_INSTANTIATE_ELEMENTWISE(float, Cuda)

}  // namespace espalier
