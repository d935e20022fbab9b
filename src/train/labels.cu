#include "espalier/base/device_array.hpp"
#include "espalier/nn/sigmoid_cross_entropy.hpp"
#include "labels.inl.hpp"

namespace espalier {

void label_cross_entropy(const Cuda& cuda, const Matrix<float, Cuda>& logits,
                         std::span<const std::uint8_t> labels, DeviceArray<std::uint8_t>& scratch,
                         double scale, Matrix<float, Cuda>& dlogits, double* loss) {
  upload(cuda, labels, scratch);
  sigmoid_cross_entropy(cuda, logits, scratch.data(), scale, dlogits, loss);
}

std::unique_ptr<TaskOn<Cuda>> make_labels(const Cuda&, const Grid& grid, const Targets& targets,
                                          const TrainConfig&) {
  return std::make_unique<LabelsOn<Cuda>>(grid, dynamic_cast<const LabelTargets&>(targets));
}

}  // namespace espalier
