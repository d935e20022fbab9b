#include "node_wise.inl.hpp"

namespace espalier {

ESPALIER_INSTANTIATE_NODE_WISE(std::int32_t, Cuda)
ESPALIER_INSTANTIATE_NODE_WISE(std::int64_t, Cuda)

}  // namespace espalier
