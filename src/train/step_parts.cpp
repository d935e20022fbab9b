#include "step_parts.inl.hpp"

#include "espalier/base/error.hpp"

namespace espalier {

std::string lines_of_parts(std::span<const EpochReport> epochs) {
  using Lines = std::string (*)(std::span<const EpochReport>);
  std::string text;
#define ESPALIER_SAY(name, lines, prefix) \
  if (const Lines say = lines; say != nullptr) text += say(epochs);
  ESPALIER_STEP_PARTS(ESPALIER_SAY)
#undef ESPALIER_SAY
  return text;
}

const StateTensor& SavedTensors::take(const std::string& name, std::int64_t rows, std::int64_t columns,
                                      const std::string& former_name) {
  auto found = std::ranges::find(tensors_, name, &StateTensor::name);
  if (found == tensors_.end() && !former_name.empty())
    found = std::ranges::find(tensors_, former_name, &StateTensor::name);
  if (found == tensors_.end())
    input_error("the checkpoint has no {}; it is of another kind of network", name);
  mark(found->name);
  if (found->rows != rows || found->columns != columns)
    input_error("{} is {} x {} in the checkpoint and {} x {} in this network", name, found->rows,
                found->columns, rows, columns);
  return *found;
}

bool SavedTensors::has(const std::string& name) const {
  return std::ranges::find(tensors_, name, &StateTensor::name) != tensors_.end();
}

void SavedTensors::check_all_taken() const {
  const auto may_stay = [](const std::string& tensor) {
#define ESPALIER_MAY_STAY(name, lines, prefix) \
  if (const char* begin = prefix; begin != nullptr && tensor.starts_with(begin)) return true;
    ESPALIER_STEP_PARTS(ESPALIER_MAY_STAY)
#undef ESPALIER_MAY_STAY
    return false;
  };
  for (const auto& tensor : tensors_)
    if (!taken_.contains(tensor.name) && !may_stay(tensor.name))
      input_error("the checkpoint has {}, which no part of this training takes; it is of another kind of job",
                  tensor.name);
}

}  // namespace espalier
