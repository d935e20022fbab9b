#include "step_hooks.inl.hpp"

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

// What a part is, but for what it does (step_hooks.inl.hpp).
struct StepHookKind {
  std::string (*lines)(std::span<const EpochReport>);
  const char* tensors;
  void (*check)(const Config&);
  PlannedHook (*plan)(const PlannedTraining&, double rows_kept_before);
};

constexpr StepHookKind kKinds[] = {
#define ESPALIER_KIND(name, lines, tensors, check, plan) {lines, tensors, check, plan},
    ESPALIER_STEP_HOOKS(ESPALIER_KIND)
#undef ESPALIER_KIND
};

}  // namespace

std::string lines_of_parts(std::span<const EpochReport> epochs) {
  std::string text;
  for (const auto& kind : kKinds)
    if (kind.lines != nullptr) text += kind.lines(epochs);
  return text;
}

void check_parts(const Config& config) {
  for (const auto& kind : kKinds)
    if (kind.check != nullptr) kind.check(config);
}

std::vector<PlannedHook> planned_hooks(const PlannedTraining& training) {
  std::vector<PlannedHook> parts;
  double rows_kept = 0;
  for (const auto& kind : kKinds) {
    if (kind.plan == nullptr) continue;
    parts.push_back(kind.plan(training, rows_kept));
    rows_kept += parts.back().rows_kept;
  }
  return parts;
}

const StateTensor& SavedTensors::take(const std::string& name, std::int64_t rows, std::int64_t columns,
                                      const std::string& former_name) {
  auto found = std::ranges::find(tensors_, name, &StateTensor::name);
  if (found == tensors_.end() && !former_name.empty())
    found = std::ranges::find(tensors_, former_name, &StateTensor::name);
  if (found == tensors_.end()) input_error("{} has no {}; it is of another kind of network", file_, name);
  mark(found->name);
  if (found->rows != rows || found->columns != columns)
    input_error("{} is {} x {} in {} and {} x {} in this network; it is of another network or graph", name,
                found->rows, found->columns, file_, rows, columns);
  return *found;
}

bool SavedTensors::has(const std::string& name) const {
  return std::ranges::find(tensors_, name, &StateTensor::name) != tensors_.end();
}

void SavedTensors::check_all_taken() const {
  const auto may_stay = [](const std::string& tensor) {
    return std::ranges::any_of(kKinds, [&](const StepHookKind& kind) {
      return kind.tensors != nullptr && tensor.starts_with(kind.tensors);
    });
  };
  for (const auto& tensor : tensors_)
    if (!taken_.contains(tensor.name) && !may_stay(tensor.name))
      input_error("{} has {}, which no part of this training or network takes; it is of another kind", file_,
                  tensor.name);
}

}  // namespace espalier
