// What `sample` and `train` set up alike on GPUs. Empty in a program without CUDA.
#pragma once

#include "job.hpp"

#ifdef ESPALIER_WITH_CUDA

#include "espalier/base/device_array.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/train/gradient_reduction.hpp"

namespace espalier {

/// A copy of the matrix where kernels read it: in the memory of the GPU, or of the host when it is
/// too large.
template <class Index>
DistCsr<Index, Cuda> place_matrix(const Job& job, const DeviceGrid& grid, const DistCsr<Index>& a) {
  const bool fits = topology_on_device(job);
  if (!fits)
    log::info(
        "the graph takes more than half of the GPU beside the rest: kernels read it in the memory of the "
        "host");
  return to_device(*job.device.gpu, grid, a, fits ? Placement::kDevice : Placement::kHost);
}

/// Tables of features where graph.features_on says; those of the host go.
inline std::vector<RowStoreOn<Cuda>> place_features(const Job& job, const DeviceGrid& grid,
                                                    std::vector<RowStore> on_host) {
  const Cuda& gpu = *job.device.gpu;
  const auto tables = input_tables(job.graph, job.config);
  std::vector<RowStoreOn<Cuda>> placed;
  for (std::size_t k = 0; k < on_host.size(); ++k)
    placed.push_back(to_device(gpu, grid, on_host[k],
                               job.config.graph.features_on_host() ? Placement::kHost : Placement::kDevice,
                               gpu.precision() == Precision::kBf16 && tables[k].pairs == 0));
  return placed;
}

/// Features of edges, where those of vertices are; null stays null.
inline std::shared_ptr<const EdgeStoreOn<Cuda>> place_edges(const Job& job, const DeviceGrid& grid,
                                                            const std::shared_ptr<const EdgeStore>& on_host) {
  if (!on_host) return nullptr;
  return std::make_shared<const EdgeStoreOn<Cuda>>(
      to_device(*job.device.gpu, grid, *on_host, job.graph.schema,
                job.config.graph.features_on_host() ? Placement::kHost : Placement::kDevice));
}

}  // namespace espalier

#endif
