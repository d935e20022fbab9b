// What a SmallJob is, on a GPU.
#pragma once

#include <memory>
#include <optional>

#include "espalier/base/config.hpp"
#include "train/small_job.hpp"

namespace espalier {

struct SmallGpuJob {
  SmallJob host;
  DeviceGrid grid;
  std::optional<DeviceGrid> beside;  // of a sampling grid
  DistCsr<std::int32_t, Cuda> a;
  InputStoresOn<Cuda> input;
  std::unique_ptr<SamplerOn<Cuda>> sampler, whole_rows;
  std::unique_ptr<TaskOn<Cuda>> task;
  EvaluatorOn<Cuda> evaluator;

  SmallGpuJob(const Cuda& gpu, const Grid& grid_, const SmallProblem& problem, const Config& config,
              Topology topology, Placement placement, const Grid* sampling_grid = nullptr)
      : host(grid_, problem, config.model.kind, config.sampler.fanout, 1 << 20, topology, sampling_grid,
             config.train),
        grid(gpu, grid_),
        beside(grid_beside(gpu, sampling_grid)),
        a(to_device(gpu, beside ? *beside : grid, host.a, placement)),
        input(to_device(gpu, grid, host.input.features()[0], placement)),
        sampler(make_sampler(gpu, config.sampler.kind, a,
                             small_shape(config.model.kind, config.sampler.fanout, "sample"))),
        whole_rows(make_sampler(gpu, "graphsage", a, small_shape(config.model.kind, {-1}, "evaluate"))),
        task(make_task(gpu, grid_, *host.targets, config.train)),
        evaluator(grid, *whole_rows, input, input.table(0).ownership(), *task, EntriesOfRows(a), 4096) {}
  SmallGpuJob(const SmallGpuJob&) = delete;

 private:
  static std::optional<DeviceGrid> grid_beside(const Cuda& gpu, const Grid* sampling_grid) {
    if (sampling_grid == nullptr) return {};
    return std::make_optional<DeviceGrid>(gpu, *sampling_grid, Transport::kHost);
  }
};

}  // namespace espalier
