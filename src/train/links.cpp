#include "links.inl.hpp"

#include "espalier/base/log.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/traffic.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/nn/network_shape.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

namespace {

// Of a batch, so that places of their ends are numbered in 32 bits.
constexpr std::int64_t kMostScores = (std::int64_t{1} << 30) - 1;

constexpr MetricKind kLinkMetrics[] = {{"mrr", "MRR"},
                                       {"hits_1", "Hits@1"},
                                       {"hits_3", "Hits@3"},
                                       {"hits_10", "Hits@10"},
                                       {"hits_50", "Hits@50"},
                                       {"hits_100", "Hits@100"},
                                       {"auc", "AUC"},
                                       {"filtered_mrr", "filtered MRR"},
                                       {"filtered_hits_1", "filtered Hits@1"},
                                       {"filtered_hits_3", "filtered Hits@3"},
                                       {"filtered_hits_10", "filtered Hits@10"},
                                       {"filtered_hits_50", "filtered Hits@50"},
                                       {"filtered_hits_100", "filtered Hits@100"}};

const SplitLinks& links_of(const GraphInfo& graph, Split split) {
  return graph.links.splits[static_cast<std::size_t>(split)];
}

// Of the rows that scores are of: hidden, or without layers those that vertices have.
std::int64_t outputs(const GraphInfo& graph, const Config& config) {
  if (config.model.layers > 0 || graph.schema.types().size() > 1) return config.model.hidden;
  return input_shape(graph, false, input_tables(graph, config)).width;
}
std::vector<TensorShape> tensors(const GraphInfo& graph, const Config& config) {
  return link_tensors(link_score_of(config.train), graph.links.relations(), outputs(graph, config));
}
std::array<std::int64_t, 3> count_links(const GraphInfo& graph) {
  return {links_of(graph, Split::kTrain).links, links_of(graph, Split::kValid).links,
          links_of(graph, Split::kTest).links};
}
std::int64_t count_seeds(const GraphInfo& graph, const Config& config, std::int64_t links) {
  return expected_seeds(links, negatives_of(config.train), graph.nodes);
}

LinkList read_list(const Communicator& comm, const GraphFile& file, Split split) {
  const auto count = links_of(file.info(), split).links;
  const auto mine = even_range(count, comm.size(), comm.rank());
  auto links = file.read_links(split, mine.begin, mine.end);
  return {count, std::move(links.heads), std::move(links.tails), std::move(links.relations)};
}

// What the relations of links join, and where the matrix has them.
std::vector<LinkEnds> ends_of_relations(const GraphInfo& graph) {
  const auto& links = graph.links;
  const RowRange all = {0, graph.nodes};
  std::vector<LinkEnds> ends(static_cast<std::size_t>(links.relations()), {.heads = all, .tails = all});
  if (!graph.typed) return ends;
  const auto& schema = graph.schema;
  for (std::size_t r = 0; r < ends.size(); ++r) {
    auto& of = ends[r];
    if (links.graph_relations.empty()) {
      of.forward = -1;
      continue;
    }
    const auto place = links.graph_relations[r];
    const auto& relation = schema.relations()[static_cast<std::size_t>(place)];
    const auto& source = schema.types()[static_cast<std::size_t>(relation.source)];
    const auto& target = schema.types()[static_cast<std::size_t>(relation.target)];
    of = {.heads = {source.begin, source.end},
          .tails = {target.begin, target.end},
          .forward = place,
          .backward = relation.inverse,
          .both_ways = relation.source == relation.target};
  }
  return ends;
}

std::unique_ptr<LinkSource> read_source(const Communicator& comm, const GraphFile& file, const Config& config,
                                        const BatchGroups* groups) {
  const auto& graph = file.info();
  auto list = read_list(comm, file, Split::kTrain);
  if (groups != nullptr) list = sort_by_group(comm, list, *groups);
  return std::make_unique<LinkSource>(comm, std::move(list), ends_of_relations(graph),
                                      negatives_of(config.train), graph.nodes, graph.links.directed);
}

std::unique_ptr<ExampleSource> read_examples(const Communicator& comm, const GraphFile& file,
                                             const Config& config, const BatchGroups* groups) {
  return read_source(comm, file, config, groups);
}

// A link is where its head is.
Buffer<std::int64_t> read_places(const Communicator& comm, const GraphFile& file) {
  return read_list(comm, file, Split::kTrain).heads;
}

GivenCandidates read_candidates(const Communicator& comm, const GraphFile& file, Split split) {
  const auto& of = links_of(file.info(), split);
  const auto mine = even_range(of.links, comm.size(), comm.rank());
  GivenCandidates given;
  const auto read = [&](Column column, const RowRange& rows) {
    return file.read<std::int64_t>(column, static_cast<int>(split), rows.begin, rows.end);
  };
  if (of.negative_heads > 0) given.of_heads = read(Column::kNegativeHeads, mine);
  if (of.negative_tails > 0) given.of_tails = read(Column::kNegativeTails, mine);
  given.non_links = of.non_links;
  const auto pairs = even_range(of.non_links, comm.size(), comm.rank());
  if (of.non_links > 0) given.pairs = read(Column::kNonLinks, pairs);
  return given;
}

std::unique_ptr<LinkTargets> place_links(const Grid& grid, const GraphFile& file, const Ownership& blocks,
                                         const Config& config, std::unique_ptr<LinkSource> source) {
  auto targets = std::make_unique<LinkTargets>();
  const auto& world = grid.world();
  place_targets(grid, blocks, {}, *targets);
  targets->outputs = outputs(file.info(), config);
  targets->blocks = blocks;
  targets->directed = file.info().links.directed;
  targets->train_links = std::move(source);
  targets->valid = read_list(world, file, Split::kValid);
  targets->test = read_list(world, file, Split::kTest);
  return targets;
}

std::unique_ptr<Targets> read_link_targets(const Grid& grid, const GraphFile& file, const Ownership& blocks,
                                           const Config& config, const BatchGroups* groups) {
  const auto& world = grid.world();
  auto targets = place_links(grid, file, blocks, config, read_source(world, file, config, groups));
  targets->of_valid = read_candidates(world, file, Split::kValid);
  targets->of_test = read_candidates(world, file, Split::kTest);
  return targets;
}

// ---- what a plan asks ----

double count_of(const TaskSize& size, Split split) {
  return static_cast<double>(links_of(size.graph, split).links);
}

RankingSize ranking_of(const TaskSize& size, Split split, double width) {
  const auto& of = links_of(size.graph, split);
  const auto& train = size.config.train;
  const bool heads = of.negative_heads > 0, tails = of.negative_tails > 0;
  const double given = static_cast<double>(of.negative_heads + of.negative_tails),
               sides = given > 0                      ? heads + tails
                       : train.negatives_of == "both" ? 2
                                                      : 1;
  return {.ranks = size.ranks,
          .rows = size.rows,
          .links = count_of(size, split),
          .sides = sides,
          .others = given > 0 ? given / sides : static_cast<double>(train.ranked_against),
          .pairs = static_cast<double>(of.non_links),
          .vertices = static_cast<double>(size.graph.nodes),
          .width = width};
}

// Links and candidates; what is known of links where that is asked.
double links_bytes(const TaskSize& size) {
  const double ways = size.graph.links.directed ? 1 : 2, train = count_of(size, Split::kTrain),
               all = train + count_of(size, Split::kValid) + count_of(size, Split::kTest);
  double bytes = 20 * all;
  bool draws = false;
  for (const auto split : {Split::kValid, Split::kTest}) {
    const auto& of = links_of(size.graph, split);
    bytes += static_cast<double>(8 * of.links * (of.negative_heads + of.negative_tails) + 16 * of.non_links);
    draws |= of.links > 0 && !of.gives_candidates();
  }
  // By both ends; or, while candidates are drawn, by one, as they are sent, too.
  if (draws && (size.config.train.ranked_against == 0 || is_filtered(size.config.train)))
    bytes += 2 * ways * sizeof(LinkTriple) * all;
  const auto negatives = negatives_of(size.config.train);
  if (negatives.filtered) bytes += ways * sizeof(LinkTriple) * train;
  if (negatives.mode == NegativesMode::kDegree) bytes += 8 * static_cast<double>(size.graph.nodes);
  return bytes / size.ranks;
}

// Of each link and negative its ends and relation, twice, places of the three, two scores, and what
// a network keeps.
double loss_bytes(const GraphInfo& graph, const Config& config) {
  const double scores =
      static_cast<double>(std::min(config.sampler.batch_size, links_of(graph, Split::kTrain).links)) *
      static_cast<double>(1 + config.train.negatives);
  return scores *
         static_cast<double>(2 * 12 + 12 + 8 +
                             4 * link_network_numbers(link_score_of(config.train), outputs(graph, config)));
}

// The rows that this rank evaluates.
double kept_rows_bytes(const TaskSize& size) {
  return 4.0 * static_cast<double>(outputs(size.graph, size.config)) * static_cast<double>(size.graph.nodes) /
         size.ranks;
}

// Rows of the block row, and of all that this rank evaluates beside those that it ranks them for;
// or those of candidates.
double ranks_bytes(const TaskSize& size) {
  const double rows = static_cast<double>(size.graph.nodes),
               row = 4 * static_cast<double>(outputs(size.graph, size.config));
  double ranked = 0;
  for (const auto split : {Split::kValid, Split::kTest})
    ranked = std::max(ranked, ranking_bytes(ranking_of(size, split, row / 4)));
  return rows / size.rows * row + ranked;
}

Cost preparing(const TaskSize& size, double windows) {
  const double links = count_of(size, Split::kTrain), a_window = links / size.ranks / windows,
               ways = size.graph.links.directed ? 1 : 2, vertices = static_cast<double>(size.graph.nodes);
  const auto& config = size.config;
  const auto per_step = std::min(config.train.batches_per_step.value.value_or(size.ranks),
                                 batches_of_epoch(size.graph, config));
  Cost cost = windows * link_request_cost(size.ranks, a_window,
                                          share_of_others(size.ranks, config.sampler.groups, per_step));
  cost += windows * negatives_cost(size.ranks, negatives_of(size.config.train), a_window,
                                   std::min(1.0, ways * links / (vertices * vertices)));
  return cost;
}

Cost cost_of_evaluating_links(const TaskSize& size, int) {
  const double width = static_cast<double>(outputs(size.graph, size.config)),
               vertices = static_cast<double>(size.graph.nodes);
  const int copies = size.ranks / size.rows;
  Cost cost;
  if (copies > 1)
    cost +=
        Cost{2.0 * (copies - 1), 8.0 * (copies - 1) + 4 * width * vertices / size.rows * crossing(copies), 2};
  for (const auto split : {Split::kValid, Split::kTest}) cost += ranking_cost(ranking_of(size, split, width));
  return cost;
}

// ---- checks ----

void check_link_keys(const Config& config) {
  link_score_of(config.train);
  link_loss_of(config.train);
  negatives_of(config.train);
  if (sampler_kind_of(config.sampler.kind).induces)
    usage_error("sampler.kind = {} draws vertices, not links; use graphsage, or another that draws for seeds",
                config.sampler.kind);
  if (config.history.kind != "none")
    usage_error("history.kind = {} has no meaning with train.task = links; leave it out",
                config.history.kind);
  if (config.sampler.batch_size > kMostScores / (1 + config.train.negatives))
    usage_error("sampler.batch_size = {} with train.negatives = {}: a batch can have {} links and negatives",
                config.sampler.batch_size, config.train.negatives, kMostScores);
}

// An end of a link keeps its own vertex, so one less is left of the fewest that can stand at one.
void check_candidates(const GraphInfo& graph, const Config& config) {
  const auto& train = config.train;
  const auto ends = ends_of_relations(graph);
  for (std::size_t r = 0; r < ends.size(); ++r) {
    const auto heads = train.negatives_of == "both" ? ends[r].heads.size() : graph.nodes,
               fewest = std::min(heads, ends[r].tails.size());
    for (const auto& [key, number] : {std::pair("train.negatives", train.negatives),
                                      std::pair("train.ranked_against", train.ranked_against)})
      if (number >= fewest)
        usage_error("{} = {}: {} has {} that can stand at an end of a link{}, its own among them; {}", key,
                    number, config.graph.file, counted(fewest, "vertex"),
                    graph.links.names.empty() ? "" : " of " + graph.links.names[r],
                    fewest == 1 ? "a negative would be the link itself: leave the relation out of the links"
                                : fmt::format("give {} at most", fewest - 1));
  }
}

void tell(const Communicator& comm, const std::vector<std::string>& sentences) {
  for (const auto& sentence : sentences)
    if (comm.rank() == 0) log::warning("{}", sentence);
}

void check_file(const Communicator& comm, const GraphFile& file, const Config& config) {
  const auto& graph = file.info();
  const auto& train = config.train;
  const auto width = outputs(graph, config);
  const auto& score = *link_score_of(train).kind;
  if (!score.takes_width(width))
    usage_error(
        "train.score = {} needs an even model.hidden, or rows where there are no layers, not {}: they are "
        "complex numbers",
        score.name, width);
  check_candidates(graph, config);
  const auto has = [&](Split split, bool candidates) {
    const auto& of = links_of(graph, split);
    return of.links > 0 && of.gives_candidates() == candidates;
  };
  const bool gives = has(Split::kValid, true) || has(Split::kTest, true),
             draws = has(Split::kValid, false) || has(Split::kTest, false);
  if (train.ranked_against > 0 && gives && !draws)
    usage_error("train.ranked_against = {}: {} gives the candidates of each link; leave it out",
                train.ranked_against, config.graph.file);
  if (is_filtered(train) && has(Split::kValid, true))
    usage_error(
        "train.metric = {} leaves links out of the candidates, and {} gives those of each link; use {}",
        train.metric, config.graph.file, train.metric.substr(std::string_view("filtered_").size()));
  tell(comm, odd_links(graph.links, check_links(comm, file)));
  if (config.model.layers == 0) return;  // nobody reads the edges
  GraphView apart(Verify::kNo);
  apart.apart = true;
  const GraphFile whole(comm, file.path(), apart);
  tell(comm, leaks_in_words(whole, find_link_leaks(comm, whole)));
}

}  // namespace

constinit const TaskKind kLinksKind = {.name = "links",
                                       .several_labels = false,
                                       .of_labels = false,
                                       .metrics = kLinkMetrics,
                                       .noun = "number",
                                       .example = "link",
                                       .outputs = outputs,
                                       .tensors = tensors,
                                       .splits = count_links,
                                       .seeds = count_seeds,
                                       .read_examples = read_examples,
                                       .read_targets = read_link_targets,
                                       .places = read_places,
                                       .label_bytes = links_bytes,
                                       .loss_bytes = loss_bytes,
                                       .kept_bytes = kept_rows_bytes,
                                       .evaluation_bytes = ranks_bytes,
                                       .preparing = preparing,
                                       .evaluating = cost_of_evaluating_links,
                                       .check_keys = check_link_keys,
                                       .check = check_file};

std::unique_ptr<LinkTargets> read_links_to_ask(const Grid& grid, const GraphFile& file,
                                               const GraphInfo& graph, const Ownership& blocks,
                                               const Config& config) {
  const auto& world = grid.world();
  return place_links(
      grid, file, blocks, config,
      std::make_unique<LinkSource>(world, read_list(world, file, Split::kTrain), ends_of_relations(graph),
                                   Negatives(), graph.nodes, graph.links.directed));
}

Negatives negatives_of(const TrainConfig& train) {
  return {train.negatives, negatives_mode_of(train.negatives_mode), train.negatives_of == "both",
          train.negatives_filtered, train.negatives_power};
}

bool is_filtered(const TrainConfig& train) {
  return train.metric.starts_with("filtered_");
}

LinkScore link_score_of(const TrainConfig& train) {
  return {&link_score_kind_of(train.score, "train.score ="), static_cast<int>(train.norm)};
}

LinkLoss link_loss_of(const TrainConfig& train) {
  return {&link_loss_kind_of(train.loss, "train.loss ="), train.margin, train.temperature};
}

}  // namespace espalier
