#include "verify_runs.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <optional>

#include "../app/verify_runs.hpp"
#include "espalier/base/elementary.hpp"
#include "espalier/base/half.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/base/text.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/file/content_digest.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/job/checkpoints.hpp"
#include "espalier/job/sampling_on_gpu.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/partition/partition_methods.hpp"
#include "espalier/train/checkpoint.hpp"
#include "espalier/train/gradient_reduction.hpp"
#include "espalier/train/optimizer.hpp"
#include "espalier/train/trainer.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kBatch = 56;
constexpr const char* kInMemory = "graph.file=in-memory";
constexpr const char* kByOrder = "graph.order=in-memory";

}  // namespace

Keys joined(Keys keys, const Keys& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

Config verify_config(const VerifyArguments& arguments, std::int64_t copies, const Keys& keys) {
  // Widths that fill no vector of any machine, and a last step of one batch.
  const Keys usual = {kInMemory,
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
  return parse_config("", "espalier verify", joined(usual, keys));
}

void make_graphs(const Communicator& world, MadeGraphs& graphs) {
  const log::Quietly quietly;
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

void VerifyRuns::check(const VerifiedRun& run) {
  if (run.group == "draws") return check_draws(run);
  const auto copies = copies_[turn_++ % copies_.size()];
  std::vector<double> losses;
  const auto found = run.group == "restart" ? train_in_two(run, copies, losses)
                                            : train(run, copies, losses, nullptr, nullptr);
  lines_.check(run.group, run.name, found, run.key, counted(copies, "copy"));
}

Job VerifyRuns::open(JobKind kind, bool typed, std::int64_t copies, const Keys& keys) {
  const bool ordered = std::ranges::find(keys, kByOrder) != keys.end();
  const InMemory memory = {graphs_.of(typed), ordered ? &graphs_.order : nullptr};
  return open_job(world_, verify_config(arguments_, copies, keys), kind, {}, {}, &memory);
}

// ---- samples ----

void VerifyRuns::check_draws(const VerifiedRun& run) {
  // One line for all grids: what they find, or where they disagree what each does.
  const auto line = [&](const std::string& by, const Keys& way, bool spread) {
    std::vector<std::string> digests;
    std::string each;
    for (const auto copies : copies_) {
      if ((copies < world_.size()) != spread) continue;
      const auto job = open(JobKind::kSample, run.typed, copies, joined(run.keys, way));
      digests.push_back(hex(sample_epoch(job, 1).counts.digest));
      each += fmt::format("{}{} with {}", each.empty() ? "" : ", ", digests.back(), counted(copies, "copy"));
    }
    const bool agree = std::ranges::adjacent_find(digests, std::not_equal_to{}) == digests.end();
    if (!digests.empty())
      lines_.check("draws", run.name + by, agree ? digests[0] : each, "draws " + run.name);
  };
  line("", {}, false);
  line(", replicated", {"grid.topology=replicated"}, true);
  for (const char* schedule : {"pull", "push", "staged", "staged-oblivious"})
    line(fmt::format(" by {}", schedule), {fmt::format("grid.schedule={}", schedule)}, true);
}

// ---- trainings ----

std::string VerifyRuns::train(const VerifiedRun& run, std::int64_t copies, std::vector<double>& losses,
                              const TrainingState* from, const KeepState& keep) {
  auto job = open(JobKind::kTrain, run.typed, copies, run.keys);
  const auto training = open_training(job, [] {});
  const auto next = [&](const Cursor& cursor, std::int64_t, bool) {
    return keep && cursor == Cursor{2, 1} ? Next::kSaveAndStop : Next::kGoOn;
  };
  std::string words;
  std::visit(
      [&](const auto& set) {
        TrainerOn trainer(set->space(), set->lent());
        if (from != nullptr) trainer.restore(*from);
        const auto result =
            trainer.train({.on_epoch = [&](const EpochReport& epoch) { losses.push_back(*epoch.loss); },
                           .next = next,
                           .save = [&](const TrainingState& state) { keep(job, state); }});
        for (const double loss : losses) words += fmt::format("{} ", loss);
        words += hex(trainer.weights_digest());
        if (result.test) words += fmt::format(" {:.4f}", result.test->scores.front().value);
      },
      training);
  return words;
}

namespace {

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

std::string VerifyRuns::train_in_two(const VerifiedRun& run, std::int64_t copies,
                                     std::vector<double>& losses) {
  std::optional<CheckpointInFolder> file;
  if (!arguments_.folder.empty()) file.emplace(world_, arguments_.folder);
  TrainingState state;
  train(run, copies, losses, nullptr, [&](const Job& job, const TrainingState& now) {
    state = file ? file->saved({{to_toml(job.config), job.graph}, now, {}, 0, world_.size()})
                 : kept_in_memory(world_, now);
  });
  auto found = train(run, copies, losses, &state, nullptr);
  state = {};
  world_.barrier();  // nobody reads the file any more
  return found;
}

// ---- kernels ----

namespace {

// A hash of numbers, bit by bit, in order.
class KernelDigest {
 public:
  void add(double x) { state_ = absorb(state_, std::bit_cast<std::int64_t>(x)); }
  void add(float x) { state_ = absorb(state_, std::bit_cast<std::int32_t>(x)); }
  void add(std::uint64_t x) { state_ = absorb(state_, static_cast<std::int64_t>(x)); }
  void add(const Matrix<float>& matrix) {
    for (const float x : matrix.data) add(x);
  }
  std::string text() const { return hex(state_); }

 private:
  std::uint64_t state_ = 0;
};

// Numbers of either sign whose magnitudes differ by up to 2^spread.
Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed, int spread) {
  Matrix<float> matrix(rows, columns);
  for (std::size_t k = 0; k < matrix.data.size(); ++k) {
    const KeyedStream stream = RandomStream{.seed = seed, .row = k};
    const auto exponent = static_cast<int>(random32(stream, 1) % (spread + 1));
    const double magnitude = std::ldexp(to_unit_double(random64(stream, 0)), exponent);
    matrix.data[k] = static_cast<float>(random32(stream, 2) % 2 == 0 ? magnitude : -magnitude);
  }
  return matrix;
}

}  // namespace

std::string digest_of_functions() {
  KernelDigest digest;
  for (int k = 1; k <= 4000; ++k) {
    const double x = k / 128.0;
    for (const double y :
         {exp_of_nonpositive(-x), expm1_of_nonpositive(-x), log_of_positive(x), log1p_of_fraction(1 / x),
          std::sqrt(x), power_of(0.9, k % 500), cosine_of_turn(k / 4000.0)})
      digest.add(y);
    for (const float y :
         {exp_of_nonpositive(-static_cast<float>(x)), expm1_of_nonpositive(-static_cast<float>(x))})
      digest.add(y);
  }
  return digest.text();
}

std::string digest_of_random_numbers() {
  KernelDigest digest;
  for (std::uint64_t row = 0; row < 1000; ++row)
    for (const auto word :
         random_block(RandomStream{.seed = 1, .epoch = 2, .batch = 3, .layer = 4, .row = row}, row % 7).v)
      digest.add(std::uint64_t{word});
  return digest.text();
}

std::string digest_of_halves() {
  std::vector<Half> all(1 << 16);
  for (std::size_t bits = 0; bits < all.size(); ++bits) all[bits].bits = static_cast<std::uint16_t>(bits);
  std::vector<float> floats(all.size());
  to_floats(all.data(), floats.data(), std::ssize(floats));
  KernelDigest digest;
  for (const float x : floats)
    if (x == x) digest.add(x);
  for (const float x : random_matrix(64, 64, 1, 60).data)
    digest.add(std::uint64_t{to_half(std::ldexp(x, -40)).bits});
  return digest.text();
}

std::string digest_of_dense_products(int threads) {
  const Cpu cpu{threads};
  const auto a = random_matrix(67, 37, 1, 8), b = random_matrix(37, 21, 2, 8),
             c = random_matrix(67, 21, 3, 8);
  Matrix<float> ab(67, 21), ac(37, 21);
  gemm<float>(cpu, a, b, ab);
  gemm_tn<float>(cpu, a, c, ac);
  KernelDigest digest;
  digest.add(ab);
  digest.add(ac);
  return digest.text();
}

std::string digest_of_gradient_sum(const Communicator& world) {
  constexpr int kMinibatches = 7;
  GradientReduction reduction(Cpu{}, world, true);
  for (int k = world.rank(); k < kMinibatches; k += world.size()) {
    const auto gradient = random_matrix(9, 5, static_cast<std::uint64_t>(k), 30);
    reduction.add({&gradient}, 0.25f);
  }
  Matrix<float> sum(9, 5);
  reduction.finish(kMinibatches, {&sum});
  KernelDigest digest;
  digest.add(sum);
  return digest.text();
}

double exact_sum(const Communicator& world) {
  std::vector<double> mine;
  for (int k = 1; k <= 1000; ++k)
    if (k % world.size() == world.rank()) mine.insert(mine.end(), {static_cast<double>(k)});
  if (world.rank() == 0) mine.push_back(0x1p40);
  if (world.rank() == world.size() - 1) mine.push_back(-0x1p40);
  return reproducible_sum(world, mine);
}

std::string digest_of_optimizer(const char* kind) {
  std::vector<Parameter<float>> parameters = {{"weights", 1, true, random_matrix(8, 8, 1, 3)}};
  Optimizer<float> steps(Cpu{}, {.kind = kind, .weight_decay = 0.01}, parameters);
  for (std::uint64_t k = 0; k < 5; ++k) steps.step({}, 0.01, {random_matrix(8, 8, 2 + k, 6)}, parameters);
  KernelDigest digest;
  digest.add(parameters[0].value);
  return digest.text();
}

}  // namespace espalier
