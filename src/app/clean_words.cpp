#include "clean_words.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "espalier/base/counted.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/named.hpp"
#include "job.hpp"
#include "number_option.hpp"

namespace espalier {

namespace {

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

std::string words_of(const PrepareArguments& arguments) {
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

}  // namespace

bool asks_to_clean(const PrepareArguments& arguments) {
  return arguments.drop_loops || arguments.drop_duplicates || arguments.symmetrise ||
         arguments.largest_component || arguments.relabel;
}

CleanOptions clean_options(const PrepareArguments& arguments) {
  CleanOptions options{.drop_loops = arguments.drop_loops,
                       .drop_duplicates = arguments.drop_duplicates,
                       .symmetrise = arguments.symmetrise,
                       .largest_component = arguments.largest_component,
                       .words = words_of(arguments)};
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

std::optional<Order> read_clean_order(const Communicator& world, const PrepareArguments& arguments,
                                      const GraphFile& file) {
  const auto [name, path] = parts_of(arguments.relabel.value_or(""));
  if (name != "order" && name != "order-degree") return {};
  auto order = read_order(world, path);
  check_order(order.info, file, path);
  return order;
}

namespace {

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

}  // namespace

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

}  // namespace espalier
