#include "espalier/job/device.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/dense/gemm.hpp"

namespace espalier {

Precision precision_of(const std::string& name) {
  constexpr Named<Precision> kAll[] = {
      {"fp32", Precision::kFp32}, {"tf32", Precision::kTf32}, {"bf16", Precision::kBf16}};
  return entry_named(kAll, name, "train.precision =").value;
}

namespace {

int gpus_seen(std::string& why) {
#ifdef ESPALIER_WITH_CUDA
  return count_gpus(&why);
#else
  why = "this program was built without CUDA; `make cuda` builds build/cuda/espalier";
  return 0;
#endif
}

#ifdef ESPALIER_WITH_CUDA

// How many ranks have the GPU that this one has. A rank may see one GPU only, and that may be its
// own. Collective.
int count_sharers(const Communicator& world, const Cuda& gpu) {
  struct Id {
    HostName host;
    char gpu[16] = {};
    bool operator==(const Id&) const = default;
  } mine;
  gpu.unique_id().copy(mine.gpu, sizeof mine.gpu);
  return static_cast<int>(std::ranges::count(world.all_gather(mine, "setup"), mine));
}

// The kinds of GPUs, each with the first rank that has it. Collective.
std::vector<std::pair<std::string, int>> kinds_of_gpus(const Communicator& world, const Cuda& gpu) {
  struct Kind {
    char text[128] = {};
  } mine;
  gpu.kind().copy(mine.text, sizeof mine.text - 1);
  std::vector<std::pair<std::string, int>> kinds;
  int rank = 0;
  for (const auto& kind : world.all_gather(mine, "setup")) {
    if (std::ranges::find(kinds, std::string(kind.text), &std::pair<std::string, int>::first) == kinds.end())
      kinds.emplace_back(kind.text, rank);
    ++rank;
  }
  return kinds;
}

// Collective, where every rank sees a GPU.
Device take_gpu(const Communicator& world, const NodePlace& node, const TrainConfig& train) {
  const auto gpu = std::make_shared<const Cuda>(gpu_for(node), precision_of(train.precision),
                                                sparse_products_of(train.sparse_products));
  // Which all ranks enter with what a GPU takes for itself.
  const int sharers = count_sharers(world, *gpu);
  if (sharers > 1) gpu->share_memory();
  const auto kinds = kinds_of_gpus(world, *gpu);
  if (kinds.size() > 1 && train.reproducible)
    usage_error(
        "ranks have unlike GPUs: rank {} {}, rank {} {}; their products are rounded differently, so results "
        "would depend on who computes what: ask for GPUs of one kind, or use train.reproducible = false",
        kinds[0].second, kinds[0].first, kinds[1].second, kinds[1].first);
  Device device;
  device.gpu = gpu;
  device.memory = world.all_reduce(gpu->free_memory() / sharers, Reduction::kMin, "setup");
  device.sharers = world.all_reduce(sharers, Reduction::kMax, "setup");
  device.words = fmt::format(
      "on {} {}{}{}",
      device.sharers > 1 ? fmt::format("a GPU for {} ranks,", device.sharers) : "a GPU per rank,",
      kinds.size() > 1 ? "of unlike kinds, " + kinds[0].first + " and " + kinds[1].first : gpu->name(),
      train.precision == "fp32" ? "" : ", products in " + train.precision,
      train.sparse_products == "own" ? "" : ", sparse products by cuSPARSE");
  return device;
}

#endif

}  // namespace

Device choose_device(const Communicator& world, [[maybe_unused]] const NodePlace& node,
                     const Config& config) {
  std::string why;
  const int seen = config.run.device == "cpu" ? 0 : gpus_seen(why);
  const bool everywhere = world.all_reduce(seen > 0 ? 1 : 0, Reduction::kMin, "setup") == 1;
  if (seen > 0 && !everywhere) why = "another rank sees none";
#ifdef ESPALIER_WITH_CUDA
  if (everywhere) return take_gpu(world, node, config.train);
#endif
  if (config.run.device == "cuda")
    usage_error("run.device = cuda, but not every rank has a GPU: {}; use run.device = \"cpu\" or \"auto\"",
                why);
  Device device;
  device.words = why.empty() ? "on the CPU" : fmt::format("on the CPU (no GPU: {})", why);
  if (config.train.precision == "bf16")
    device.words += fmt::format(", products in bf16 ({})", has_fast_bf16() ? "AMX" : "no AMX: slower");
  return device;
}

namespace {

constexpr int kMostThreads = 4096;  // as run.threads

// The number that `text` is, or begins with where it is a list.
std::optional<int> number_of_threads(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  auto rest = text.substr(end - text.data());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const bool whole = rest.empty() || rest[0] == ',';
  if (error != std::errc() || !whole || count < 1 || count > kMostThreads) return {};
  return count;
}

}  // namespace

std::string Threads::in_words(const char* of) const {
  return fmt::format("{} {} ({})", counted(count, "thread"), of, source);
}

Threads choose_threads(const AutoInt& asked, std::int64_t share, const log::Listener& listener) {
  if (asked.value) return {static_cast<int>(*asked.value), "run.threads"};
  for (const char* name : {"OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"}) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    if (const auto count = number_of_threads(text)) return {*count, name};
    log::tell(listener, log::Level::kWarning,
              "{} = {} is no number of threads from 1 to {}; it is passed over", name, quoted(text),
              kMostThreads);
  }
  return {static_cast<int>(std::max<std::int64_t>(1, share)), "its share of the cores"};
}

}  // namespace espalier
