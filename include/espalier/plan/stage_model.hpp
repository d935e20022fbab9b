// What each stage of an epoch moves between ranks, and how long it takes: the alpha-beta-gamma
// model of a plan.
//
//     seconds(stage) = alpha messages + bytes / beta + sum over its kinds of work of amount / rate
//
// Messages and bytes are those of the cost functions that the stages themselves book
// (product/schedule.hpp, feature/fetch_model.hpp, comm/traffic.hpp), for what was counted in the
// epoch's own samples. alpha, beta and the rates (gamma) are a machine file's (machine.hpp). Stages
// follow one another: run.overlap is not modelled.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "espalier/plan/machine.hpp"
#include "espalier/plan/planned_job.hpp"
#include "espalier/train/report.hpp"

namespace espalier {

/// Received by each rank in one epoch, by stage, and by a step of one ("fetch/foreseen"), which is
/// in the stage's, too; one with an evaluation at its end.
using StageCosts = std::map<std::string, std::vector<Cost>>;
StageCosts stage_costs(const PlannedJob& planned);

/// Of the stage `sample` alone, with one schedule for all layers.
std::vector<Cost> sample_costs(const PlannedJob& planned, const std::vector<Schedule>& schedules);

/// Sums and the largest over ranks.
StageVolume volume_of(const std::vector<Cost>& ranks);

/// Seconds of the busiest rank by stage, and "total".
std::map<std::string, double> stage_seconds(const PlannedJob& planned, const StageCosts& costs,
                                            const Machine& machine);

}  // namespace espalier
