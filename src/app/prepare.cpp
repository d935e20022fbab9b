// espalier prepare: a graph file made fit, its vertices in another order, and links among its
// edges, of which those that are to be found are taken out.
#include <filesystem>
#include <optional>

#include "clean_words.hpp"
#include "edge_facts.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/escape.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/progress.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/file/csv.hpp"
#include "espalier/graph/rewrite_graph.hpp"
#include "number_option.hpp"

namespace espalier {

namespace {

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
