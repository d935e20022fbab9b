// Where a job computes: its matrix and what it reads, in memory of the host or brought to GPUs.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "espalier/job/job.hpp"
#include "espalier/nn/network.hpp"

namespace espalier {

/// Calls use(space), a generic function, with what the job computes on.
template <class Use>
auto where_it_computes(const Job& job, Use use) {
#ifdef ESPALIER_WITH_CUDA
  if (job.device.gpu) return use(*job.device.gpu);
#endif
  return use(job.cpu);
}

/// The matrix of a job where kernels read it, over the grid of that space; it stays where it is.
template <class Index, class Space>
struct PlacedMatrix {
  PlacedMatrix(const Job& job, DistCsr<Index> a) : grid(*job.grid), matrix(std::move(a)) {}
  PlacedMatrix(const PlacedMatrix&) = delete;
  PlacedMatrix& operator=(const PlacedMatrix&) = delete;
  void say_transport() const {}

  const Grid& grid;
  DistCsr<Index> matrix;
};

/// A network whose weights are where kernels read them; the one on the host must outlive it.
template <class Space>
struct PlacedNetwork {
  PlacedNetwork(const Space&, const Network<float>& on_host) : network(on_host) {}
  PlacedNetwork(const PlacedNetwork&) = delete;
  PlacedNetwork& operator=(const PlacedNetwork&) = delete;

  const Network<float>& network;
};

/// Rows of input where kernels read them; what is of the host alone goes. `embeddings`: or null.
inline InputStores place_input(const Job&, const Grid&, InputFeatures features,
                               std::shared_ptr<const EdgeStore> edges,
                               std::unique_ptr<EmbeddingStore> embeddings) {
  return InputStores(std::move(features.stores), std::move(embeddings), std::move(edges));
}

}  // namespace espalier

#ifdef ESPALIER_WITH_CUDA

#include "espalier/base/device_array.hpp"
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
    job.tell(
        log::Level::kInfo,
        "the graph takes more than half of the GPU beside the rest: kernels read it in the memory of the "
        "host");
  return to_device(*job.device.gpu, grid, a, fits ? Placement::kDevice : Placement::kHost);
}

/// Tables of features where graph.features_on says; those of the host go.
inline std::vector<RowStoreOn<Cuda>> place_features(const Job& job, const DeviceGrid& grid,
                                                    std::vector<RowStore> on_host) {
  const Cuda& gpu = *job.device.gpu;
  std::vector<RowStoreOn<Cuda>> placed;
  for (std::size_t k = 0; k < on_host.size(); ++k)
    placed.push_back(to_device(gpu, grid, on_host[k],
                               job.config.graph.features_on_host() ? Placement::kHost : Placement::kDevice,
                               gpu.precision() == Precision::kBf16));
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

template <class Index>
struct PlacedMatrix<Index, Cuda> {
  PlacedMatrix(const Job& of_job, DistCsr<Index> a)
      : job(of_job),
        host(std::move(a)),
        grid(*job.device.gpu, *job.grid),
        beside(job.sampling_grid
                   ? std::make_unique<DeviceGrid>(*job.device.gpu, *job.sampling_grid, Transport::kHost)
                   : nullptr),
        matrix(place_matrix(job, beside ? *beside : grid, host)) {}
  PlacedMatrix(const PlacedMatrix&) = delete;
  PlacedMatrix& operator=(const PlacedMatrix&) = delete;
  void say_transport() const {
    if (grid.host().ranks() > 1)
      job.tell(log::Level::kInfo, "GPUs exchange by {}{}", grid.transport_in_words(),
               beside && matrix.parts() > 1 ? fmt::format(", samples by {}", beside->transport()) : "");
  }

  const Job& job;
  DistCsr<Index> host;
  DeviceGrid grid;
  std::unique_ptr<DeviceGrid> beside;  ///< of the thread that samples ahead
  DistCsr<Index, Cuda> matrix;
};

template <>
struct PlacedNetwork<Cuda> {
  PlacedNetwork(const Cuda& gpu, const Network<float>& on_host) : network(gpu, on_host.shape(), 0) {
    copy_weights(gpu, on_host, network);
  }
  PlacedNetwork(const PlacedNetwork&) = delete;
  PlacedNetwork& operator=(const PlacedNetwork&) = delete;

  Network<float, Cuda> network;
};

inline InputStoresOn<Cuda> place_input(const Job& job, const DeviceGrid& grid, InputFeatures features,
                                       std::shared_ptr<const EdgeStore> edges,
                                       std::unique_ptr<EmbeddingStoreOn<Cuda>> embeddings) {
  auto placed = place_features(job, grid, std::move(features.stores));
  auto placed_edges = place_edges(job, grid, edges);
  return InputStoresOn<Cuda>(std::move(placed), std::move(embeddings), std::move(placed_edges));
}

}  // namespace espalier

#endif
