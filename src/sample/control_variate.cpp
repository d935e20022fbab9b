#include "espalier/sample/control_variate.hpp"

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

float value_at(const BlockView<>& block, std::int64_t entry) {
  return block.has_values() ? block.values[entry] : 1.0f;
}

// Columns are positions until all rows are there; then they count those that came.
void number_columns(std::int64_t positions, ControlVariate& variate) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(positions), 0);
  for (const auto position : variate.block.indices) numbers[position] = 1;
  for (std::int64_t position = 0; position < positions; ++position) {
    if (numbers[position] == 0) continue;
    numbers[position] = static_cast<std::int32_t>(variate.positions.size());
    variate.positions.push_back(position);
  }
  for (auto& column : variate.block.indices) column = numbers[column];
  variate.block.columns = std::ssize(variate.positions);
}

}  // namespace

ControlVariate control_variate(const BlockView<>& sampled, std::span<const std::int64_t> sources,
                               const BlockView<>& whole, std::span<const std::int64_t> vertices,
                               std::span<const std::uint8_t> known) {
  ESPALIER_CHECK(whole.rows >= sampled.rows && std::ssize(known) == std::ssize(vertices),
                 "{} whole rows of {}, {} flags of {} vertices", whole.rows, sampled.rows, known.size(),
                 vertices.size());
  ControlVariate variate;
  auto& block = variate.block;
  block.rows = sampled.rows;
  for (std::int64_t row = 0; row < sampled.rows; ++row) {
    auto picked = sampled.row_begin(row);
    for (auto k = whole.row_begin(row); k < whole.row_end(row); ++k) {
      const auto position = whole.indices[k];
      const bool is_picked =
          picked < sampled.row_end(row) && sources[sampled.indices[picked]] == vertices[position];
      const float of_sample = is_picked ? value_at(sampled, picked++) : 0.0f;
      if (known[position] == 0) continue;
      ++variate.known;
      const float value = value_at(whole, k) - of_sample;
      if (value == 0) continue;
      block.indices.push_back(position);
      block.values.push_back(value);
    }
    ESPALIER_CHECK(picked == sampled.row_end(row), "row {}: {} picks that its whole row has not", row,
                   sampled.row_end(row) - picked);
    variate.entries += whole.row_size(row);
    block.indptr.push_back(std::ssize(block.indices));
  }
  number_columns(std::ssize(vertices), variate);
  return variate;
}

}  // namespace espalier
