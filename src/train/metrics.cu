#include "espalier/train/metrics.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

constexpr int kTruePositive = 0, kFalsePositive = 1, kFalseNegative = 2;

__device__ void count(unsigned long long* counts, std::int64_t label, int kind) {
  atomicAdd(counts + 3 * label + kind, 1ull);
}

// The prediction of a row is its first largest logit. NaN is never larger.
__device__ std::int32_t prediction(const float* row, std::int64_t classes) {
  std::int32_t best = 0;
  for (std::int32_t c = 1; c < classes; ++c)
    if (row[best] < row[c]) best = c;
  return best;
}

void count_on_device(const Cuda& cuda, ConstMatrixView<float, Cuda> logits, const std::int32_t* labels,
                     unsigned long long* counts) {
  for_each(cuda, "count_classes", logits.rows, [=] __device__(std::int64_t i) {
    const auto label = labels[i];
    if (label < 0) return;
    const auto predicted = prediction(logits.row(i), logits.columns);
    if (predicted == label) return count(counts, label, kTruePositive);
    count(counts, predicted, kFalsePositive);
    count(counts, label, kFalseNegative);
  });
}

void confuse_on_device(const Cuda& cuda, ConstMatrixView<float, Cuda> logits, const std::int32_t* labels,
                       unsigned long long* counts) {
  for_each(cuda, "confusion_counts", logits.rows, [=] __device__(std::int64_t i) {
    if (labels[i] >= 0)
      atomicAdd(counts + labels[i] * logits.columns + prediction(logits.row(i), logits.columns), 1ull);
  });
}

// `size` counts, which `count_rows` adds up.
std::vector<std::int64_t> counts_of(const Cuda& cuda, const Matrix<float, Cuda>& logits,
                                    std::span<const std::int32_t> labels, std::int64_t size,
                                    decltype(count_on_device)* count_rows) {
  ESPALIER_CHECK(std::ssize(labels) == logits.rows, "{} labels for {} rows", labels.size(), logits.rows);
  DeviceArray<std::int32_t> device_labels;
  upload(cuda, labels, device_labels);
  DeviceArray<unsigned long long> counts(size);
  fill_zero(cuda, counts);
  count_rows(cuda, logits, device_labels.data(), counts.data());
  const auto sums = download(cuda, counts);
  return {sums.begin(), sums.end()};
}

}  // namespace

std::vector<std::int64_t> confusion_counts(const Cuda& cuda, const Matrix<float, Cuda>& logits,
                                           std::span<const std::int32_t> labels) {
  return counts_of(cuda, logits, labels, logits.columns * logits.columns, confuse_on_device);
}

std::vector<std::int64_t> class_counts(const Cuda& cuda, const Matrix<float, Cuda>& logits,
                                       std::span<const std::int32_t> labels) {
  return counts_of(cuda, logits, labels, 3 * logits.columns, count_on_device);
}

}  // namespace espalier
