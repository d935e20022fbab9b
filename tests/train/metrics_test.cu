// ranks: 1
// Law: counts of classes, and of labels by predictions, are the CPU's.
#include "espalier/train/metrics.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class MetricsCuda : public CudaTest {};

TEST_F(MetricsCuda, CountsAreTheCpus) {
  std::mt19937_64 random(test_seed(2));
  for (const std::int64_t rows : {0, 1, 300})
    for (const std::int64_t classes : {1, 2, 47}) {
      auto logits = random_matrix<float>(rows, classes, random);
      for (float& z : logits.data) z = std::round(4 * z);  // ties
      std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
      for (auto& label : labels)
        label = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(classes + 1)) - 1;
      const auto on_gpu = to_device(gpu(), logits);
      EXPECT_EQ(class_counts(gpu(), on_gpu, labels), class_counts(Cpu{1}, logits, labels));
      EXPECT_EQ(confusion_counts(gpu(), on_gpu, labels), confusion_counts(Cpu{1}, logits, labels));
    }
}

}  // namespace
}  // namespace espalier
