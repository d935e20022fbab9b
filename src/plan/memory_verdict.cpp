#include "espalier/plan/memory_verdict.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "espalier/base/process.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/infer/prediction_list.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/train/task.hpp"
#include "fitted.hpp"

namespace espalier {

namespace {

// Of those that a link may be ranked against.
constexpr std::int64_t kFewCandidates = 100;

// What an inference keeps beside the graph, rows and network, until it ends.
void add_kept_by_inference(const JobSize& job, std::int64_t replication, std::vector<MemoryItem>& items) {
  const double part = largest_part(job, replication).vertices,
               own = part * static_cast<double>(job.graph.nodes) / static_cast<double>(job.ranks);
  if (job.targets) {
    const auto& task = task_kind_of(job.config.train.task);
    const TaskSize size = {job.graph, job.config, static_cast<int>(job.ranks),
                           static_cast<int>(job.ranks / replication)};
    const auto judging = task.evaluation_bytes == nullptr ? 0 : task.evaluation_bytes(size);
    items.push_back({"labels, splits", task.label_bytes(size) + judging});
    if (task.kept_bytes != nullptr) items.push_back({"rows of the last layer", part * task.kept_bytes(size)});
  }
  if (job.lists)
    items.push_back({"predictions of --csv", static_cast<double>(PredictionList::kLineBytes) * own});
}

// Of the host: what stays; of an inference, or with a GPU, whose copies are here, too.
MemoryPhase resident_phase(const PlannedJob& planned) {
  MemoryPhase phase = {"resident",
                       {{"program, libraries, MPI", planned.program},
                        {"graph, rows and network", bytes_on_host(planned.job, planned.epoch.replication)}}};
  if (planned.job.inference) add_kept_by_inference(planned.job, planned.epoch.replication, phase.items);
  return phase;
}

// The largest items of a phase, down to a tenth of it.
std::string items_in_words(MemoryPhase phase) {
  std::ranges::stable_sort(phase.items, std::ranges::greater(), &MemoryItem::bytes);
  std::string words;
  for (const auto& item : phase.items)
    if (10 * item.bytes >= phase.total())
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", item.name, bytes_in_words(item.bytes));
  return words;
}

// Would it fit with rows of hidden layers on disk?
bool spilling_fits(const PlannedJob& planned, double bytes) {
  if (planned.job.gpu || planned.job.spills()) return false;
  auto other = planned;
  other.job.config.run.spill = ".";
  return peak_memory(other).bytes() <= bytes;
}

// Would ranking links among some of the vertices, not all, need less?
bool ranking_fewer_helps(const PlannedJob& planned) {
  if (planned.job.config.train.ranked_against > 0) return false;
  auto other = planned;
  other.job.config.train.ranked_against = kFewCandidates;
  return peak_memory(other).bytes() < peak_memory(planned).bytes();
}

// Is much of a phase of steps, which evaluation keeps?
bool grows_with_batches(const MemoryPhase& phase) {
  if (phase.name != "evaluate") return true;
  double of_steps = 0;
  for (const auto& item : phase.items)
    for (const auto* name : {"input rows of a step", "steps ahead", "activations", "outgrown by them"})
      if (item.name == name) of_steps += item.bytes;
  return 10 * of_steps >= phase.total();
}

std::string cures_of(const PlannedJob& planned, double bytes) {
  const auto& job = planned.job;
  const auto replication = planned.epoch.replication;
  std::string cures = "use more ranks";
  if (replication > 1) cures += fmt::format(", a grid.replication below {}", replication);
  if (job.config.grid.replicates()) cures += ", grid.topology = \"partitioned\"";
  if (job.gpu && !job.config.graph.features_on_host()) cures += ", graph.features_on = \"host\"";
  if (job.inference) return cures;
  if (const auto bulk = largest_bulk(planned, bytes); bulk > 0 && bulk < planned.epoch.bulk)
    cures += fmt::format(", sampler.bulk = {}", bulk);
  if (const auto depth = largest_depth(planned, bytes); depth > 0 && depth < job.config.run.prefetch_steps)
    cures += fmt::format(", run.prefetch_steps = {}", depth);
  const bool of_steps = job.gpu || grows_with_batches(peak_memory(planned).fullest());
  if (of_steps) cures += ", a smaller sampler.batch_size";
  if (!job.training) return cures;
  cures += of_steps ? " or model.hidden" : ", a smaller model.hidden";
  if (ranking_fewer_helps(planned)) cures += fmt::format(", train.ranked_against = {}", kFewCandidates);
  if (spilling_fits(planned, bytes)) cures += ", run.spill = a folder on a disk";
  for (const auto& part : planned_hooks(job, replication)) cures += part.cures;
  return cures;
}

}  // namespace

MemoryOffer offered_memory(const Communicator& world, const Config& config, std::int64_t ranks_here) {
  const auto& limit = config.run.memory_limit;
  if (limit != "auto") return {parse_bytes(limit, "run.memory_limit"), "run.memory_limit", true};
  const auto free = free_memory();
  return {world.all_reduce(free.bytes / ranks_here, Reduction::kMin, "setup"),
          ranks_here > 1 ? fmt::format("{} over {} ranks", free.source, ranks_here) : free.source, false};
}

JobEstimates::JobEstimates(const Communicator& comm, const GraphFile& file, const JobSize& job, int threads)
    : program_(comm.all_reduce(static_cast<double>(program_memory()), Reduction::kMax, "setup") +
               kRuntimeBytes),
      threads_(threads) {
  note_activity("estimating the memory");
  if (comm.size() == 1 && job.ranks > 1) program_ += kLaunchedBytes;
  if (!job.inference) degrees_ = read_degrees(comm, file, adds_self_loops(job.config) ? 1 : 0);
}

PlannedJob JobEstimates::estimate(JobSize job) const {
  resolve(job, threads_);
  PlannedJob planned;
  planned.job = job;
  planned.threads = threads_;
  planned.program = program_;
  planned.epoch.replication = static_cast<int>(*job.config.grid.replication.value);
  if (job.inference) return planned;
  planned.epoch = planned_epoch(job);
  auto epoch = planned.epoch;
  if (!sampler_kind_of(epoch.sampler).layer_wise)
    epoch.shape.fanout = shape_of_picks(job.graph, job.config, job.ranks).fanout;
  planned.work = estimate_epoch(degrees_, matrix_has_values(job.graph, job.config) ? 4 : 0, epoch,
                                seeds_of_epoch(job.graph, job.config));
  planned.evaluations = estimate_evaluations(
      job, planned.epoch, degrees_.empty() ? 0 : static_cast<double>(degrees_.back().degree));
  return planned;
}

PlannedJob JobEstimates::fit(const JobSize& asked, const MemoryOffer& offer) const {
  constexpr std::int64_t kLeast = std::int64_t{1} << 20, kMost = std::int64_t{1} << 40;
  const bool may_spill = asked.may_spill && !asked.spills() && asked.config.model.layers > 1;
  std::optional<PlannedJob> least;
  // With room for what the estimate is off by: a setting that fills its memory to the last byte in
  // the estimate takes more in one job of two.
  auto with_room = offer;
  with_room.bytes = static_cast<std::int64_t>((1 - kEstimateError) * static_cast<double>(offer.bytes));
  const auto try_with = [&](std::int64_t memory, bool spills) {
    auto size = asked;
    size.host_memory = memory;
    size.spills_unasked = spills;
    auto planned = estimate(std::move(size));
    const bool enough = fits(planned, with_room);
    if (enough || !least || judged_memory(planned).bytes() < judged_memory(*least).bytes())
      least = std::move(planned);
    return enough;
  };
  // The same steps whatever a rank has. Files are slower than memory, but not than tiny chunks.
  const auto try_less = [&](std::int64_t least_memory, bool spills) {
    for (auto memory = kMost; memory >= least_memory; memory /= 4)
      if (memory < asked.host_memory && try_with(memory, spills)) return true;
    return false;
  };
  if (try_with(asked.host_memory, false) || (may_spill && try_less(asked.host_memory / 16, false)))
    return *least;
  if (may_spill && (try_with(asked.host_memory, true) || try_less(kLeast, true))) return *least;
  try_less(kLeast, false);
  return *least;
}

PeakMemory judged_memory(const PlannedJob& planned) {
  PeakMemory peak;
  if (!planned.job.inference) peak = peak_memory(planned);
  if (planned.job.inference || planned.job.gpu) peak.phases.push_back(resident_phase(planned));
  return peak;
}

bool fits(const PlannedJob& planned, const MemoryOffer& offer) {
  return judged_memory(planned).bytes() <= static_cast<double>(offer.bytes) && fits_device(planned);
}

MemoryVerdict judge_memory(const PlannedJob& planned, const MemoryOffer& offer) {
  const auto& job = planned.job;
  const auto peak = judged_memory(planned);
  const auto has = static_cast<double>(offer.bytes);
  if (peak.bytes() > has)
    return {fmt::format("does not fit: a rank needs {} ({}) and has {} ({}); {}",
                        bytes_in_words(peak.bytes()), items_in_words(peak.fullest()), bytes_in_words(has),
                        offer.source, cures_of(planned, has)),
            offer.binding};
  if (!fits_device(planned))
    return {fmt::format("does not fit: a rank needs {} of its GPU and has {}; {}",
                        bytes_in_words(bytes_on_device(job, planned.epoch.replication)),
                        bytes_in_words(static_cast<double>(job.device_memory)), cures_of(planned, has)),
            true};
  return {};
}

}  // namespace espalier
