#include "espalier/history/history_policy.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

constexpr int kScoredOfBlock = kBlockThreads / kScoreLanes;

// Eight lanes have a row; those behind the last one take part in the shuffles.
__global__ void __launch_bounds__(kBlockThreads)
    score_rows_kernel(KnownRows known, MatrixView<const float, Cuda> dh, HistoryCandidate* candidates) {
  const auto row = static_cast<std::int64_t>(blockIdx.x) * kScoredOfBlock + threadIdx.x / kScoreLanes;
  const int lane = static_cast<int>(threadIdx.x) % kScoreLanes;
  double sum = row < dh.rows ? partial_score(dh.row(row), dh.columns, lane) : 0;
  for (int distance = kScoreLanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  if (row >= dh.rows || lane != 0) return;
  candidates[row] = known.candidate(row, score_bits(sum));
}

}  // namespace

void score_rows(const Cuda& cuda, const PrunedLayer& layer, ConstMatrixView<float, Cuda> dh,
                DeviceArray<HistoryCandidate>& candidates, const std::uint8_t* recomputed) {
  ESPALIER_CHECK(dh.rows == layer.needed(), "{} gradients for {} needed rows", dh.rows, layer.needed());
  candidates.resize(static_cast<std::size_t>(dh.rows));
  launch(cuda, "score_rows", score_rows_kernel, dim3(blocks_for(dh.rows, kScoredOfBlock)),
         dim3(kBlockThreads), KnownRows(layer, recomputed), dh, candidates.data());
}

}  // namespace espalier
