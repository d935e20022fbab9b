#include "espalier/train/optimizer.hpp"

#include <algorithm>

#include "espalier/base/elementary.hpp"
#include "optimizer.inl.hpp"

namespace espalier {

template <class T, class Step>
void update_tensors(const Cpu& cpu, std::span<const TensorUpdate<T, Step>> updates) {
  for (const auto& tensor : updates) {
    const auto of = tensor;
    const bool many = tensor.size > 65536;
#pragma omp parallel for simd num_threads(cpu.threads) schedule(static) firstprivate(of) if (parallel : many)
    for (std::int64_t e = 0; e < of.size; ++e) update(of, e);
  }
}

template class Optimizer<float>;
template class Optimizer<double>;

double rate_of_epoch(const TrainConfig& train, double base, std::int64_t epoch) {
  if (epoch <= train.lr_warmup)
    return base * static_cast<double>(epoch) / static_cast<double>(train.lr_warmup);
  const auto t = epoch - 1 - train.lr_warmup;
  if (train.lr_schedule == "constant") return base;
  if (train.lr_schedule == "step") return base * power_of(train.lr_decay, t / train.lr_step);
  const auto length = static_cast<double>(std::max<std::int64_t>(train.epochs - train.lr_warmup, 1));
  return base * (1 + cosine_of_turn(std::min(static_cast<double>(t) / length, 1.0))) / 2;
}

}  // namespace espalier
