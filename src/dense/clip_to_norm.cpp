#include "espalier/dense/clip_to_norm.hpp"

namespace espalier {

void clip_to_norm(const Cpu&, double most, std::vector<Matrix<float>>& matrices,
                  Array<Cpu, double>& scratch) {
  scratch.clear();
  for (const auto& matrix : matrices) {
    const auto size = std::ssize(matrix.data);
    for (std::int64_t piece = 0; piece < pieces_of(size); ++piece)
      scratch.push_back(squares_of_piece(matrix.data.data(), size, piece));
  }
  const double factor = clip_factor(scratch.data(), std::ssize(scratch), most);
  for (auto& matrix : matrices)
    for (float& value : matrix.data) value = scaled_by(factor, value);
}

}  // namespace espalier
