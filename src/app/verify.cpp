// espalier verify: computes what is known, on this machine, with this build, and compares.
//
// From the base upwards: arithmetic, random numbers and sums over the ranks; a graph made in
// memory; every sampler by every schedule on every grid; every kind of layer, two epochs with
// train.reproducible; what stands around layers; a restart. Each has one result for all machines,
// ranks and grids (design, 4.1 and 4.2), which is compiled in (verify_lines.cpp).
#include "commands.hpp"
#include "espalier/base/arithmetic_rules.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/job/kernel_digests.hpp"
#include "espalier/nn/layer.hpp"
#include "job_in_words.hpp"
#include "verify_runs.hpp"

namespace espalier {

namespace {

std::string digest_of(const Order& order) {
  std::uint64_t digest = 0;
  for (const auto cluster : order.cluster) digest = absorb(digest, cluster);
  return hex(digest);
}

// What needs no graph.
void verify_kernels(const Communicator& world, int threads, VerifyLines& lines) {
  const auto kept = arithmetic_rules_kept(threads);
  for (std::size_t k = 0; k < kept.size(); ++k) {
    const auto& rule = arithmetic_rules()[k];
    lines.check_rule("arithmetic", rule.name, kept[k] ? rule.kept : rule.broken, rule.kept, rule.cause);
  }
  lines.check("functions", "exp, log, sqrt, powers, cos", digest_of_functions());
  lines.check("numbers", "random", digest_of_random_numbers());
  lines.check("numbers", "half precision", digest_of_halves());
  lines.check("products", "of dense matrices", digest_of_dense_products(threads));
  lines.check_rule("reduction", "1 + .. + 1000 over the ranks", fmt::format("{}", exact_sum(world)), "500500",
                   "what the MPI library adds up over the ranks is not their sum");
  lines.check("reduction", "gradients in fixed point", digest_of_gradient_sum(world));
  for (const char* kind : {"adam", "sgd"}) lines.check("optimizer", kind, digest_of_optimizer(kind));
}

void add_draws(std::vector<VerifiedRun>& runs) {
  for (const auto& kind : sampler_kinds()) {
    const std::string name = kind.name;
    const auto add = [&](const std::string& more, const Keys& keys, bool typed = false) {
      const char* const fanout = kind.induces      ? "sampler.fanout=[-1,-1]"
                                 : kind.layer_wise ? "sampler.fanout=[60,60]"
                                                   : "sampler.fanout=[4,3]";
      runs.push_back({"draws", name + more, typed, joined({"sampler.kind=" + name, fanout}, keys)});
    };
    if (!kind.takes_mode) add("", {});
    if (kind.takes_mode)
      for (const std::string mode : {"debiased", "paper", "reference"})
        add(", " + mode, {"sampler.mode=" + mode});
    // By the entries of gcn's matrix.
    if (kind.takes_weighted) add(", weighted", {"sampler.weighted=true", "model.kind=gcn"});
    add(", typed", {"model.kind=rgcn"}, true);
  }
}

void add_layers(std::vector<VerifiedRun>& runs) {
  for (const auto& kind : layer_kinds()) {
    const std::string name(kind.name);
    const auto add = [&](const char* group, const std::string& more, const Keys& keys) {
      runs.push_back({group, name + more, kind.takes_relations, joined({"model.kind=" + name}, keys)});
    };
    add("forward", "", {"train.epochs=1", "train.learning_rate=0"});
    add("training", "", {});
    if (kind.takes_edges) add("training", ", features of edges", {"model.edge_features=true"});
    if (kind.takes_aggregator)
      for (const std::string aggregator : {"max", "sum"})
        add("training", ", " + aggregator, {"model.aggregator=" + aggregator});
  }
}

void add_the_rest(std::vector<VerifiedRun>& runs) {
  const Keys history = {"history.kind=replace"};
  const Keys learnt = {"model.kind=rgcn", "model.embedding=6", "model.normalize=batch", "model.dropout=0.3"};
  runs.insert(runs.end(),
              {{"with", "dropout", false, {"model.kind=gat", "model.dropout=0.4"}},
               {"with", "normalisation of batches", false, {"model.normalize=batch"}},
               {"with", "normalisation of rows", false, {"model.normalize=layer"}},
               {"with", "history", false, history},
               {"with", "learnt rows", true, learnt},
               {"with", "an order, local batches", false, {"sampler.groups=8", "graph.order=in-memory"}},
               {"with", "subgraphs", false, {"sampler.kind=subgraph", "sampler.fanout=[-1,-1]"}},
               {"with", "samples and rows ahead", false, {"run.overlap=true"}, "training sage"},
               {"restart", "history", false, history, "with history"},
               {"restart", "learnt rows, normalisation", true, learnt, "with learnt rows"}});
}

}  // namespace

void verify_command(const Communicator& world, const VerifyArguments& arguments) {
  // 1. What is asked for?
  note_activity("verifying");
  if (const auto c = arguments.replication; c > 0 && world.size() % c != 0)
    usage_error("--replication {} does not divide the number of ranks, {}; choose a divisor of {}", c,
                world.size(), world.size());
  agree(world, [&] {
    if (world.rank() == 0 && !arguments.folder.empty())
      check_output(arguments.folder + "/espalier-verify.h5");
  });
  const auto config = verify_config(arguments, 1, {});
  const auto node = place_on_node(world);
  const auto device = choose_device(world, node, config);
  const auto threads = choose_threads({}, node.cores / node.sharers, screen_of(world));
  if (arguments.print_values && device.gpu)
    usage_error("--print-values: the expected values are those of the CPU; give --device cpu");
  log::info("{}, {}, {}", counted(world.size(), "rank"), threads.in_words("per rank"), device.words);
  if (device.gpu)
    log::info(
        "forward, training, with and restart: on GPUs losses agree to 4 digits (near); all else to the bit");

  // 2. From the base upwards.
  VerifyLines lines(world, device.gpu != nullptr, arguments.print_values);
  verify_kernels(world, threads.count, lines);
  MadeGraphs graphs;
  make_graphs(world, graphs);
  if (world.size() > graphs.batches)
    log::info("an epoch has {}: some of the {} ranks keep none", counted(graphs.batches, "batch"),
              world.size());
  lines.check("graph", "made and read", graphs.digests);
  lines.check("graph", "order", digest_of(graphs.order));
  std::vector<VerifiedRun> list;
  add_draws(list);
  add_layers(list);
  add_the_rest(list);
  VerifyRuns runs(world, arguments, graphs, lines);
  for (const auto& run : list) runs.check(run);
  lines.finish();
}

}  // namespace espalier
