#include "samplers.inl.hpp"

namespace espalier {

ESPALIER_INSTANTIATE_SAMPLERS(std::int32_t, Cuda)
ESPALIER_INSTANTIATE_SAMPLERS(std::int64_t, Cuda)

}  // namespace espalier
