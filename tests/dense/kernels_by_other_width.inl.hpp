// The kernels once more, in a namespace of their own, for registers of ESPALIER_VECTOR_BYTES. What
// they need of the library is the library's.
#include <cstddef>
#include <string_view>

#define espalier ESPALIER_OTHER_NAME
#include "../../src/dense/bf16_amx.cpp"
#include "../../src/dense/bf16_portable.cpp"
#include "../../src/dense/gemm.cpp"
#include "../../src/dense/gemm_bf16.cpp"
#undef ESPALIER_INSTANTIATE
#include "../../src/dense/gemm_tn.cpp"
#include "../../src/dense/relation_sums.cpp"
#include "../../src/dense/spmm.cpp"
#include "../../src/nn/dropout.cpp"
#undef ESPALIER_INSTANTIATE
#include "../../src/nn/link_kinds.cpp"
#include "../../src/nn/link_losses.cpp"
#include "../../src/nn/link_scores.cpp"
#include "../../src/nn/row_sum.both.cu"
#include "../../src/nn/segment_products.cpp"
#undef ESPALIER_INSTANTIATE
#include "../../src/sparse/relation_segments.cpp"
#include "../../src/sparse/transpose.cpp"
#include "dense/kernels_by_width.inl.hpp"
#undef espalier

namespace espalier {
void* allocate_buffer(std::size_t bytes);
void free_buffer(void* memory, std::size_t bytes) noexcept;
bool is_set(const char* variable);
[[noreturn]] void fail_check(const char* file, int line, const char* condition, std::string_view what);
}  // namespace espalier

namespace ESPALIER_OTHER_NAME {
void* allocate_buffer(std::size_t bytes) {
  return ::espalier::allocate_buffer(bytes);
}
void free_buffer(void* memory, std::size_t bytes) noexcept {
  ::espalier::free_buffer(memory, bytes);
}
bool is_set(const char* variable) {
  return ::espalier::is_set(variable);
}
void fail_check(const char* file, int line, const char* condition, std::string_view what) {
  ::espalier::fail_check(file, line, condition, what);
}
}  // namespace ESPALIER_OTHER_NAME
