#include "espalier/train/optimizer.hpp"

#include "optimizer.inl.hpp"

namespace espalier {
namespace {

template <class T>
void update(const Cpu& cpu, const TensorUpdate<T, SgdStep<T>>& tensor) {
  const auto step = tensor.step;
  const std::int64_t size = tensor.size;
  T *w = tensor.weight, *v = tensor.first;
  const T* g = tensor.gradient;
#pragma omp parallel for simd num_threads(cpu.threads) schedule(static) if (parallel : size > 65536)
  for (std::int64_t e = 0; e < size; ++e) update_element(step, g[e], v[e], w[e]);
}

template <class T>
void update(const Cpu& cpu, const TensorUpdate<T, AdamStep<T>>& tensor) {
  const auto step = tensor.step;
  const std::int64_t size = tensor.size;
  T *w = tensor.weight, *m = tensor.first, *v = tensor.second;
  const T* g = tensor.gradient;
#pragma omp parallel for simd num_threads(cpu.threads) schedule(static) if (parallel : size > 65536)
  for (std::int64_t e = 0; e < size; ++e) update_element(step, g[e], m[e], v[e], w[e]);
}

}  // namespace

template <class T, class Step>
void update_tensors(const Cpu& cpu, std::span<const TensorUpdate<T, Step>> updates) {
  for (const auto& tensor : updates) update(cpu, tensor);
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace espalier
