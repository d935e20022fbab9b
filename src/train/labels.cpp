#include "labels.inl.hpp"

#include <limits>
#include <string_view>

#include "espalier/base/row_range.hpp"
#include "espalier/graph/graph_facts.hpp"
#include "espalier/partition/owned_reader.hpp"

namespace espalier {

namespace {

constexpr MetricKind kLabelMetrics[] = {{"roc_auc", "ROC-AUC"},
                                        {"average_precision", "average precision"},
                                        {"micro_f1", "micro-F1"},
                                        {"macro_f1", "macro-F1"}};

double columns_of(const TaskSize& size, int rank) {
  return static_cast<double>(block_partition(size.graph.classes, size.ranks).size(rank));
}

double labels_bytes(const TaskSize& size) {
  const auto& graph = size.graph;
  const double labels = static_cast<double>(graph.classes), train = static_cast<double>(graph.train),
               nodes = static_cast<double>(graph.nodes),
               evaluated = train + static_cast<double>(graph.valid + graph.test);
  return example_bytes(size, 4) + (labels + 8) * train  // and places, how many are known
         + labels * nodes / size.ranks + columns_of(size, 0) * evaluated;
}

// Of the vertices in splits, float32.
double kept_label_rows(const TaskSize& size) {
  return 4.0 * static_cast<double>(size.graph.classes) *
         static_cast<double>(size.graph.train + size.graph.valid + size.graph.test) / size.ranks;
}

// Of one split: what is sent, what arrives, whole columns, and one of them sorted.
double split_bytes(const TaskSize& size) {
  double most = 0;
  for (const auto split : {size.graph.train, size.graph.valid, size.graph.test}) {
    const double rows = static_cast<double>(split);
    most = std::max(
        most, 4 * rows * (static_cast<double>(size.graph.classes) / size.ranks + 2 * columns_of(size, 0)) +
                  8 * rows);
  }
  return most;
}

Cost cost_of_evaluating_labels(const TaskSize& size, int rank) {
  auto cost = all_reduce_cost(3 * 48 * size.graph.classes, size.ranks);
  for (const auto& split : size.evaluated) {
    const double all = std::accumulate(split.begin(), split.end(), 0.0), mine = split[rank];
    cost.bytes += 4 * (all - mine) * columns_of(size, rank);
    cost.rounds += size.ranks > 1;
    for (int peer = 0; peer < size.ranks; ++peer)
      cost.messages += peer != rank && mine > 0 && columns_of(size, peer) > 0;
  }
  return cost;
}

// Collective. Of each label three numbers, 0 or 1: is it known of a training vertex? Is it 0, and
// is it 1, of one on the validation split?
std::vector<std::int32_t> label_facts(const Communicator& comm, const GraphFile& file) {
  const auto& info = file.info();
  const auto& of = info.schema.types()[info.target];
  const auto train = file.read_split(Split::kTrain), valid = file.read_split(Split::kValid);
  std::vector<std::int32_t> facts(3 * info.classes, 0);
  const auto note = [&](const Matrix<std::uint8_t>& labels, std::int64_t begin,
                        std::span<const std::int64_t> split, bool values) {
    for (auto v = std::ranges::lower_bound(split, begin); v != split.end() && *v < begin + labels.rows; ++v)
      for (std::int64_t j = 0; j < info.classes; ++j)
        if (const auto label = labels(*v - begin, j); label <= 1) facts[3 * j + (values ? 1 + label : 0)] = 1;
  };
  in_row_parts(
      comm, of.size(),
      [&](std::int64_t begin, std::int64_t end) {
        const auto labels = file.read_multi_labels(of.begin + begin, of.begin + end);
        note(labels, of.begin + begin, train, false);
        note(labels, of.begin + begin, valid, true);
      },
      info.classes);
  comm.all_reduce(std::span(facts), Reduction::kMax, "setup");
  return facts;
}

// Something can be learnt of each label, and where "best" is evaluated by a ranking something is
// ranked on the validation split.
void check_columns(const Communicator& comm, const GraphFile& file, const Config& config) {
  const auto& info = file.info();
  const auto facts = label_facts(comm, file);
  bool ranked = info.valid == 0;
  for (std::int64_t j = 0; j < info.classes; ++j) {
    if (facts[3 * j] == 0)
      input_error(
          "{}: column {} of /nodes/labels is unknown ({}) for all {} vertices of /split/train, so there is "
          "nothing to learn of it; leave it out",
          file.path(), j, kUnknownLabel, info.train);
    ranked |= facts[3 * j + 1] + facts[3 * j + 2] == 2;
  }
  const auto& metric = metric_of(config.train);
  const std::string_view name = metric.name;
  if (!ranked && (name == "roc_auc" || name == "average_precision"))
    input_error(
        "no column of /nodes/labels has both 0 and 1 on /split/valid, so {} is not defined there; use "
        "train.metric = \"micro_f1\" or \"macro_f1\", or another split",
        metric.words);
}

std::unique_ptr<Targets> read_label_targets(const Grid& grid, const GraphFile& file, const Ownership& blocks,
                                            const Config&, const BatchGroups*) {
  auto targets = std::make_unique<LabelTargets>();
  read_splits(grid, file, blocks, *targets);
  targets->outputs = file.info().classes;
  targets->evaluated_labels = OwnedReader(grid, file, blocks).multi_labels();
  auto& train = targets->train_labels;
  train.rows = std::ssize(targets->train);
  train.columns = targets->outputs;
  train.data = gather_split(grid, *targets, Split::kTrain, targets->train, targets->evaluated_labels.data,
                            train.columns);
  return targets;
}

}  // namespace

constinit const TaskKind kLabelsKind = {.name = "labels",
                                        .several_labels = true,
                                        .metrics = kLabelMetrics,
                                        .noun = "label",
                                        .example = "vertex",
                                        .outputs = count_classes,
                                        .splits = count_vertices,
                                        .read_examples = read_training_vertices,
                                        .read_targets = read_label_targets,
                                        .label_bytes = labels_bytes,
                                        .kept_bytes = kept_label_rows,
                                        .evaluation_bytes = split_bytes,
                                        .evaluating = cost_of_evaluating_labels,
                                        .check = check_columns};

TrainingPlaces::TrainingPlaces(const Targets& targets) : places(targets.train.size()) {
  ESPALIER_CHECK(places.size() <= std::numeric_limits<std::int32_t>::max(), "{} training vertices",
                 places.size());
  std::iota(places.begin(), places.end(), 0);
}

}  // namespace espalier
