#define ESPALIER_VECTOR_BYTES 16
#define ESPALIER_OTHER_NAME espalier_by_16_bytes
#include "dense/kernels_by_other_width.inl.hpp"

std::map<std::string, std::uint64_t> digests_by_16_bytes() {
  return ESPALIER_OTHER_NAME::digests_of_leaves();
}
