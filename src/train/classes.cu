#include "classes.inl.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/nn/softmax_cross_entropy.hpp"
#include "espalier/nn/weighted_cross_entropy.hpp"

namespace espalier {

void cross_entropy(const Cuda& cuda, const Matrix<float, Cuda>& logits, std::span<const std::int32_t> labels,
                   DeviceArray<std::int32_t>& scratch, double scale, Matrix<float, Cuda>& dlogits,
                   double* loss) {
  upload(cuda, labels, scratch);
  softmax_cross_entropy(cuda, logits, scratch.data(), scale, dlogits, loss);
}

void weighted_cross_entropy(const Cuda& cuda, const Matrix<float, Cuda>& logits,
                            std::span<const std::int32_t> labels, DeviceArray<std::int32_t>& scratch,
                            const DeviceArray<double>& weights, double smoothing, double scale,
                            Matrix<float, Cuda>& dlogits, double* loss) {
  upload(cuda, labels, scratch);
  weighted_cross_entropy(cuda, logits, scratch.data(), weights.data(), smoothing, scale, dlogits, loss);
}

std::unique_ptr<TaskOn<Cuda>> make_classes(const Cuda& cuda, const Grid& grid, const Targets& targets,
                                           const TrainConfig& train) {
  return std::make_unique<ClassesOn<Cuda>>(cuda, grid, dynamic_cast<const ClassTargets&>(targets), train);
}

}  // namespace espalier
