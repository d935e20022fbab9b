// The table of the parts of a step, in the order in which they are called. A new one is a file that
// defines make_NAME, and a line here.
#pragma once

#include "average_weights.inl.hpp"
#include "clip_norm.inl.hpp"
#include "history_part.inl.hpp"
#include "history_report.hpp"
#include "kept_rows.hpp"
#include "kept_rows.inl.hpp"
#include "learnt_rows.inl.hpp"
#include "running_statistics.inl.hpp"

// clang-format off
//   name                what a log says of it,   how its tensors of a checkpoint begin, which a job
//                       or null                  without it leaves there, or null
#define ESPALIER_STEP_PARTS(part) \
  part(running_statistics, nullptr,               nullptr) \
  part(learnt_rows,        nullptr,               nullptr) \
  part(history,            history_lines,         kHistoryTensors) \
  part(kept_rows,          nullptr,               nullptr) \
  part(saved_bytes,        saved_line,            nullptr) \
  part(clip_norm,          nullptr,               nullptr) \
  part(average_weights,    nullptr,               "average/")
// clang-format on

namespace espalier {

/// The parts that a job has. `job` and `network` must outlive them, and they stay where they are.
template <class Space>
void make_step_parts(const Space& space, const TrainingJobOn<Space>& job, Network<float, Space>& network,
                     StepPartsOn<Space>& parts) {
  const PartsOfJob<Space> of = {space, job, network, parts};
#define ESPALIER_MAKE(name, ...) \
  if (auto part = make_##name(of)) parts.push_back(std::move(part));
  ESPALIER_STEP_PARTS(ESPALIER_MAKE)
#undef ESPALIER_MAKE
}

}  // namespace espalier
