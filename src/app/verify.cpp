// espalier verify: computes what is known, on this machine, with this build, and compares.
//
// From the base upwards: arithmetic, random numbers and sums over the ranks; a graph made in
// memory; every sampler by every schedule on every grid; every kind of layer, two epochs with
// train.reproducible; what stands around layers; a restart. Each has one result for all machines,
// ranks and grids (design, 4.1 and 4.2), which is compiled in (verify_values.inl.hpp).
#include "verify_runs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "commands.hpp"
#include "espalier/base/arithmetic_rules.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/nn/layer.hpp"
#include "job_in_words.hpp"

namespace espalier {

// Lines go from the base upwards, so that the first that differs names the fault.
//
// The table of expected values, verify_values.inl.hpp, is written by `make verify-values`. Values
// do not depend on ranks, grid, schedule, threads, instruction set, compiler or MPI library.
// Printing them anew is right where a change was meant to change results (another random number,
// another order of a sum, another layer), which CHANGELOG.md then says; never because a machine
// disagrees: that is what the command is for.

namespace {

constexpr std::pair<const char*, const char*> kValues[] = {
#include "verify_values.inl.hpp"
};

// What a difference means where nothing below it differs, group by group.
constexpr std::pair<const char*, const char*> kMeanings[] = {
    {"functions",
     "the compiler has changed products and sums of plain code: exponentials and logarithms are made of "
     "them"},
    {"numbers", "the compiler has made other integers or bits of plain code: try it at -O1, or another one"},
    {"products", "dense products are added in another order, or rounded otherwise, by this build"},
    {"reduction", "what the MPI library adds up over the ranks is not their sum"},
    {"optimizer", "the optimiser takes another step from the same gradients"},
    {"graph", "the graph that is made here is another one: see the lines that say how it is read or made"},
    {"draws",
     "other minibatches: where some ways to sample agree, what the others send between ranks (the MPI "
     "library, the GPUs' exchange); where none does, the draw itself"},
    {"forward", "the forward pass of this layer, or the rows that it is given"},
    {"training", "the backward pass of this layer, or the optimiser: the forward pass agrees"},
    {"with", "what is named, around layers that agree"},
    {"restart", "a training that goes on is not the one that was stopped: its state is not whole"},
};

const char* find(std::span<const std::pair<const char*, const char*>> table, const std::string& key) {
  for (const auto& [name, text] : table)
    if (key == name) return text;
  return nullptr;
}

// On GPUs the dense products of training are cuBLAS's, whose sums have another order (docs/gpu.md):
// 1e-7 of a product. Adam divides by the root of the squares and so carries it whole into the
// weights. By the emulation's products, whose order is another too, losses differ by 2e-7.
constexpr double kTolerance = 1e-4;

// The losses that a text begins with; its digests, of weights, are left out.
std::vector<double> losses_of(const std::string& text) {
  std::vector<double> losses;
  std::istringstream words(text);
  for (std::string word; words >> word && word.find('.') != std::string::npos;)
    losses.push_back(std::strtod(word.c_str(), nullptr));
  return losses;
}

bool are_near(const std::string& found, const std::string& expected) {
  const auto a = losses_of(found), b = losses_of(expected);
  return !a.empty() && std::ranges::equal(a, b, [](double x, double y) {
    return std::fabs(x - y) <= kTolerance * std::fabs(y);
  });
}

}  // namespace

void VerifyLines::check(const std::string& group, const std::string& name, const std::string& found,
                        const std::string& key, const std::string& where) {
  const auto whole_key = key.empty() ? group + " " + name : key;
  if (prints_values_) {
    const auto known = std::ranges::find(values_, whole_key, &std::pair<std::string, std::string>::first);
    if (known == values_.end())
      values_.emplace_back(whole_key, found);
    else
      judge(group, name, found, known->second, "two ways that must agree do not", where);
    return;
  }
  const auto* const expected = find(kValues, whole_key);
  const auto* const meaning = find(kMeanings, group);
  judge(group, name, found, expected ? expected : "nothing: verify_values.inl.hpp has no such line",
        meaning ? meaning : "", where);
}

void VerifyLines::check_rule(const std::string& group, const std::string& name, const std::string& found,
                             const std::string& expected, const std::string& cause) {
  judge(group, name, found, expected, cause, "");
}

void VerifyLines::judge(const std::string& group, const std::string& name, const std::string& found,
                        const std::string& expected, const std::string& cause, const std::string& where) {
  const bool has_losses = group == "forward" || group == "training" || group == "with" || group == "restart";
  const bool same = found == expected, near = on_gpu_ && has_losses && are_near(found, expected);
  const auto differ = world_.all_gather(static_cast<int>(!same && !near), "verify");
  const auto odd = std::ranges::count(differ, 1);
  const auto rank = odd == 0 ? 0 : std::ranges::find(differ, 1) - differ.begin();
  const auto shown = world_.broadcast_text(found, static_cast<int>(rank), "verify");
  const char* const verdict = odd > 0 ? "DIFFERS" : same ? "same" : "near";
  auto words = shown;
  if (odd > 0) words += fmt::format("; expected {}", expected);
  if (odd > 0 && !where.empty()) words += fmt::format(" ({})", where);
  if (odd > 0 && odd < world_.size())
    words += fmt::format(" (on {} of {} ranks, first rank {})", odd, world_.size(), rank);
  ++lines_;
  if (odd > 0 && differing_++ == 0) {
    first_ = group + " " + name;
    meaning_ = cause;
  }
  if (!prints_values_ || odd > 0) log::info("{:<11}{:<41}{:<9}{}", group, name, verdict, words);
}

void VerifyLines::finish() const {
  if (differing_ > 0)
    throw UserError(ExitCode::kInternal,
                    fmt::format("{} of {} lines differ; the first, {}, most likely means: {}", differing_,
                                lines_, first_, meaning_));
  if (!prints_values_) return log::info("{} lines, all as expected", lines_);
  std::string table =
      "// What `espalier verify` expects, by line: written by `make verify-values`; verify.cpp says "
      "when.\n/* clang-format off */\n";
  for (const auto& [key, value] : values_) table += fmt::format("{{\"{}\", \"{}\"}},\n", key, value);
  if (world_.rank() == 0) log::print(table);
}

// ---- the command ----

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
