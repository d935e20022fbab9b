#include "schedules.inl.hpp"

namespace espalier {

ESPALIER_INSTANTIATE_PRODUCT(std::int32_t, Cuda)
ESPALIER_INSTANTIATE_PRODUCT(std::int64_t, Cuda)

}  // namespace espalier
