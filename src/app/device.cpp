#include "device.hpp"

#include <fmt/format.h>

#include <cstring>

#include "espalier/base/error.hpp"
#include "espalier/comm/device_communicator.hpp"

namespace espalier {

namespace {

#ifdef ESPALIER_WITH_CUDA

int gpus_seen(std::string& why) {
  return count_gpus(&why);
}

std::shared_ptr<const Cuda> take_gpu(const NodePlace& node, const TrainConfig& train) {
  return std::make_shared<const Cuda>(gpu_for(node), precision_of(train.precision),
                                      sparse_products_of(train.sparse_products));
}

std::int64_t memory_of(const Cuda& gpu) {
  return gpu.free_memory();
}
std::string name_of(const Cuda& gpu) {
  return gpu.name();
}
std::string id_of(const Cuda& gpu) {
  return gpu.unique_id();
}
void share_memory(const Cuda& gpu) {
  gpu.share_memory();
}

#else

int gpus_seen(std::string& why) {
  why = "this program was built without CUDA; `make cuda` builds build/cuda/espalier";
  return 0;
}
std::shared_ptr<const Cuda> take_gpu(const NodePlace&, const TrainConfig&) {
  return nullptr;
}
std::int64_t memory_of(const Cuda&) {
  return 0;
}
std::string name_of(const Cuda&) {
  return "";
}
std::string id_of(const Cuda&) {
  return "";
}
void share_memory(const Cuda&) {}

#endif

// How many ranks have the GPU that this one has. A rank may see one GPU only, and that may be its
// own. Collective.
int count_sharers(const Communicator& world, const Cuda& gpu) {
  struct Id {
    char host[256] = {}, gpu[16] = {};
  } mine;
  failure_context().host.copy(mine.host, sizeof mine.host - 1);
  id_of(gpu).copy(mine.gpu, sizeof mine.gpu);
  int sharers = 0;
  for (const auto& other : world.all_gather(mine, "setup"))
    sharers += std::memcmp(&other, &mine, sizeof mine) == 0;
  return sharers;
}

}  // namespace

Device choose_device(const Communicator& world, const NodePlace& node, const Config& config) {
  Device device;
  std::string why;
  const int seen = config.run.device == "cpu" ? 0 : gpus_seen(why);
  const bool everywhere = world.all_reduce(seen > 0 ? 1 : 0, Reduction::kMin, "setup") == 1;
  if (seen > 0 && !everywhere) why = "another rank sees none";
  if (!everywhere) {
    if (config.run.device == "cuda")
      usage_error("run.device = cuda, but not every rank has a GPU: {}; use run.device = \"cpu\" or \"auto\"",
                  why);
    device.words = why.empty() ? "on the CPU" : fmt::format("on the CPU (no GPU: {})", why);
    return device;
  }
  device.gpu = take_gpu(node, config.train);
  const int sharers =
      count_sharers(world, *device.gpu);  // which all ranks enter with what a GPU takes for itself
  if (sharers > 1) share_memory(*device.gpu);
  device.memory = world.all_reduce(memory_of(*device.gpu) / sharers, Reduction::kMin, "setup");
  device.sharers = world.all_reduce(sharers, Reduction::kMax, "setup");
  device.words = fmt::format(
      "on {} {}{}{}",
      device.sharers > 1 ? fmt::format("a GPU for {} ranks,", device.sharers) : "a GPU per rank,",
      name_of(*device.gpu), config.train.precision == "fp32" ? "" : ", products in " + config.train.precision,
      config.train.sparse_products == "own" ? "" : ", sparse products by cuSPARSE");
  return device;
}

}  // namespace espalier
