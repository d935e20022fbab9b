// FastGCN on a GPU (fastgcn.cpp says what is drawn). The picks do not depend on frontiers: the host draws those of all
// batches and layers of a call, and each layer's are copied.
#include "fastgcn.hpp"

#include <omp.h>

#include "device_layer_wise.hpp"

namespace espalier {

namespace {

template <class Index>
class DeviceFastGcn final : public DeviceLayerDistribution<Index> {
 public:
  DeviceFastGcn(const DeviceDistCsr<Index>& m, const SamplerShape& shape) : draws_(*m.host, shape) {}

  void begin(const Cuda&, std::span<const RandomStream> streams,
             std::span<const std::int64_t> fanout) override {
    draws_.begin({omp_get_max_threads()}, streams, fanout);
  }

  DeviceLayerPicks<Index> pick(const Cuda& cuda, const LayerInput& input) override {
    DeviceLayerPicks<Index> picks;
    Buffer<Index> columns;
    Buffer<double> factors;
    for (std::int64_t b = 0; b < input.frontier.batches(); ++b) {
      const auto of_batch = draws_.picks(static_cast<std::size_t>(b),
                                         static_cast<std::int64_t>(input.stream.layer), input.fanout);
      columns.insert(columns.end(), of_batch.columns.begin(), of_batch.columns.end());
      factors.insert(factors.end(), of_batch.factors.begin(), of_batch.factors.end());
      picks.offsets.push_back(std::ssize(columns));
    }
    upload(cuda, std::span<const std::int64_t>(picks.offsets), picks.device_offsets);
    picks.columns = upload(cuda, columns);
    picks.factors = upload(cuda, factors);
    return picks;
  }

  bool normalizes_rows() const override { return false; }
  bool uses_sums() const override { return false; }

 private:
  FastGcnDraws<Index> draws_;
};

}  // namespace

template <class Index>
std::unique_ptr<DeviceSampler> make_fastgcn(const Cuda&, const DeviceDistCsr<Index>& m,
                                            const SamplerShape& shape) {
  return make_layer_wise<Index>(m, shape, std::make_unique<DeviceFastGcn<Index>>(m, shape));
}

#define ESPALIER_INSTANTIATE(Index)                                                              \
  template std::unique_ptr<DeviceSampler> make_fastgcn(const Cuda&, const DeviceDistCsr<Index>&, \
                                                       const SamplerShape&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
