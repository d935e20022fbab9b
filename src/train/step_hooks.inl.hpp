// The table of the hooks of a step, in the order in which they are called. A new one is a file that
// defines make_NAME, and a line here.
#pragma once

#include "average_weights.inl.hpp"
#include "clip_norm.inl.hpp"
#include "feature_cache.inl.hpp"
#include "history_hook.inl.hpp"
#include "running_statistics.inl.hpp"
#include "trainable_embeddings.inl.hpp"

// clang-format off
//   lines      what a log says of it, or null
//   tensors    how its tensors of a checkpoint begin, which a job without it leaves there, or null
//   check      what it refuses, or null
//   plan       what it answers before a job runs (planned_hooks.hpp), or null
//   name                lines          tensors          check          plan
#define ESPALIER_STEP_HOOKS(part) \
  part(running_statistics, nullptr,       nullptr,         nullptr,       nullptr) \
  part(trainable_embeddings, nullptr,       nullptr,         nullptr,       plan_trainable_embeddings) \
  part(history,            history_lines, kHistoryTensors, check_history, plan_history) \
  part(feature_cache,      disk_line,     nullptr,         nullptr,       plan_feature_cache) \
  part(saved_bytes,        saved_line,    nullptr,         nullptr,       nullptr) \
  part(clip_norm,          nullptr,       nullptr,         nullptr,       nullptr) \
  part(average_weights,    nullptr,       "average/",      nullptr,       plan_average_weights)
// clang-format on

namespace espalier {

/// The parts that a job has.
template <class Space>
void make_step_hooks(const HooksOfJob<Space>& of, StepHooksOn<Space>& hooks) {
#define ESPALIER_MAKE(name, ...) \
  if (auto hook = make_##name(of)) hooks.push_back(std::move(hook));
  ESPALIER_STEP_HOOKS(ESPALIER_MAKE)
#undef ESPALIER_MAKE
}

}  // namespace espalier
