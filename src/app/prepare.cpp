// espalier prepare: a graph file made fit, its vertices in another order, and links among its
// edges, of which those that are to be found are taken out.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/file/csv.hpp"
#include "espalier/graph/graph_facts.hpp"
#include "espalier/graph/rewrite_graph.hpp"
#include "espalier/partition/partition_methods.hpp"

namespace espalier {

namespace {

// ---- cleaning ----

constexpr Named<Duplicates> kRepeats[] = {{"first", Duplicates::kFirst},
                                          {"last", Duplicates::kLast},
                                          {"sum", Duplicates::kSum},
                                          {"mean", Duplicates::kMean},
                                          {"count", Duplicates::kCount}};

struct OrderWord {
  const char* name;
  RowOrder order;
  const char* about;  // what stands behind the colon; null: nothing
  const char* in_words;
};

constexpr OrderWord kOrders[] = {
    {"degree", RowOrder::kDegree, nullptr, "most edges first"},
    {"component", RowOrder::kComponent, nullptr, "component by component, the largest first"},
    {"order", RowOrder::kCluster, "a file of `espalier partition`", "cluster by cluster"},
    {"order-degree", RowOrder::kClusterDegree, "a file of `espalier partition`",
     "cluster by cluster, most edges first in each"},
    {"random", RowOrder::kRandom, "a seed", "at random"}};

// "order" and "FILE" of order:FILE.
std::pair<std::string, std::string> parts_of(const std::string& relabel) {
  const auto colon = relabel.find(':');
  return {relabel.substr(0, colon), colon == std::string::npos ? "" : relabel.substr(colon + 1)};
}

std::uint64_t seed_of(const std::string& relabel, const std::string& text) {
  const auto seed = number_in<std::int64_t>(text);
  if (!seed || *seed < 0)
    usage_error("--relabel {}: give a whole number of at least 0 behind the colon, as random:7", relabel);
  return static_cast<std::uint64_t>(*seed);
}

void read_relabel(const std::string& relabel, CleanOptions& options) {
  const auto [name, rest] = parts_of(relabel);
  const auto& word = entry_named(kOrders, name, "--relabel");
  if (word.about == nullptr && relabel != name)
    usage_error("--relabel {}: {} takes nothing behind a colon; leave it out", relabel, name);
  if (word.about != nullptr && rest.empty())
    usage_error("--relabel {}: give {} behind a colon, as {}", relabel, word.about,
                word.order == RowOrder::kRandom ? "random:7" : name + ":graph.order.h5");
  options.order = word.order;
  if (word.order == RowOrder::kRandom) options.seed = seed_of(relabel, rest);
}

std::string words_of_cleaning(const PrepareArguments& arguments) {
  std::string words = "espalier prepare";
  if (arguments.drop_loops) words += " --drop-loops";
  if (arguments.drop_duplicates) words += " --drop-duplicates";
  if (arguments.duplicates) words += " --duplicates " + *arguments.duplicates;
  if (arguments.duplicate_times) words += " --duplicate-times " + *arguments.duplicate_times;
  if (arguments.symmetrise) words += " --symmetrise";
  if (arguments.largest_component) words += " --largest-component";
  if (arguments.relabel) words += " --relabel " + *arguments.relabel;
  return words;
}

// Is anything asked for but links?
bool asks_to_clean(const PrepareArguments& arguments) {
  return arguments.drop_loops || arguments.drop_duplicates || arguments.symmetrise ||
         arguments.largest_component || arguments.relabel;
}

// Throws UserError(kUsage) for words that there are not, and for options without an effect.
CleanOptions clean_options(const PrepareArguments& arguments) {
  CleanOptions options{.drop_loops = arguments.drop_loops,
                       .drop_duplicates = arguments.drop_duplicates,
                       .symmetrise = arguments.symmetrise,
                       .largest_component = arguments.largest_component,
                       .words = words_of_cleaning(arguments)};
  if (arguments.duplicates) {
    options.repeats = entry_named(kRepeats, *arguments.duplicates, "--duplicates").value;
    if (!arguments.drop_duplicates)
      usage_error("--duplicates {}: says what repeated edges become; give --drop-duplicates, too",
                  *arguments.duplicates);
  }
  if (const auto& times = arguments.duplicate_times) {
    if (*times != "first" && *times != "last")
      usage_error("--duplicate-times {}: give first, the earliest, or last, the latest", *times);
    if (!arguments.drop_duplicates)
      usage_error("--duplicate-times {}: is of repeated edges; give --drop-duplicates, too", *times);
    options.latest_times = *times == "last";
  }
  if (arguments.relabel) read_relabel(*arguments.relabel, options);
  if (options.order == RowOrder::kComponent && options.largest_component)
    usage_error(
        "--relabel component: with --largest-component there is one component; leave one of them out");
  return options;
}

// Collective. The order that --relabel names, where it names one: of this file.
std::optional<Order> read_clean_order(const Communicator& world, const PrepareArguments& arguments,
                                      const GraphFile& file) {
  const auto [name, path] = parts_of(arguments.relabel.value_or(""));
  if (name != "order" && name != "order-degree") return {};
  auto order = read_order(world, path);
  check_order(order.info, file, path);
  return order;
}

std::string outcome_of_repeats(Duplicates repeats, const GraphInfo& before) {
  const bool featured = std::ranges::any_of(before.edge_features, &EdgeInfo::has);
  if (repeats == Duplicates::kCount)
    return std::string("a weight says how many were one") +
           (before.weighted ? ", in place of the weights of the file" : "") +
           (featured ? "; of features the first stay" : "");
  if (!before.weighted && !featured) return "there are no weights and no features, so that each is one edge";
  const char* what = before.weighted && featured ? "weights and features" : featured ? "features" : "weights";
  return repeats == Duplicates::kFirst  ? fmt::format("the first {} stay", what)
         : repeats == Duplicates::kLast ? fmt::format("the last {} stay", what)
         : repeats == Duplicates::kSum  ? fmt::format("{} are summed", what)
                                        : fmt::format("{} are averaged", what);
}

std::string outcome_of_times(const CleanOptions& options, const GraphInfo& before) {
  if (std::ranges::none_of(before.edge_times, [](auto times) { return times > 0; })) return "";
  return options.latest_times ? "; of times the latest stay" : "; of times the earliest stay";
}

void show(const CleanOptions& options, const CleanCounts& counts, const GraphInfo& before) {
  if (options.drop_loops) log::info("self loops {} left out", counts.loops);
  if (options.drop_duplicates && counts.repeated == 0) log::info("duplicates no edge is repeated");
  if (options.drop_duplicates && counts.repeated > 0)
    log::info("duplicates {} {} an earlier one, {} there several times; {}{}",
              counted(counts.repeated, "edge"), counts.repeated == 1 ? "repeats" : "repeat",
              counted(counts.places, "edge is", "edges are"), outcome_of_repeats(options.repeats, before),
              outcome_of_times(options, before));
  if (options.symmetrise)
    log::info("reverses   {} added{}", counts.reversed,
              counts.reversed == 0 ? ": each edge has its reverse already" : "");
  if (counts.components > 0)
    log::info("components {}{}", counts.components,
              options.largest_component
                  ? fmt::format("; the largest has {} of {}", counts.nodes, counted(before.nodes, "vertex"))
                  : "");
  for (const auto& word : kOrders)
    if (word.order == options.order) log::info("numbers    {}", word.in_words);
  if (counts.gives_ids) log::info("ids        the old numbers, as the file had none");
}

// ---- links ----

LinkShares shares_of(const std::string& text) {
  const auto parts = split_text(text, ',');
  LinkShares shares{};
  bool good = parts.size() == shares.size();
  for (std::size_t k = 0; good && k < shares.size(); ++k) {
    const auto share = number_in<double>(parts[k]);
    good = share.has_value();
    shares[k] = share.value_or(0);
  }
  if (!good)
    usage_error("--split-links {}: give three numbers, the shares of train, valid and test, as 0.8,0.1,0.1",
                text);
  return shares;
}

LinkSplitOptions link_options(const PrepareArguments& arguments) {
  LinkSplitOptions options{shares_of(*arguments.shares), static_cast<std::uint64_t>(arguments.seed)};
  const auto listed = [](const std::string& names) {
    return names.empty() ? std::vector<std::string>() : split_text(names, ',');
  };
  options.relations = listed(arguments.relations);
  options.inverses = listed(arguments.inverses);
  options.also = listed(arguments.also);
  check_shares(options.shares);
  options.by_time = arguments.by_time;
  options.words =
      fmt::format("espalier prepare --split-links {} --seed {}", *arguments.shares, arguments.seed);
  if (arguments.by_time) options.words += " --by-time";
  for (const auto& [name, given] :
       {std::pair(" --relations ", arguments.relations), std::pair(" --inverse ", arguments.inverses),
        std::pair(" --also ", arguments.also)})
    if (!given.empty()) options.words += name + given;
  return options;
}

void refuse_options_of_links(const PrepareArguments& arguments) {
  const char* given = !arguments.relations.empty()  ? "--relations"
                      : !arguments.inverses.empty() ? "--inverse"
                      : !arguments.also.empty()     ? "--also"
                      : arguments.by_time           ? "--by-time"
                      : arguments.seed != 0         ? "--seed"
                                                    : nullptr;
  if (given != nullptr) usage_error("{}: is of links; give --split-links, too, or leave it out", given);
}

// ---- both ----

RewriteOptions wishes_of(const PrepareArguments& arguments) {
  RewriteOptions wishes;
  if (arguments.shares)
    wishes.links = link_options(arguments);
  else
    refuse_options_of_links(arguments);
  const auto clean = clean_options(arguments);
  if (asks_to_clean(arguments)) wishes.clean = clean;
  if (!wishes.clean && !wishes.links)
    usage_error(
        "prepare {}: nothing is asked for; give --drop-loops, --drop-duplicates, --symmetrise, "
        "--largest-component, --relabel or --split-links (`espalier help prepare`)",
        arguments.file);
  return wishes;
}

// Rank 0 looks.
void check_paths(const Communicator& world, const PrepareArguments& arguments, const OutputFile& output) {
  agree(world, [&] {
    if (world.rank() != 0) return;
    std::error_code none;
    if (std::filesystem::equivalent(arguments.file, output.path, none))
      usage_error("-o {}: is the file that is read; give another name", output.path);
    check_output(output);
  });
}

// Collective.
void warn_of_others(const Communicator& world, const GraphFile& file) {
  const auto names = file.other_datasets();
  if (world.rank() != 0) return;
  for (const auto& name : names)
    log::warning("{} of {} is not copied: this program does not know it", name, file.path());
}

void show(const LinkSplitCounts& counts, const LinkInfo& links, const LinkSplitOptions& options) {
  log::info("links      train {}, valid {}, test {}{}", counts.links[0], counts.links[1], counts.links[2],
            counts.pairs             ? ", each pair of vertices once"
            : links.names.size() > 1 ? fmt::format(", of {} relations", links.names.size())
                                     : "");
  if (options.by_time) {
    const auto all = static_cast<double>(counts.links[0] + counts.links[1] + counts.links[2]);
    const auto share = [&](int split) { return static_cast<double>(counts.links[split]) / all; };
    log::info("shares     train {:.4f}, valid {:.4f}, test {:.4f}: links of one moment are in one split",
              share(0), share(1), share(2));
  }
  if (!options.also.empty())
    log::info("also       {} between the ends of links in valid and test {} left out",
              counted(counts.beside, "edge"), counts.beside == 1 ? "is" : "are");
  if (counts.loops > 0)
    log::info("self loops {}, which are no links and stay", counted(counts.loops, "edge"));
  if (counts.reversed > 0)
    log::info(
        "directed   {} of {} edges have their reverse; a link and its reverse may be in different splits",
        counts.reversed, counts.directed);
}

GraphView view_of_relations() {
  GraphView view;
  view.apart = true;
  return view;
}

// Collective. The graph at `output`. How many edges there were.
std::int64_t rewrite(const Communicator& world, const PrepareArguments& arguments, RewriteOptions& wishes,
                     RewriteCounts& counts, const OutputFile& output) {
  auto view = view_of_relations();
  view.repeats = wishes.clean && wishes.clean->drop_duplicates;
  const GraphFile file(world, arguments.file, view);
  warn_of_others(world, file);
  const auto order = read_clean_order(world, arguments, file);
  if (order) wishes.clean->clusters = order->cluster;
  note_activity(!wishes.links   ? "cleaning the graph"
                : !wishes.clean ? "choosing links and copying the graph"
                                : "cleaning the graph and choosing links");
  counts = rewrite_graph(world, file, wishes, output);
  if (wishes.clean) show(*wishes.clean, counts.clean, file.info());
  return file.info().edges;
}

}  // namespace

void prepare_command(const Communicator& world, const PrepareArguments& arguments) {
  const double start = now();
  const Watchdog watchdog(arguments.stall_minutes, "--stall-minutes");
  set_memory_advice("use more ranks on more nodes: each holds its part of the edges, and of one table");
  note_activity("opening the graph file");
  note_consequence("no graph file was written");
  // 1. What is asked for? Before anything large is read.
  auto wishes = wishes_of(arguments);
  const OutputFile output(arguments.output, arguments.overwrite);
  check_paths(world, arguments, output);
  // 2. The graph, cleaned; links, and the graph without those of valid and test.
  RewriteCounts counts;
  const auto edges_before = rewrite(world, arguments, wishes, counts, output);
  // 3. Open what was written: it must pass the checks of every reader.
  note_activity("checking the graph file");
  note_consequence("the graph file is written, but not checked");
  const GraphFile file(world, output.path, view_of_relations());
  const auto isolated =
      counted(read_edge_facts(world, file, "prepare").isolated, "vertex is", "vertices are");
  if (wishes.links) {
    show(counts.links, file.info().links, *wishes.links);
    log::info("edges      {} of {} are left; {} without an edge", counts.links.edges,
              counts.links.edges_before, isolated);
    for (const auto& sentence : leaks_in_words(file, find_link_leaks(world, file)))
      if (world.rank() == 0) log::warning("{}", sentence);
  } else {
    log::info("edges      {}, {} before; {} without an edge", file.info().edges, edges_before, isolated);
  }
  check_links(world, file);
  log::info("wrote      {}: {}, {}, in {:.1f} s", excerpt(output.path), counted(file.info().nodes, "vertex"),
            counted(file.info().edges, "edge"), now() - start);
}

}  // namespace espalier
