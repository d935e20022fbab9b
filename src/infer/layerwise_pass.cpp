#include "layerwise_pass.inl.hpp"

namespace espalier {

void copy_rows_to(const Cpu&, const Matrix<float>& rows, float* to) {
  std::ranges::copy(rows.data, to);
}

void gather_block(const Communicator& group, const Matrix<float>& mine, std::span<const std::int64_t> counts,
                  Matrix<float>& block, const std::string& label) {
  group.all_gather_v(std::span<const float>(mine.data), counts, block.data, label);
}

template class LayerwisePassOn<Cpu>;

}  // namespace espalier
