// espalier COMMAND ...: reads the command line and calls the command (commands.hpp, one file each).
#include <fcntl.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <functional>
#include <iostream>

#include "commands.hpp"
#include "espalier/base/buffer.hpp"
#include "espalier/base/config.hpp"
#include "espalier/base/crash_guard.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/process.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/version.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/node_memory.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/file/hdf5.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "espalier/partition/order.hpp"

namespace {

using namespace espalier;

constexpr std::int64_t kMostRanks = 1 << 20;  // that `info` and `plan` speak of
constexpr std::int64_t kMostLayers = 64;
constexpr std::int64_t kMostDrawn = 1'000'000'000;  // epochs or minibatches
constexpr double kMostMinutes = 1'000'000;

struct Arguments {
  ImportArguments import;
  GenerateArguments generate;
  PrepareArguments prepare;
  PartitionArguments partition;
  InfoArguments info;
  DigestArguments digest;
  JobArguments job;
  InferArguments infer;
  PlanArguments plan;
  CalibrateArguments calibrate;
  VerifyArguments verify;
  std::string help_topic;
  bool verbose = false;
  bool quiet = false;
};

using Action = std::function<void(const Communicator&)>;

CLI::App* add_command(CLI::App& app, const char* name) {
  auto* command = app.add_subcommand(name, help_summary(name));
  command->footer(help_example(name));
  return command;
}

// One that calls run(world, a) when `a` was read.
template <class Arguments>
CLI::App* add_command(CLI::App& app, const char* name, Action& action, Arguments& a,
                      void (*run)(const Communicator&, const Arguments&)) {
  auto* command = add_command(app, name);
  command->callback([&action, &a, run] { action = [&a, run](const Communicator& world) { run(world, a); }; });
  return command;
}

void add_stall_option(CLI::App* command, double& minutes) {
  add_number(command, "--stall-minutes", minutes, {0, kMostMinutes},
             "end when nothing was read, written or exchanged for so long, saying where; 0: never");
}

// Of commands that write a file.
template <class Arguments>
void add_output_options(CLI::App* command, Arguments& a) {
  add_stall_option(command, a.stall_minutes);
  command->add_flag("--overwrite", a.overwrite, "replace a file that exists");
}

void add_seed_option(CLI::App* command, std::int64_t& seed, const char* about) {
  add_whole_number(command, "--seed", seed, {0, std::numeric_limits<std::int64_t>::max()}, about);
}

void add_import(CLI::App& app, ImportArguments& a, Action& action) {
  auto* import = add_command(app, "import", action, a, import_command);
  import->require_subcommand(1);
  for (const auto& format : import_formats()) {
    auto* kind = import->add_subcommand(format.name, format.reads);
    kind->footer("");  // that of import has all of it, once
    format.add_options(*kind, a);
    kind->add_option("-o,--output", a.output, "the graph file to write");
    auto* describe = kind->add_flag(
        "--describe", a.describe, "write no graph file, but print a description in TOML that means the same");
    // It then says why, and what helps.
    if (*format.no_description != '\0') describe->group("");
    add_output_options(kind, a);
    kind->callback([&a, name = format.name] {
      a.format = name;
      if (a.output.empty() && !a.describe) throw CLI::RequiredError("--output");
    });
  }
}

void add_generator_options(CLI::App* kind, GenerateArguments& a) {
  add_whole_number(kind, "--features", a.features, {0, kMostFeatures}, "columns of the feature matrix");
  add_whole_number(kind, "--classes", a.classes, {1, kMostClasses}, "number of classes");
  add_whole_number(kind, "--labels", a.labels, {0, kMostClasses},
                   "labels of 0 or 1 per vertex in place of its class, some of them unknown; 0: the class");
  add_seed_option(kind, a.seed, "the same seed gives the same graph for every number of ranks");
  kind->add_option("-o,--output", a.output, "the graph file to write")->required();
  kind->add_flag("--half", a.half, "store features as float16");
  add_output_options(kind, a);
}

void add_generate(CLI::App& app, GenerateArguments& a, Action& action) {
  auto* generate = add_command(app, "generate", action, a, generate_command);
  generate->require_subcommand(1);
  auto* rmat =
      generate->add_subcommand("rmat", "Graph500's R-MAT: 2^scale vertices, edge-factor * 2^scale edges");
  add_whole_number(rmat, "--scale", a.scale, {1, kMostScale}, "log2 of the number of vertices");
  add_whole_number(rmat, "--edge-factor", a.edge_factor, {1, kMostEdgeFactor},
                   "edges per vertex before duplicates are merged");
  rmat->add_flag("--symmetrize", a.symmetrize, "add the reverse of every edge");
  rmat->add_flag("--drop-self-loops", a.drop_self_loops, "leave out edges from a vertex to itself");
  auto* planted =
      generate->add_subcommand("planted", "a planted partition: communities that a GNN can learn");
  auto* nodes = add_whole_number(planted, "--nodes", a.nodes, {2, kMostNodes}, "number of vertices");
  auto* degree =
      add_number(planted, "--degree", a.degree, {0, static_cast<double>(kMostNodes)}, "expected degree");
  add_number(planted, "--homophily", a.homophily, {0, 1}, "fraction of edges inside a class");
  add_whole_number(planted, "--edge-features", a.edge_features, {0, kMostFeatures},
                   "numbers of each edge; the first tells whether its ends are of one class");
  for (auto* kind : {rmat, planted}) add_generator_options(kind, a);
  auto* types =
      planted->add_option("--types", a.types,
                          "vertex types in place of --nodes: NAME=VERTICES[:FEATURES],...; the first "
                          "has the labels and the splits");
  auto* relations =
      planted->add_option("--relations", a.relations, "in place of --degree: SOURCE.NAME.TARGET=EDGES,...");
  auto* no_inverse = planted->add_flag("--no-inverse", a.no_inverse,
                                       "leave out rev_NAME, each relation the other way round");
  for (auto* other : {nodes, degree, planted->get_option("--features")}) types->excludes(other);
  types->needs(relations);
  for (auto* other : {relations, no_inverse}) other->needs(types);
  for (auto* kind : {rmat, planted}) {
    kind->callback([&a, kind, types] {
      a.kind = kind->get_name();
      a.typed = types->count() > 0;
    });
  }
}

void add_prepare(CLI::App& app, PrepareArguments& a, Action& action) {
  auto* prepare = add_command(app, "prepare", action, a, prepare_command);
  prepare->add_option("FILE", a.file, "a graph file")->required();
  prepare->add_option("-o,--output", a.output, "the graph file to write")->required();
  prepare->add_flag("--drop-loops,--drop-self-loops", a.drop_loops,
                    "leave out edges from a vertex to itself");
  prepare->add_flag("--drop-duplicates", a.drop_duplicates,
                    "make one of edges that are repeated; rows may be in any order");
  prepare->add_option("--duplicates", a.duplicates,
                      "what their weights and features become: first, last, sum, mean, or count: a weight "
                      "that says how many they were (first)");
  prepare->add_option("--duplicate-times", a.duplicate_times,
                      "which of their times stays: first, the earliest, or last (first)");
  prepare->add_flag("--symmetrise,--symmetrize", a.symmetrise,
                    "give each edge its reverse, with its weight and features, where that is no edge");
  prepare->add_flag("--largest-component", a.largest_component, "leave out the vertices of all others");
  prepare->add_option("--relabel", a.relabel,
                      "number the vertices anew: by degree, component, order:FILE, order-degree:FILE or "
                      "random:SEED");
  prepare->add_option(
      "--split-links", a.shares,
      "choose links among the edges: the shares of train, valid and test, as 0.8,0.1,0.1; of 0 "
      "there is no such split");
  prepare->add_option("--relations", a.relations,
                      "of a graph with types: whose edges are links, NAME,... (all, but inverses)");
  prepare->add_option("--inverse", a.inverses,
                      "A=B,...: relation B has the edges of A the other way round; they go with the links");
  prepare->add_option(
      "--also", a.also,
      "NAME,...: relations whose edges are no links; those that join the ends of a link in valid "
      "or test are left out, too");
  prepare->add_flag("--by-time", a.by_time, "the latest links of a relation are test, those before valid");
  add_seed_option(prepare, a.seed, "the same seed gives the same splits for every number of ranks");
  add_output_options(prepare, a);
}

void add_partition(CLI::App& app, PartitionArguments& a, Action& action) {
  auto* partition = add_command(app, "partition", action, a, partition_command);
  partition->add_option("FILE", a.file, "a graph file")->required();
  partition->add_option("-o,--output", a.output,
                        "the file to write (FILE with .order.h5 for .h5, with --edges .cut.h5)");
  partition->add_option("--method", a.method, "how: the methods below (metis, where it can hold the graph)");
  add_whole_number(partition, "--clusters", a.clusters, {1, kMostClusters}, "how many clusters (1024)");
  partition->add_flag("--edges", a.edges, "parts of the edges, which share vertices: a vertex cut");
  add_whole_number(partition, "--parts", a.parts, {1, kMostEdgeParts},
                   "with --edges: how many (64); with --by: block rows of a grid (its parts)");
  partition->add_option("--by", a.by, "with --method cut: a file of parts of edges");
  add_seed_option(partition, a.seed, "of what is left to chance");
  partition->add_flag("--fast", a.fast, "one attempt and one refinement: sooner done, more edges cut");
  partition->add_flag("--ignore-types", a.ignore_types,
                      "parts are even in all vertices, not in those of each type: fewer edges cut");
  add_output_options(partition, a);
}

void add_info(CLI::App& app, InfoArguments& a, Action& action) {
  auto* info = add_command(app, "info", action, a, info_command);
  info->add_option("FILE", a.file, "a graph file, or an order")->required();
  add_whole_number(info, "--ranks", a.ranks, {1, kMostRanks}, "show memory per rank for so many ranks");
  add_whole_number(info, "--replication", a.replication, {1, kMostRanks},
                   "and so many copies of each block row");
  add_stall_option(info, a.stall_minutes);
}

void add_digest(CLI::App& app, DigestArguments& a, Action& action) {
  auto* digest = add_command(app, "digest", action, a, digest_command);
  digest->add_option("FILE", a.file, "a graph file")->required();
  digest->add_flag("--write", a.write, "write the digests into the file, in place of those that stand there");
  add_stall_option(digest, a.stall_minutes);
}

void add_job(CLI::App& app, const char* name, JobArguments& a, Action& action,
             void (*command)(const Communicator&, const JobArguments&)) {
  auto* job = add_command(app, name, action, a, command);
  job->add_option("CONFIG", a.config, "the input file (TOML)")->required();
  job->add_option("KEY=VALUE", a.overrides,
                  "section.key=value, wins over the file; `espalier help config` lists the keys");
  job->add_flag("--dry-run", a.dry_run, "print the resolved config and stop");
  const bool samples = std::string(name) == "sample";
  job->add_flag("--overwrite", a.overwrite,
                samples ? "replace a finished run in output.dir, and finished minibatches"
                        : "replace a finished run in output.dir");
  if (samples) {
    add_whole_number(job, "--epochs", a.epochs, {1, kMostDrawn}, "how many epochs to draw (1)")
        ->default_str("");
    job->add_option("--write", a.write, "a folder that the minibatches go to, for espalier.Minibatches");
  }
}

void add_infer(CLI::App& app, InferArguments& a, Action& action) {
  auto* infer = add_command(app, "infer", action, a, infer_command);
  infer->add_option("CONFIG", a.job.config, "the input file (TOML) of the training")->required();
  infer->add_option("KEY=VALUE", a.job.overrides, "section.key=value, wins over the file");
  infer
      ->add_option("--checkpoint", a.checkpoint,
                   "weights.h5 of a training, or one of its checkpoints: the best weights in it")
      ->required();
  infer->add_option("-o,--output", a.output, "the HDF5 file to write")->required();
  add_whole_number(infer, "--layer", a.layer, {1, kMostLayers}, "whose rows are written (the last)");
  infer->add_option(
      "--types", a.types,
      "of a graph with types: whose rows are written, NAME,... or all, each type's in a group of "
      "its own (the target's, at the root)");
  infer->add_option(
      "--nodes", a.nodes,
      "a text file, a vertex on a line: rows of these only; by the ids that the graph has, or by "
      "numbers, counted within the type");
  infer
      ->add_option(
          "--named-by", a.named_by,
          "ids or numbers: how --nodes and --links name vertices; must be said where ids are numbers")
      ->check(CLI::IsMember({"ids", "numbers"}));
  auto* links = infer->add_option(
      "--links", a.links,
      "of a network that learnt links: a text file, head, relation and tail on a line; writes "
      "their scores as CSV instead of rows");
  auto* top = infer
                  ->add_option("--top", a.top,
                               "the lines of --links have no tails: so many best ones of each are written")
                  ->check(CLI::Range(std::int64_t{1}, kMostDrawn));
  top->needs(links);
  infer->add_flag("--predictions", a.predictions, "write the predicted classes, too");
  infer->add_option("--csv", a.csv,
                    "write them as CSV, too: id, class, probability, by the names that the graph has");
  infer->add_flag("--metrics", a.metrics, "accuracy and macro-F1 of the splits: printed, and in the file");
  infer->add_option("--resume", a.resume,
                    "a folder for layers that are done: the same command goes on after them, on any ranks");
  infer->add_flag(
      "--sampled", a.sampled,
      "read of each layer what sampler.* draws for a vertex by train.seed, not all its neighbours");
  infer->add_flag("--half", a.half, "store rows as float16");
  infer->add_flag("--overwrite", a.overwrite, "replace a file that exists");
  for (const char* name : {"--layer", "--types", "--nodes", "--predictions", "--csv", "--metrics", "--half"})
    links->excludes(infer->get_option(name));
}

void add_plan(CLI::App& app, PlanArguments& a, Action& action) {
  auto* plan = add_command(app, "plan", action, a, plan_command);
  plan->add_option("CONFIG", a.job.config, "the input file (TOML)")->required();
  plan->add_option("KEY=VALUE", a.job.overrides, "section.key=value, wins over the file");
  add_whole_number(plan, "--ranks", a.ranks, {1, kMostRanks}, "how many ranks the job will have")->required();
  plan->add_option("--memory-per-rank", a.memory_per_rank, "as 8GiB or 500MB; else that of the machine");
  plan->add_option("--machine", a.machine,
                   "a machine file (inputs/machines/, `espalier calibrate`): seconds too");
  plan->add_option("-o,--output", a.output,
                   "where the plan goes as JSON (plan.json in output.dir); replaces a plan only");
  plan->add_flag("--sampling", a.sampling, "plan `espalier sample` instead of `espalier train`");
  add_whole_number(plan, "--draw", a.draw, {0, kMostDrawn},
                   "draw at most so many minibatches; 0: estimate from degrees");
}

void add_calibrate(CLI::App& app, CalibrateArguments& a, Action& action) {
  auto* calibrate = add_command(app, "calibrate", action, a, calibrate_command);
  calibrate->add_option("-o,--output", a.output,
                        "the machine file to write, replacing one only; else it is printed");
  calibrate->add_option("--name", a.name, "of the machine; else this host's");
  calibrate->add_flag("--fastest", a.fastest,
                      "measure with the fastest ranks x threads of a node, of as many ranks as there are");
}

void add_verify(CLI::App& app, VerifyArguments& a, Action& action) {
  auto* verify = add_command(app, "verify", action, a, verify_command);
  verify->add_option("--device", a.device, "auto, cpu or cuda, as run.device")->capture_default_str();
  add_whole_number(verify, "--replication", a.replication, {1, kMostRanks},
                   "copies of each block row (each number that divides the ranks)");
  verify->add_option(
      "--folder", a.folder,
      "go on from a checkpoint in this folder, which all ranks see, and remove it; else nothing is "
      "written");
  verify->add_flag("--print-values", a.print_values,
                   "print what was found as the table of expected values, for a change that was meant");
}

void add_help(CLI::App& app, std::string& topic, const std::string& overview, Action& action) {
  auto* help = add_command(app, "help");
  help->add_option("COMMAND", topic, "a command, or config");
  help->callback([&] {
    action = [&](const Communicator&) {
      if (topic == "config")
        log::info("Keys of an input file, their defaults and meaning:\n\n{}", describe_config_keys());
      else if (topic.empty())
        log::info("{}", overview);
      else
        log::info("{}", command_help(app, topic));
    };
  });
}

// Has a job done its work when its files are there? Of other commands, what they print is
// the result.
bool writes_its_result(const std::string& command) {
  return command == "train" || command == "infer" || command == "import" || command == "generate" ||
         command == "prepare" || command == "partition";
}

// Collective. Has standard output taken all of it? Only rank 0 prints.
void check_output(const Communicator& world, bool is_result) {
  const auto problem = world.rank() == 0 ? log::output_failure() : std::string();
  agree(world, [&] {
    if (!problem.empty() && is_result)
      usage_error("cannot write to standard output: {}; what was printed is not complete", problem);
  });
  if (!problem.empty())
    log::warning("cannot write to standard output: {}; what was printed is not complete", problem);
}

// The words of the command line; `import GRAPH.toml` stands for `import toml GRAPH.toml`.
std::vector<char*> words_of(int argc, char** argv) {
  static char kind[] = "toml";
  std::vector<char*> words(argv, argv + argc);
  const auto command =
      std::find_if(words.begin() + 1, words.end(), [](const char* word) { return *word != '-'; });
  if (words.end() - command > 1 && std::string_view(command[0]) == "import" &&
      std::string_view(command[1]).ends_with(".toml"))
    words.insert(command + 1, kind);
  return words;
}

int run(const Communicator& world, int given, char** as_given) {
  auto words = words_of(given, as_given);
  const auto argc = static_cast<int>(words.size());
  auto* const* argv = words.data();
  Arguments arguments;
  Action action;
  std::string overview;
  CLI::App app("Espalier trains graph neural networks on a process grid.", "espalier");
  app.set_help_flag("-h,--help", "show help");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("-v,--verbose", arguments.verbose, "say more");
  app.add_flag("-q,--quiet", arguments.quiet, "warnings and errors only");
  add_import(app, arguments.import, action);
  add_generate(app, arguments.generate, action);
  add_prepare(app, arguments.prepare, action);
  add_partition(app, arguments.partition, action);
  add_info(app, arguments.info, action);
  add_digest(app, arguments.digest, action);
  add_job(app, "sample", arguments.job, action, sample_command);
  add_job(app, "train", arguments.job, action, train_command);
  add_infer(app, arguments.infer, action);
  add_plan(app, arguments.plan, action);
  add_calibrate(app, arguments.calibrate, action);
  add_verify(app, arguments.verify, action);
  // For help: main() runs them.
  for (const char* name : {"report", "sweep"}) add_command(app, name);
  add_help(app, arguments.help_topic, overview, action);
  add_command(app, "version")->callback([&action] {
    action = [](const Communicator&) { log::info("espalier {}", kVersion); };
  });
  app.footer(
      "`espalier help COMMAND` shows an example that works; `espalier help config` lists the keys of an "
      "input file.");

  overview = app.help();
  if (argc == 1) {
    log::info("{}", overview);
    usage_error("name a command");
  }
  if (argv[1][0] != '-') check_command(argv[1]);
  if (argv[1][0] != '-' && (argc == 2 || argv[2][0] != '-'))
    check_kind(app, argv[1], argc == 2 ? "" : argv[2]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    // -h after a command asks about that command.
    const auto asked = app.get_subcommands();
    log::info("{}", asked.empty() ? overview : command_help(app, asked.front()->get_name()));
    check_output(world, true);
    return 0;
  } catch (const CLI::ParseError& error) {
    const auto asked = app.get_subcommands();
    usage_error("{}; see `espalier help{}`. Keys of an input file are given as train.epochs=2", error.what(),
                asked.empty() ? "" : " " + asked.front()->get_name());
  }
  log::set_up(world.rank(), arguments.quiet     ? log::Level::kWarning
                            : arguments.verbose ? log::Level::kDebug
                                                : log::Level::kInfo);
  action(world);
  check_output(world, arguments.job.dry_run || arguments.import.describe ||
                          !writes_its_result(app.get_subcommands().front()->get_name()));
  return 0;
}

// A file that is opened while 0, 1 or 2 is closed would get its number, and what is printed. One
// that cannot be written to stands in for it.
void hold_standard_streams() {
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0) return;
}

// Every rank is expected to leave with the same error. One that leaves alone must not make the
// others wait.
int leave(const Communicator& world, const UserError& error) {
  constexpr double kPatienceSeconds = 5;
  note_leaving();
  if (!all_arrive_within(world, kPatienceSeconds)) fail_job(error.code(), error.what());
  if (world.rank() == 0) {
    if (error.code() == ExitCode::kSignal)
      log::warning("{}", error.what());
    else
      log::error("{}", error.what());
  }
  keep_exit_code(static_cast<int>(error.code()));
  return static_cast<int>(error.code());
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is a disk that is full
  keep_freed_memory();
  // Of a library, about a file that is not trusted; it needs no MPI.
  if (argc == 3 && std::string_view(argv[1]) == "look-at") return hdf5::look_at(argv[2]);
  if (char** const words = python_command(argv)) return run_python_command(words);
  espalier::Session session(&argc, &argv);
  program_memory();
  log::set_up(session.world().rank(), log::Level::kInfo);
  watch_signals();
  exchange_node_peers(session.world());
  try {
    const int code = run(session.world(), argc, argv);
    note_leaving();
    return code;
  } catch (const UserError& error) {
    return leave(session.world(), error);
  } catch (const std::exception& error) {
    fail_job(ExitCode::kInternal, error.what());
  }
}
