// espalier verify: computes what is known, on this machine, with this build, and compares.
//
// Two graphs are made in the memory of every rank, so that no file and no folder is needed: a plain
// one, and one of three types and six relations. On them every sampler draws an epoch by every
// schedule on every grid, every kind of layer is trained for two epochs with train.reproducible, on
// the grids in turn, and so is what stands around layers. All of it has one result (design, 4.1 and
// 4.2), which is compiled in (verify_lines.cpp).
#include <algorithm>

#include "commands.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/graph/hdf5_memory.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/train/checkpoint.hpp"
#include "espalier/train/trainer.hpp"
#include "sampling_on_gpu.hpp"
#include "training_on_gpu.hpp"
#include "verify_leaves.hpp"

namespace espalier {

namespace {

using Keys = std::vector<std::string>;

constexpr std::int64_t kBatch = 56;

Config config_of(const VerifyArguments& arguments, std::int64_t copies, const Keys& keys) {
  Keys all = {"graph.file=in-memory",
              "run.device=" + arguments.device,
              "sampler.fanout=[4,3]",
              fmt::format("sampler.batch_size={}", kBatch),
              "model.layers=2",
              "model.hidden=20",
              "model.dropout=0",
              "train.epochs=2",
              "train.learning_rate=0.01",
              "train.batches_per_step=3",
              "train.reproducible=true",
              "train.eval_every=0",
              fmt::format("grid.replication={}", copies)};
  all.insert(all.end(), keys.begin(), keys.end());
  return parse_config("", "espalier verify", all);
}

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

// ---- the graphs ----

struct MadeGraphs {
  hdf5::WrittenBytes plain, typed;
  Order order;  ///< of the plain one
  std::int64_t batches = 0;
  std::string digest, order_digest;

  hdf5::WrittenBytes& of(bool is_typed) { return is_typed ? typed : plain; }
};

std::string digest_of(const Order& order) {
  std::uint64_t digest = 0;
  for (const auto cluster : order.cluster) digest = absorb(digest, cluster);
  return hex(digest);
}

// Collective. Every rank makes all of each.
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
    graphs.digest += (typed ? " " : "") + hex(file.content().file.value_or(0));
    if (typed) continue;
    graphs.batches = count_batches(file.info().train, kBatch);
    graphs.order = make_order(world, file, {.file = {}, .output = {}, .method = "streaming", .clusters = 32});
    graphs.order_digest = digest_of(graphs.order);
  }
}

// ---- the runs ----

class Verification {
 public:
  Verification(const Communicator& world, const VerifyArguments& arguments, MadeGraphs& graphs,
               VerifyLines& lines)
      : world_(world), arguments_(arguments), graphs_(graphs), lines_(lines) {
    for (std::int64_t c = 1; c <= world.size(); ++c)
      if (world.size() % c == 0 && (arguments.replication == 0 || arguments.replication == c))
        copies_.push_back(c);
  }

  void draws(const std::string& name, bool typed, const Keys& keys);
  /// `key`: as VerifyLines::check() takes it.
  void training(const std::string& group, const std::string& name, bool typed, const Keys& keys,
                const std::string& key = {});
  void restart(const std::string& name, const std::string& key, bool typed, const Keys& keys);

 private:
  Job open(JobKind kind, bool typed, std::int64_t copies, const Keys& keys, bool ordered = false);
  std::int64_t next_copies() { return copies_[turn_++ % copies_.size()]; }
  TrainingState kept(const TrainingState& state, const Job& job) const;

  const Communicator& world_;
  const VerifyArguments& arguments_;
  MadeGraphs& graphs_;
  VerifyLines& lines_;
  std::vector<std::int64_t> copies_;  ///< of a block row, on each grid
  std::size_t turn_ = 0;
};

Job Verification::open(JobKind kind, bool typed, std::int64_t copies, const Keys& keys, bool ordered) {
  const InMemory memory = {graphs_.of(typed), ordered ? &graphs_.order : nullptr};
  return open_job(world_, config_of(arguments_, copies, keys), kind, {}, false, &memory);
}

// An epoch of a sampler, by every way that there is.
void Verification::draws(const std::string& name, bool typed, const Keys& keys) {
  const auto draw = [&](std::int64_t copies, const std::string& way) {
    const Quietly quiet(world_);
    auto all = keys;
    if (!way.empty()) all.push_back(way);
    const auto job = open(JobKind::kSample, typed, copies, all);
    const auto training = job.file->read_split(Split::kTrain);
    std::uint64_t digest = 0;
    with_matrix(job, [&](const auto& space, const auto& matrix) {
      digest = sample_epoch(job, space, *make_job_sampler(job, space, matrix), training, 1).counts.digest;
    });
    return hex(digest);
  };
  // One line for all grids: what they find, or where they disagree what each does.
  const auto line = [&](const std::string& by, const std::string& way, auto has_it) {
    std::vector<std::string> digests;
    std::string each;
    for (const auto copies : copies_) {
      if (!has_it(world_.size() / copies)) continue;
      digests.push_back(draw(copies, way));
      each += fmt::format("{}{} with {}", each.empty() ? "" : ", ", digests.back(), counted(copies, "copy"));
    }
    const bool agree = std::ranges::adjacent_find(digests, std::not_equal_to{}) == digests.end();
    if (!digests.empty()) lines_.check("draws", name + by, agree ? digests[0] : each, "draws " + name);
  };
  line("", "", [](auto rows) { return rows == 1; });
  const auto spread = [](auto rows) { return rows > 1; };
  line(", replicated", "grid.topology=replicated", spread);
  for (const char* schedule : {"pull", "push", "staged", "staged-oblivious"})
    line(fmt::format(" by {}", schedule), fmt::format("grid.schedule={}", schedule), spread);
}

// Collective. Trains to its end, or to step 1 of epoch 2 where it is given `stopped`, which becomes
// the state of that moment; from `state` on where there is one. Adds the losses of epochs.
template <class Space, class Keep>
std::string train(const Space& space, const TrainingJobOn<Space>& job, const TrainingState* state,
                  std::vector<double>& losses, Keep keep) {
  TrainerOn<Space> trainer(space, job);
  if (state != nullptr) trainer.restore(*state);
  const auto result =
      trainer.train({.on_epoch = [&](const EpochReport& epoch) { losses.push_back(*epoch.loss); },
                     .next =
                         [&](const Cursor& cursor, std::int64_t, bool) {
                           return keep && cursor == Cursor{2, 1} ? Next::kSaveAndStop : Next::kGoOn;
                         },
                     .save = [&](const TrainingState& now) { keep(now); }});
  std::string words;
  for (const double loss : losses) words += fmt::format("{} ", loss);
  words += hex(trainer.weights_digest());
  if (result.test) words += fmt::format(" {:.4f}", result.test->scores.front().value);
  return words;
}

using KeepState = std::function<void(const TrainingState&)>;

void Verification::training(const std::string& group, const std::string& name, bool typed, const Keys& keys,
                            const std::string& key) {
  const auto copies = next_copies();
  std::string found;
  {
    const Quietly quiet(world_);
    const bool ordered = std::ranges::find(keys, "sampler.batches=local") != keys.end();
    auto job = open(JobKind::kTrain, typed, copies, keys, ordered);
    std::vector<double> losses;
    with_training(
        job, [] {},
        [&](const auto& space, const auto& training) {
          found = train(space, training, nullptr, losses, KeepState());
        });
  }
  lines_.check(group, name, found, key, counted(copies, "copy"));
}

// Collective. The state with all rows of its tensors in the memory of every rank; or, with a
// folder, in a file there, which is read again and removed.
TrainingState Verification::kept(const TrainingState& state, const Job& job) const {
  if (!arguments_.folder.empty()) {
    const auto path = fmt::format("{}/espalier-verify-{}.h5", arguments_.folder,
                                  world_.broadcast_text(fmt::format("{}", getpid()), 0, "verify"));
    const auto remove = [&] {
      if (world_.rank() == 0) std::remove(path.c_str());
    };
    try {
      write_checkpoint(world_,
                       {.state = state,
                        .history = {},
                        .config = to_toml(job.config),
                        .ranks = world_.size(),
                        .graph = job.graph},
                       path);
    } catch (const UserError& error) {
      remove();
      usage_error("--folder {}: {}; name a folder that all ranks can write to, or leave --folder out",
                  arguments_.folder, error.what());
    }
    auto read = read_checkpoint(world_, path).state;
    world_.barrier();
    remove();  // it stays open until its tensors were read
    return read;
  }
  auto all = state;
  for (auto& tensor : all.tensors) {
    Buffer<std::uint64_t> bits(static_cast<std::size_t>(tensor.size()), 0);
    Buffer<float> rows;
    for (const auto& mine : tensor.mine) {
      rows.resize(static_cast<std::size_t>(mine.size() * tensor.columns));
      if (!rows.empty()) tensor.read(mine, rows.data());
      std::ranges::transform(rows, bits.begin() + mine.begin * tensor.columns,
                             bit_cast<std::uint32_t, float>);
    }
    world_.all_reduce(std::span<std::uint64_t>(bits), Reduction::kSum, "verify");  // one rank has each
    tensor.mine = {{0, tensor.rows}};
    tensor.read = [bits = std::move(bits), columns = tensor.columns](RowRange range, float* to) {
      for (auto k = range.begin * columns; k < range.end * columns; ++k)
        *to++ = bit_cast<float>(static_cast<std::uint32_t>(bits[static_cast<std::size_t>(k)]));
    };
  }
  return all;
}

// A training with `keys`, stopped and gone on with: the line of the one in one piece, `key`.
void Verification::restart(const std::string& name, const std::string& key, bool typed, const Keys& keys) {
  const auto copies = next_copies();
  std::string found;
  {
    const Quietly quiet(world_);
    std::vector<double> losses;
    TrainingState state;
    auto first = open(JobKind::kTrain, typed, copies, keys),
         second = open(JobKind::kTrain, typed, copies, keys);
    const KeepState keep = [&](const TrainingState& now) { state = kept(now, first); };
    with_training(
        first, [] {},
        [&](const auto& space, const auto& training) { train(space, training, nullptr, losses, keep); });
    with_training(
        second, [] {},
        [&](const auto& space, const auto& training) {
          found = train(space, training, &state, losses, KeepState());
        });
  }
  lines_.check("restart", name, found, key, counted(copies, "copy"));
}

const Keys kHistory = {"model.kind=sage", "history.kind=replace"};
const Keys kLearnt = {"model.kind=rgcn", "model.embedding=6", "model.normalize=batch", "model.dropout=0.3"};

void verify_draws(Verification& verification) {
  for (const auto& kind : sampler_kinds()) {
    const Keys keys = {fmt::format("sampler.kind={}", kind.name),
                       kind.layer_wise ? "sampler.fanout=[60,60]" : "sampler.fanout=[4,3]"};
    const auto with = [&](const std::string& more) {
      auto all = keys;
      all.push_back(more);
      return all;
    };
    for (const char* mode : {"debiased", "paper", "reference"})
      if (kind.takes_mode)
        verification.draws(fmt::format("{}, {}", kind.name, mode), false,
                           with(fmt::format("sampler.mode={}", mode)));
    if (!kind.takes_mode) verification.draws(kind.name, false, keys);
    if (kind.takes_weighted)
      verification.draws(fmt::format("{}, weighted", kind.name), false, [&] {
        auto all = with("sampler.weighted=true");
        all.push_back("model.kind=gcn");
        return all;
      }());
    verification.draws(fmt::format("{}, typed", kind.name), true, with("model.kind=rgcn"));
  }
}

void verify_layers(Verification& verification) {
  for (const auto& kind : layer_kinds()) {
    const auto name = std::string(kind.name);
    const Keys keys = {"model.kind=" + name};
    auto forward = keys;
    forward.insert(forward.end(), {"train.epochs=1", "train.learning_rate=0"});
    verification.training("forward", name, kind.takes_relations, forward);
    verification.training("training", name, kind.takes_relations, keys);
    if (kind.takes_edges)
      verification.training("training", name + ", features of edges", kind.takes_relations,
                            {keys[0], "model.edge_features=true"});
    if (kind.takes_aggregator)
      for (const std::string aggregator : {"max", "sum"})
        verification.training("training", fmt::format("{}, {}", name, aggregator), false,
                              {keys[0], "model.aggregator=" + aggregator});
  }
}

void verify_the_rest(Verification& verification) {
  const auto with = [&](const std::string& name, const Keys& keys, bool typed = false) {
    verification.training("with", name, typed, keys);
  };
  with("dropout", {"model.kind=gat", "model.dropout=0.4"});
  with("normalisation of batches", {"model.normalize=batch"});
  with("normalisation of rows", {"model.normalize=layer"});
  with("control variates", {"history.kind=variate"});
  with("history", kHistory);
  with("learnt rows", kLearnt, true);
  with("an order, local batches", {"sampler.batches=local", "sampler.groups=8", "graph.order=in-memory"});
  verification.training("with", "samples and rows ahead", false, {"run.overlap=true"}, "training sage");
  verification.restart("history", "with history", false, kHistory);
  verification.restart("learnt rows, normalisation", "with learnt rows", true, kLearnt);
}

}  // namespace

void verify_command(const Communicator& world, const VerifyArguments& arguments) {
  // 1. What is asked for?
  const auto c = arguments.replication;
  if (c > 0 && world.size() % c != 0)
    usage_error("--replication {} does not divide the number of ranks, {}; choose a divisor of {}", c,
                world.size(), world.size());
  const auto config = config_of(arguments, 1, {});
  const auto node = place_on_node(world);
  const auto device = choose_device(world, node, config);
  const auto threads = choose_threads({}, node.cores / node.sharers, world.rank() == 0);
  if (arguments.print_values && device.gpu)
    usage_error("--print-values: the expected values are those of the CPU; give --device cpu");
  log::info("{}, {}, {}", counted(world.size(), "rank"), threads.in_words("per rank"), device.words);
  if (device.gpu)
    log::info(
        "on GPUs the lines of forward, training, with and restart hold where losses agree to 3 digits "
        "(near); "
        "all others to the bit");

  // 2. From the base upwards.
  VerifyLines lines(world, device.gpu != nullptr, arguments.print_values);
  verify_leaves(world, threads.count, lines);
  MadeGraphs graphs;
  make_graphs(world, graphs);
  if (world.size() > graphs.batches)
    log::info("an epoch has {}: some of the {} ranks keep none", counted(graphs.batches, "batch"),
              world.size());
  lines.check("graph", "made and read", graphs.digest);
  lines.check("graph", "order", graphs.order_digest);
  Verification verification(world, arguments, graphs, lines);
  verify_draws(verification);
  verify_layers(verification);
  verify_the_rest(verification);
  lines.finish();
}

}  // namespace espalier
