#include "evaluator.inl.hpp"

namespace espalier {

void copy_rows_to(const Cpu&, const Matrix<float>& rows, float* to) {
  std::ranges::copy(rows.data, to);
}

void gather_block(const Communicator& group, const Matrix<float>& mine, std::span<const std::int64_t> counts,
                  Matrix<float>& block) {
  group.all_gather_v(std::span<const float>(mine.data), counts, block.data, "evaluate");
}

template class EvaluatorOn<Cpu>;

}  // namespace espalier
