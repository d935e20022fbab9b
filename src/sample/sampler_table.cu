// The table of samplers that run on a GPU. The others, and those whose schedule has no twin, are sampled by the CPU.
#include <algorithm>

#include "device_samplers.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/sample/fastgcn.hpp"
#include "espalier/sample/ladies.hpp"

// clang-format off
#define ESPALIER_DEVICE_SAMPLERS(sampler) \
  sampler(graphsage) \
  sampler(labor) \
  sampler(ladies) \
  sampler(fastgcn)
// clang-format on

namespace espalier {

namespace {

// Batches are sampled by the CPU and copied.
class SampledOnHost final : public DeviceSampler {
 public:
  SampledOnHost(const Cpu& cpu, std::unique_ptr<Sampler> sampler) : cpu_(cpu), sampler_(std::move(sampler)) {}

  std::vector<MinibatchOn<Cuda>> sample(const Cuda& cuda, std::span<const SeedBatch> batches,
                                        std::uint64_t seed, std::uint64_t epoch) override {
    std::vector<MinibatchOn<Cuda>> copies;
    for (const auto& minibatch : sampler_->sample(cpu_, batches, seed, epoch))
      copies.push_back(to_device(cuda, minibatch));
    return copies;
  }

  const std::vector<Schedule>& schedules() const override { return sampler_->schedules(); }

 private:
  Cpu cpu_;
  std::unique_ptr<Sampler> sampler_;
};

// The twins of the layer-wise samplers need all rows.
template <class Index>
std::unique_ptr<DeviceSampler> make_ladies(const Cuda& cuda, const DeviceGrid&, const DeviceDistCsr<Index>& a,
                                           const SamplerShape& shape, const Sampler&) {
  return a.host->partition.parts() == 1 ? make_ladies(cuda, a, shape) : nullptr;
}
template <class Index>
std::unique_ptr<DeviceSampler> make_fastgcn(const Cuda& cuda, const DeviceGrid&,
                                            const DeviceDistCsr<Index>& a, const SamplerShape& shape,
                                            const Sampler&) {
  return a.host->partition.parts() == 1 ? make_fastgcn(cuda, a, shape) : nullptr;
}

}  // namespace

template <class Index>
std::unique_ptr<DeviceSampler> make_sampler(const Cuda& cuda, const DeviceGrid& grid, const std::string& kind,
                                            const DeviceDistCsr<Index>& a, const SamplerShape& shape,
                                            bool* on_host, const Cpu& cpu) {
  // The CPU's sampler checks what is asked for, chooses the schedules, and samples where there is no twin.
  auto host_sampler = make_sampler(kind, *a.host, shape);
  std::unique_ptr<DeviceSampler> twin;
#define ESPALIER_MAKE(sampler) \
  if (kind == #sampler) twin = make_##sampler(cuda, grid, a, shape, *host_sampler);
  ESPALIER_DEVICE_SAMPLERS(ESPALIER_MAKE)
#undef ESPALIER_MAKE
  if (on_host != nullptr) *on_host = twin == nullptr;
  if (twin == nullptr) twin = std::make_unique<SampledOnHost>(cpu, std::move(host_sampler));
  return twin;
}

#define ESPALIER_INSTANTIATE(Index)                                                                        \
  template std::unique_ptr<DeviceSampler> make_sampler(const Cuda&, const DeviceGrid&, const std::string&, \
                                                       const DeviceDistCsr<Index>&, const SamplerShape&,   \
                                                       bool*, const Cpu&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
