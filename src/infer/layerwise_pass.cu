#include "espalier/base/device_array.hpp"
#include "layerwise_pass.inl.hpp"

namespace espalier {

void copy_rows_to(const Cuda& cuda, const Matrix<float, Cuda>& rows, float* to) {
  copy_bytes_on_device(cuda, rows.data.data(), to, rows.data.size() * sizeof(float));
}

void gather_block(const DeviceCommunicator& group, const Matrix<float, Cuda>& mine,
                  std::span<const std::int64_t> counts, Matrix<float, Cuda>& block,
                  const std::string& label) {
  group.all_gather_v(mine.data.data(), counts, block.data.data(), label);
}

template class LayerwisePassOn<Cuda>;

}  // namespace espalier
