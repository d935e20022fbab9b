#include "verify_runs.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>

#include "espalier/base/counted.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/mix.hpp"
#include "espalier/base/temporary_file.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/job/sampling_on_gpu.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/partition/make_order.hpp"
#include "espalier/train/checkpoint.hpp"
#include "espalier/train/trainer.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kBatch = 56;
constexpr const char* kInMemory = "graph.file=in-memory";
constexpr const char* kByOrder = "graph.order=in-memory";

// Nothing but warnings is said while it lives.
class Quietly {
 public:
  explicit Quietly(const Communicator& world) : world_(world), was_(level()) {
    log::set_up(world.rank(), std::max(was_, log::Level::kWarning));
  }
  ~Quietly() { log::set_up(world_.rank(), was_); }
  Quietly(const Quietly&) = delete;
  Quietly& operator=(const Quietly&) = delete;

 private:
  static log::Level level() {
    return log::enabled(log::Level::kDebug)  ? log::Level::kDebug
           : log::enabled(log::Level::kInfo) ? log::Level::kInfo
                                             : log::Level::kWarning;
  }
  const Communicator& world_;
  log::Level was_;
};

}  // namespace

Config verify_config(const VerifyArguments& arguments, std::int64_t copies, const Keys& keys) {
  // Widths that fill no vector of any machine, and a last step of one batch.
  Keys all = {kInMemory,
              "run.device=" + arguments.device,
              fmt::format("grid.replication={}", copies),
              "sampler.fanout=[4,3]",
              fmt::format("sampler.batch_size={}", kBatch),
              "model.layers=2",
              "model.hidden=20",
              "model.dropout=0",
              "train.epochs=2",
              "train.learning_rate=0.01",
              "train.batches_per_step=3",
              "train.reproducible=true",
              "train.eval_every=0"};
  all.insert(all.end(), keys.begin(), keys.end());
  return parse_config("", "espalier verify", all);
}

void make_graphs(const Communicator& world, MadeGraphs& graphs) {
  const Quietly quiet(world);
  const auto self = world.split(world.rank(), 0);
  const VertexOptions vertices = {.features = 10, .classes = 4, .seed = 1, .edge_features = 3};
  generate_planted(self, {.nodes = 640, .degree = 9, .homophily = 0.8}, vertices, graphs.plain);
  generate_planted_types(
      self,
      {.types = "paper=640:10,author=300,field=60:7",
       .relations = "author.writes.paper=2000,paper.cites.paper=2500,paper.about.field=900"},
      vertices, graphs.typed);
  for (const bool typed : {false, true}) {
    const GraphFile file(world, "in-memory", graphs.of(typed), {});
    read_everything(world, file);
    graphs.digests += (typed ? " " : "") + hex(file.content().file.value_or(0));
    if (typed) continue;
    graphs.batches = count_batches(file.info().train, kBatch);
    graphs.order = make_order(world, file, {.method = &partition_method("streaming"), .clusters = 32});
  }
}

VerifyRuns::VerifyRuns(const Communicator& world, const VerifyArguments& arguments, MadeGraphs& graphs,
                       VerifyLines& lines)
    : world_(world), arguments_(arguments), graphs_(graphs), lines_(lines) {
  for (std::int64_t c = 1; c <= world.size(); ++c)
    if (world.size() % c == 0 && (arguments.replication == 0 || arguments.replication == c))
      copies_.push_back(c);
}

Job VerifyRuns::open(JobKind kind, bool typed, std::int64_t copies, const Keys& keys) {
  const bool ordered = std::ranges::find(keys, kByOrder) != keys.end();
  const InMemory memory = {graphs_.of(typed), ordered ? &graphs_.order : nullptr};
  return open_job(world_, verify_config(arguments_, copies, keys), kind, {}, {}, &memory);
}

// ---- samples ----

std::string VerifyRuns::draw(bool typed, std::int64_t copies, const Keys& keys) {
  const Quietly quiet(world_);
  const auto job = open(JobKind::kSample, typed, copies, keys);
  const VertexSource examples(job.file->read_split(Split::kTrain));
  std::uint64_t digest = 0;
  with_matrix(job, [&](const auto& space, const auto& matrix) {
    digest = sample_epoch(job, space, *make_job_sampler(job, space, matrix), examples, 1).counts.digest;
  });
  return hex(digest);
}

void VerifyRuns::draws(const std::string& name, bool typed, const Keys& keys) {
  // One line for all grids: what they find, or where they disagree what each does.
  const auto line = [&](const std::string& by, const std::string& way, bool spread) {
    auto all = keys;
    if (!way.empty()) all.push_back(way);
    std::vector<std::string> digests;
    std::string each;
    for (const auto copies : copies_) {
      if ((copies < world_.size()) != spread) continue;
      digests.push_back(draw(typed, copies, all));
      each += fmt::format("{}{} with {}", each.empty() ? "" : ", ", digests.back(), counted(copies, "copy"));
    }
    const bool agree = std::ranges::adjacent_find(digests, std::not_equal_to{}) == digests.end();
    if (!digests.empty()) lines_.check("draws", name + by, agree ? digests[0] : each, "draws " + name);
  };
  line("", "", false);
  line(", replicated", "grid.topology=replicated", true);
  for (const char* schedule : {"pull", "push", "staged", "staged-oblivious"})
    line(fmt::format(" by {}", schedule), fmt::format("grid.schedule={}", schedule), true);
}

// ---- trainings ----

namespace {

// Collective. Trains to the end or, where the state is to be kept, to the first step of epoch 2;
// from `state` on where there is one. Adds the losses of epochs. Returns all of them in words, the
// digest of the weights, and the score on the test split.
template <class Space>
std::string train(const Space& space, const TrainingJobOn<Space>& job, const TrainingState* state,
                  const std::function<void(const TrainingState&)>& keep, std::vector<double>& losses) {
  TrainerOn<Space> trainer(space, job);
  if (state != nullptr) trainer.restore(*state);
  const auto next = [&](const Cursor& cursor, std::int64_t, bool) {
    return keep && cursor == Cursor{2, 1} ? Next::kSaveAndStop : Next::kGoOn;
  };
  const auto result =
      trainer.train({.on_epoch = [&](const EpochReport& epoch) { losses.push_back(*epoch.loss); },
                     .next = next,
                     .save = keep});
  std::string words;
  for (const double loss : losses) words += fmt::format("{} ", loss);
  words += hex(trainer.weights_digest());
  if (result.test) words += fmt::format(" {:.4f}", result.test->scores.front().value);
  return words;
}

// Collective. The state with all rows of its tensors in the memory of every rank.
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
    world.all_reduce(std::span<std::uint64_t>(bits), Reduction::kSum, "verify");
    tensor.mine = {{0, tensor.rows}};
    tensor.read = [bits = std::move(bits), columns = tensor.columns](RowRange range, float* to) {
      for (auto k = range.begin * columns; k < range.end * columns; ++k)
        *to++ = bit_cast<float>(static_cast<std::uint32_t>(bits[static_cast<std::size_t>(k)]));
    };
  }
  return state;
}

// A checkpoint in a folder that all ranks see, as long as it lives there.
class CheckpointInFolder {
 public:
  CheckpointInFolder(const Communicator& world, const std::string& folder)
      : world_(world),
        path_(world.broadcast_text(fmt::format("{}/espalier-verify-{}.h5", folder, getpid()), 0, "verify")),
        watched_(path_) {}
  ~CheckpointInFolder() {
    if (world_.rank() == 0) std::remove(path_.c_str());
  }
  CheckpointInFolder(const CheckpointInFolder&) = delete;
  CheckpointInFolder& operator=(const CheckpointInFolder&) = delete;

  /// Collective. What is read of it again.
  TrainingState saved(const Checkpoint& checkpoint) const {
    try {
      write_checkpoint(world_, checkpoint, path_);
    } catch (const UserError& error) {
      usage_error(
          "--folder: cannot write {}: {}; name a folder that all ranks can write to, or leave it out: then "
          "nothing is written",
          path_, error.what());
    }
    return read_checkpoint(world_, path_).state;
  }

 private:
  const Communicator& world_;
  std::string path_;
  TemporaryFile watched_;
};

}  // namespace

std::string VerifyRuns::train(bool typed, std::int64_t copies, const Keys& keys, std::vector<double>& losses,
                              const TrainingState* state, const KeepState& keep) {
  auto job = open(JobKind::kTrain, typed, copies, keys);
  std::function<void(const TrainingState&)> keep_of_job;
  if (keep) keep_of_job = [&](const TrainingState& now) { keep(job, now); };
  const auto training = open_training(job, [] {});
  return std::visit(
      [&](const auto& set) { return espalier::train(set->space(), set->lent(), state, keep_of_job, losses); },
      training);
}

void VerifyRuns::training(const std::string& group, const std::string& name, bool typed, const Keys& keys,
                          const std::string& key) {
  const auto copies = next_copies();
  std::string found;
  {
    const Quietly quiet(world_);
    std::vector<double> losses;
    found = train(typed, copies, keys, losses);
  }
  lines_.check(group, name, found, key, counted(copies, "copy"));
}

void VerifyRuns::restart(const std::string& name, const std::string& key, bool typed, const Keys& keys) {
  const auto copies = next_copies();
  std::string found;
  {
    const Quietly quiet(world_);
    std::optional<CheckpointInFolder> file;
    if (!arguments_.folder.empty()) file.emplace(world_, arguments_.folder);
    std::vector<double> losses;
    TrainingState state;
    train(typed, copies, keys, losses, nullptr, [&](const Job& job, const TrainingState& now) {
      state = file ? file->saved({.state = now,
                                  .epochs = {},
                                  .config = to_toml(job.config),
                                  .ranks = world_.size(),
                                  .graph = job.graph})
                   : kept_in_memory(world_, now);
    });
    found = train(typed, copies, keys, losses, &state);
    state = {};
    world_.barrier();  // nobody reads the file any more
  }
  lines_.check("restart", name, found, key, counted(copies, "copy"));
}

}  // namespace espalier
