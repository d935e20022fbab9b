// What each stage of an epoch moves between ranks, and how long it takes: the alpha-beta-gamma
// model of a plan.
//
//     seconds(stage) = alpha messages + bytes / beta + sum over its kinds of work of amount / rate
//
// Messages and bytes are those of the cost functions that the stages themselves book
// (product/schedule.hpp, feature/fetch_model.hpp, comm/volumes.hpp), for what was counted in the
// epoch's own samples. alpha, beta and the rates (gamma) are a machine file's (machine.hpp). Stages
// follow one another: run.overlap is not modelled.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "espalier/infer/evaluation_work.hpp"
#include "espalier/plan/machine.hpp"
#include "espalier/plan/memory.hpp"
#include "espalier/sample/counted_work.hpp"
#include "espalier/train/report.hpp"

namespace espalier {

/// What the stages are computed from. `evaluations[l]`: of layer l + 1; empty without training.
/// `judged`: how many vertices of each split each rank judges.
struct StageInput {
  const JobSize& job;
  const PlannedEpoch& epoch;
  const EpochWork& work;
  const std::vector<EvaluationWork>& evaluations;
  const std::array<std::vector<double>, 3>& judged;
};

/// Received by each rank in one epoch, by stage, and by a step of one ("fetch/foreseen"), which is
/// in the stage's, too; one with an evaluation at its end.
using StageCosts = std::map<std::string, std::vector<Cost>>;
StageCosts stage_costs(const StageInput& input);

/// Of the stage `sample` alone, with one schedule for all layers.
std::vector<Cost> sample_costs(const StageInput& input, const std::vector<Schedule>& schedules);

/// Sums and the largest over ranks.
StageVolume volume_of(const std::vector<Cost>& ranks);

/// Seconds of the busiest rank by stage, and "total".
std::map<std::string, double> stage_seconds(const StageInput& input, const StageCosts& costs,
                                            const Machine& machine);

}  // namespace espalier
