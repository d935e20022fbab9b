#include "schedules.inl.hpp"

namespace espalier {

ESPALIER_INSTANTIATE_PRODUCT(std::int32_t, Cpu)
ESPALIER_INSTANTIATE_PRODUCT(std::int64_t, Cpu)

}  // namespace espalier
