#include "tasks.inl.hpp"

namespace espalier {

ESPALIER_INSTANTIATE_TASKS(Cuda)

}  // namespace espalier
