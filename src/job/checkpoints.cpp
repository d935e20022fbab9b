#include "espalier/job/checkpoints.hpp"

#include <algorithm>
#include <filesystem>

#include "espalier/base/clock.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/job/changed_keys.hpp"
#include "espalier/train/weights_file.hpp"

namespace espalier {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "checkpoints";

std::string folder_of(const Config& config) {
  return config.output.dir + "/" + kFolder;
}

// What run.restart names, as rank 0 sees it: checkpoints to try one after the other.
struct Candidates {
  std::vector<std::string> paths;
  std::string folder;  ///< that they lie in; empty: the one was named itself
};

Candidates candidates_in(const std::string& folder) {
  Candidates found = {CheckpointFolder(folder).list(), folder};
  for (auto& name : found.paths) name = folder + "/" + name;
  return found;
}

Candidates find_candidates(const Config& config) {
  if (config.run.restart == "never") return {};
  if (config.run.restart == "auto") return candidates_in(folder_of(config));
  std::error_code error;
  const std::string path = config.run.restart;
  if (!fs::exists(path, error))
    usage_error("run.restart = {}: there is no such file; it takes auto, never, or the path of a checkpoint",
                path);
  if (!fs::is_directory(path, error)) {
    if (is_weights_file(path))
      usage_error(
          "{} holds weights only, and a training cannot go on from them; name a checkpoint in run.restart "
          "(`espalier infer` takes this file)",
          path);
    return {{path}, ""};
  }
  for (const auto& folder : {path, path + "/" + kFolder})  // an output.dir will do, too
    if (auto found = candidates_in(folder); !found.paths.empty()) return found;
  usage_error("run.restart = {}: there is no checkpoint in that folder, nor in its {}/", path, kFolder);
}

// Collective. The first of them that is whole.
std::optional<Restart> read_first_whole(const Communicator& world, const Candidates& candidates,
                                        const log::Listener& listener) {
  for (const auto& path : candidates.paths) try {
      return Restart{.path = path, .checkpoint = read_checkpoint(world, path), .config = {}, .anew = {}};
    } catch (const UserError& error) {
      if (candidates.folder.empty()) throw;
      if (world.rank() == 0)
        log::tell(listener, log::Level::kWarning, "{}; trying the checkpoint before it", error.what());
    }
  if (candidates.paths.empty()) return {};
  input_error("no checkpoint in {} is whole; run.restart = \"never\" begins anew, or name another output.dir",
              candidates.folder);
}

// Collective. Those of rank 0 on every rank.
Candidates broadcast(const Communicator& world, Candidates candidates) {
  candidates.folder = world.broadcast_text(candidates.folder, 0, "setup");
  auto count = std::ssize(candidates.paths);
  world.broadcast(&count, 1, 0, "setup");
  candidates.paths.resize(static_cast<std::size_t>(count));
  for (auto& path : candidates.paths) path = world.broadcast_text(path, 0, "setup");
  return candidates;
}

std::optional<std::uint64_t> digest_of(const BatchGroups* groups) {
  if (groups == nullptr) return {};
  return groups->digest;
}

// Of local batches, beside the keys: what graph.order says.
constexpr const char* kGroups = "sampler.groups: the digest of the groups";

// Why a restart with another value is refused whatever was named; null: it may go on.
const char* what_it_breaks(KeyEffect effect) {
  switch (effect) {
    case KeyEffect::kShape:
      return "whose tensors do not fit";
    case KeyEffect::kMeaning:
      return "whose weights another network would score";
    case KeyEffect::kState:
      return "whose optimiser and best weights are of another kind";
    default:
      return nullptr;
  }
}

}  // namespace

std::optional<Restart> find_restart(const Communicator& world, const Config& config,
                                    const EarlierOutput& output, const log::Listener& listener) {
  Candidates candidates;
  agree(world, [&] {
    if (world.rank() == 0 && !(output.replaced && config.run.restart == "auto"))
      candidates = find_candidates(config);
  });
  auto restart = read_first_whole(world, broadcast(world, candidates), listener);
  if (!restart) return {};
  restart->anew = output.finished && config.run.restart == "auto"
                      ? "give --overwrite to begin anew in its place, or name another output.dir"
                      : "set run.restart = \"never\" to begin anew, or name another output.dir";
  std::error_code error;  // a path that cannot be followed is not in the folder
  restart->in_output = fs::weakly_canonical(restart->path, error).parent_path() ==
                       fs::weakly_canonical(folder_of(config), error);
  const auto saved = parse_saved_config(restart->checkpoint.config, restart->path);
  if (!saved.removed.empty())
    usage_error("{} was saved in training with {}, which was removed; {}", restart->path, saved.removed,
                restart->anew);
  restart->config = saved.config;
  return restart;
}

// Throws UserError(kUsage) where the graph is not the one that the checkpoint was saved for.
static void check_same_graph(const Job& job, const Restart& restart) {
  const auto& there = restart.checkpoint.graph;
  const auto& here = job.graph;
  if (const auto& task = task_kind_of(job.config.train.task); !task.of_labels) {
    const auto known = task.splits(there), found = task.splits(here);
    if (known != found)
      usage_error(
          "{} was saved in training on {} {}, {} to validate and {} to test on; {} has {}, {}, {}; name that "
          "graph, or {}",
          restart.path, known[0], plural_of(task.example), known[1], known[2], job.config.graph.file,
          found[0], found[1], found[2], restart.anew);
  }
  if (std::tie(there.nodes, there.edges, there.features, there.classes, there.train, there.valid,
               there.test) !=
      std::tie(here.nodes, here.edges, here.features, here.classes, here.train, here.valid, here.test))
    usage_error(
        "{} was saved in training on another graph ({} nodes, {} edges, {} training vertices; {} has {}, {}, "
        "{}); name that graph, or {}",
        restart.path, there.nodes, there.edges, there.train, job.config.graph.file, here.nodes, here.edges,
        here.train, restart.anew);
  check_same_content(job, here.content, restart);
}

void check_epochs(const Job& job, const Restart& restart) {
  const auto& [epoch, step] = restart.checkpoint.state.cursor;
  const auto asked = job.config.train.epochs;
  if (epoch > asked + 1 || (epoch > asked && step > 0))
    usage_error("{} was saved after {}{}, and train.epochs = {}; raise train.epochs, or {}", restart.path,
                counted(epoch - 1, "epoch"), step > 0 ? fmt::format(" and {}", counted(step, "step")) : "",
                asked, restart.anew);
}

void check_restart(const Job& job, const Restart& restart) {
  auto differences = changed_keys(restart.config, job.config, job.graph);
  for (const auto& key : differences)
    if (const char* const broken = what_it_breaks(key.effect))
      usage_error("{} is of another job, {}: {}. Put the key back, or {}", restart.path, broken,
                  in_words(key), restart.anew);
  check_same_graph(job, restart);
  const auto groups = digest_of(job.owners.groups.get());
  if (groups && restart.checkpoint.groups && *groups != *restart.checkpoint.groups)
    differences.push_back({kGroups, hex(*restart.checkpoint.groups), hex(*groups), KeyEffect::kBatches});
  const bool named = job.config.run.restart != "auto",
             within_epoch = restart.checkpoint.state.cursor.step > 0;
  for (const auto& key : differences) {
    if (key.name == "train.epochs" && job.config.train.lr_schedule == "cosine")
      job.tell(log::Level::kWarning, "{}: {}: the cosine of the learning rate is another one from here on",
               restart.path, in_words(key));
    if (key.effect == KeyEffect::kCost) continue;
    if (!named)
      usage_error(
          "{} is of another job: {}. Put the key back, or {}, or name the checkpoint in run.restart to go on "
          "from it all the same",
          restart.path, in_words(key), restart.anew);
    if (within_epoch && key.effect == KeyEffect::kBatches)
      usage_error("{} was saved within an epoch, and {}: the rest of that epoch would be other vertices",
                  restart.path, in_words(key));
    job.tell(log::Level::kWarning, "{}: {}", restart.path, in_words(key));
  }
}

void check_same_content(const Job& job, const ContentDigests& here, const Restart& restart) {
  const auto& there = restart.checkpoint.graph.content;
  if (there.datasets.empty() || !here.complete) return;
  const auto difference = describe_difference(there, here);
  if (difference.empty()) return;
  usage_error("{} was saved in training on another graph: {} holds other data in {}; name that graph, or {}",
              restart.path, job.config.graph.file, difference, restart.anew);
}

bool is_done(const Job& job, const Restart& restart) {
  const auto& state = restart.checkpoint.state;
  return is_done(job.config.train, state.cursor, state.evaluations_without_gain);
}

std::string restart_in_words(const Job& job, const Restart& restart) {
  const auto& [epoch, step] = restart.checkpoint.state.cursor;
  const int ranks = restart.checkpoint.ranks;
  if (is_done(job, restart))
    return fmt::format("restart {}: {} done, nothing is left to train; raise {}, or {}", restart.path,
                       epoch == 2 ? "the only epoch is" : fmt::format("all {} epochs are", epoch - 1),
                       epoch > job.config.train.epochs ? "train.epochs" : "train.early_stop", restart.anew);
  std::string words = fmt::format("restart {} ({} of epoch {} done, saved by {})", restart.path,
                                  counted(step, "step"), epoch, counted(ranks, "rank"));
  if (step == 0) words = fmt::format("restart {} ({} done)", restart.path, counted(epoch - 1, "epoch"));
  if (ranks != job.grid->ranks() && !job.config.train.reproducible)
    words +=
        "; on another number of ranks losses agree to rounding (train.reproducible = true: to the last bit)";
  return words;
}

TrainingState kept_in_memory(const Communicator& world, TrainingState state) {
  for (auto& tensor : state.tensors) {
    Buffer<std::uint64_t> bits(static_cast<std::size_t>(tensor.size()), 0);
    Buffer<float> rows;
    for (const auto& mine : tensor.mine) {
      rows.resize(static_cast<std::size_t>(mine.size() * tensor.columns));
      if (!rows.empty()) tensor.read(mine, rows.data());
      std::ranges::transform(rows, bits.begin() + mine.begin * tensor.columns,
                             bit_cast<std::uint32_t, float>);
    }
    // One rank has each.
    world.all_reduce(std::span<std::uint64_t>(bits), Reduction::kSum, "checkpoint");
    tensor.mine = {{0, tensor.rows}};
    tensor.read = [bits = std::move(bits), columns = tensor.columns](RowRange range, float* to) {
      for (auto k = range.begin * columns; k < range.end * columns; ++k)
        *to++ = bit_cast<float>(static_cast<std::uint32_t>(bits[static_cast<std::size_t>(k)]));
    };
  }
  return state;
}

JobCheckpoints::JobCheckpoints(const Job& job, const std::optional<Restart>& restart)
    : job_(job),
      folder_(folder_of(job.config)),
      policy_(job.grid->world(), job.config.run, restart.has_value()) {
  if (job.begins_anew && job.grid->world().rank() == 0) folder_.clear();
  if (!restart) return;
  std::error_code error;
  if (restart->in_output) latest_ = fs::weakly_canonical(restart->path, error).filename().string();
  best_ = {restart->path, restart->checkpoint.state.best_epoch};
  if (job.config.run.restart != "auto") named_ = latest_;
}

Next JobCheckpoints::next(const Cursor& cursor, std::int64_t steps, bool last) {
  const auto next = policy_.next(cursor, steps, last);
  stopping_ = next == Next::kSaveAndStop;
  return next;
}

void JobCheckpoints::describe() const {
  const auto& run = job_.config.run;
  if (run.checkpoint_every == 0 && run.checkpoint_minutes == 0 && run.max_minutes == 0)
    job_.tell(
        log::Level::kInfo,
        "        no checkpoints (run.checkpoint_every = 0, run.checkpoint_minutes = 0): what ends this run "
        "early loses it");
}

bool JobCheckpoints::goes_on() {
  stopping_ = !policy_.goes_on();
  return !stopping_;
}

void JobCheckpoints::save(const TrainingState& state, const std::vector<EpochReport>& history) {
  const auto& world = job_.grid->world();
  const double begin = now();
  if (stopping_)
    job_.tell(log::Level::kInfo, "{}: all ranks stop here; saving a checkpoint", policy_.reason());
  try {
    const Checkpoint checkpoint = {{to_toml(job_.config), job_.graph, job_.standardization},
                                   state,
                                   history,
                                   job_.config.train.seed,
                                   job_.grid->ranks(),
                                   digest_of(job_.owners.groups.get())};
    latest_ = folder_.save(
        world, state.cursor, [&](const std::string& path) { write_checkpoint(world, checkpoint, path); },
        latest_, named_);
  } catch (const UserError& error) {
    if (stopping_) throw;
    job_.tell(log::Level::kWarning, "{}; training goes on without it", error.what());
    return;
  }
  best_ = {folder_.path() + "/" + latest_, state.best_epoch};
  job_.tell(policy_.was_asked() ? log::Level::kInfo : log::Level::kDebug, "saved {}/{}", folder_.path(),
            latest_);
  ++saved_;
  seconds_ += now() - begin;
  policy_.saved(now() - begin);
}

void JobCheckpoints::leave_interrupted(const Cursor& cursor) const {
  throw UserError(
      ExitCode::kSignal,
      fmt::format("stopped by {} with {} of epoch {} done; saved {}/{}; {} goes on from there",
                  policy_.reason(), counted(cursor.step, "step"), cursor.epoch, folder_.path(), latest_,
                  job_.config.run.restart == "auto" ? "the same command" : "run.restart = \"auto\""));
}

std::string JobCheckpoints::holder(std::int64_t best_epoch) const {
  std::error_code error;
  if (best_epoch > 0 && best_.epoch == best_epoch && std::filesystem::exists(best_.path, error))
    return fmt::format("{} holds the same weights: `espalier infer --checkpoint` takes it", best_.path);
  return "no checkpoint holds the same weights: make room and train again, with run.checkpoint_every";
}

void JobCheckpoints::report(RunReport& report) const {
  report.checkpoints = saved_;
  report.checkpoint_seconds = seconds_;
}

}  // namespace espalier
