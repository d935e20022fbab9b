#include "espalier/job/trained_network.hpp"

#include <algorithm>

#include "espalier/base/output_file.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/job/changed_keys.hpp"
#include "espalier/nn/network_shape.hpp"
#include "espalier/train/network_tensors.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

// Of a graph: that which it was trained on, or the one here.
std::vector<TensorShape> task_tensors(const Job& job, const GraphInfo& graph) {
  const auto& task = task_kind_of(job.config.train.task);
  return task.tensors == nullptr ? std::vector<TensorShape>() : task.tensors(graph, job.config);
}

// The graph that the network was trained on, as its weights tell of it, with the types of the one
// here, which weights do not have.
GraphInfo trained_on(const Job& job, const TrainedWeights& weights) {
  auto graph = weights.graph;
  graph.schema = job.graph.schema;
  graph.types = job.graph.types;
  return graph;
}

NetworkShape network_of_task(const Job& job, const GraphInfo& trained_on) {
  return network_shape(job.config.model, input_of(job),
                       task_kind_of(job.config.train.task).outputs(trained_on, job.config),
                       task_tensors(job, trained_on));
}

Network<float> trained_network(const Job& job, const TrainedWeights& weights, const std::string& path) {
  for (const auto& key : changed_keys(parse_saved_config(weights.config, path).config, job.config, job.graph))
    if (changes_network(key))
      usage_error("{} is of another network: {}; put the key back", path, in_words(key));
  const auto trained = trained_on(job, weights);
  // What is scored then are the features themselves, of which no tensor tells.
  if (job.config.model.layers == 0 && trained.features != job.graph.features)
    input_error("{}: has {}, and the network of {} was trained on {}", job.config.graph.file,
                counted(job.graph.features, "feature"), path, counted(trained.features, "feature"));
  Network<float> network(network_of_task(job, trained), 0);
  take_tensors(job.cpu, weights.tensors, path, network);
  const auto columns = std::ssize(weights.standardization.mean);
  // Without trainable embeddings.
  const auto features = input_shape(job.graph, sees_relations(job.config), input_tables(job.graph, 0)).width;
  if (columns > 0 && columns != features)
    input_error("{}: features/mean has {} columns, and {} has {} features", path, columns,
                job.config.graph.file, features);
  return network;
}

void check_trained_columns(const Job& job, const ColumnsByGroup& trained, const std::string& checkpoint) {
  const auto& file = job.config.graph.file;
  for (const auto& [group, there] : trained) {
    const bool of_edges = group.starts_with("/edges/");
    const auto here = job.graph.feature_columns.find(group);
    if (here == job.graph.feature_columns.end() || (of_edges && !job.config.model.edge_features)) continue;
    if (const auto difference = difference_of_names(there, here->second); !difference.empty())
      input_error(
          "{}: {}features has other columns than those that {} was trained on: {}; make the graph again with "
          "`espalier-tables FILE --like {}`, or train again",
          file, group, checkpoint, difference, checkpoint);
    if (!have_same_scales(there, here->second))
      job.tell(
          log::Level::kWarning,
          "{}: {}features has the columns that {} was trained on, filled or scaled by other numbers, so the "
          "same cell is another number; `espalier-tables FILE --like {}` takes those of the training",
          file, group, checkpoint, checkpoint);
  }
}

void settle_relations(Job& job, const TrainedWeights& weights, const std::string& checkpoint) {
  auto& here = job.graph.links;
  const auto& there = weights.graph.links;
  const auto& schema = job.graph.schema;
  const auto& file = job.config.graph.file;
  const bool names_known = std::ranges::none_of(there.names, [](const auto& name) { return name.empty(); });
  if (here.exist) {
    const auto ours = task_tensors(job, job.graph), theirs = task_tensors(job, trained_on(job, weights));
    for (std::size_t k = 0; k < ours.size(); ++k)
      if (ours[k].rows != theirs[k].rows)
        input_error("{}: has {} {}, and the network of {} knows {}; leave --metrics and --links out", file,
                    ours[k].rows, ours[k].name, checkpoint, theirs[k].rows);
    if (ours.empty() || !names_known) return;
    for (std::size_t r = 0; r < std::min(here.names.size(), there.names.size()); ++r)
      if (here.names[r] != there.names[r] && there.names[r].find("\xef\xbf\xbd") == std::string::npos)
        input_error(
            "{}: its relation {} of links is {}, and the network of {} has learnt {} there; write relations "
            "in that order",
            file, r, here.names[r], checkpoint, there.names[r]);
    return;
  }
  if (job.graph.typed != weights.graph.typed)
    input_error(
        "{}: has no links (/links), and {} does not say what relations join there: it is of an earlier "
        "version, or of a graph {} types",
        file, checkpoint, job.graph.typed ? "without" : "with");
  here.names = there.names;
  for (std::size_t r = 0; r < here.names.size(); ++r)
    if (!names_known) here.names[r] = std::to_string(r);
  for (const auto place : there.graph_relations) {
    const auto name = weights.graph.schema.full_name(place);
    here.graph_relations.push_back(schema.find_relation(name));
    if (here.graph_relations.back() < 0)
      input_error("{}: has no relation {}, of whose links the network of {} is; its relations are {}", file,
                  name, checkpoint, schema.relation_names());
  }
}

}  // namespace

TrainedWeights read_named_weights(const Communicator& world, const std::string& path) {
  note_activity("reading the weights");
  agree(world, [&] {
    if (world.rank() == 0 && other_than_file(path) == "folder")
      input_error("{}: is a folder; name a weights.h5 or a checkpoint (checkpoints/latest)", path);
  });
  return read_weights(world, path);
}

EarlierRun earlier_run(const TrainedWeights& weights, const std::string& path, const Config& config) {
  EarlierRun earlier{.path = path, .classes = weights.graph.classes};
  if (config.graph.target.empty())
    earlier.target = parse_saved_config(weights.config, path).config.graph.target;
  return earlier;
}

TrainedModel trained_model(Job& job, TrainedWeights weights, const std::string& path) {
  check_trained_columns(job, weights.graph.feature_columns, path);
  auto network = trained_network(job, weights, path);
  if (job.command.answers || (job.command.evaluates && !task_kind_of(job.config.train.task).of_labels))
    settle_relations(job, weights, path);
  return {path, std::move(weights), std::move(network)};
}

std::unique_ptr<Targets> targets_of(const Job& job, const TrainedModel& model) {
  const auto& task = task_kind_of(job.config.train.task);
  auto targets = read_targets(*job.grid, *job.file, job.owners.blocks, job.config);
  if (!task.of_labels) return targets;
  if (targets->outputs > job.graph.classes)
    input_error("{}: /nodes/labels has {}, and the network of {} knows {}", job.config.graph.file,
                counted(targets->outputs, task.noun), model.path, job.graph.classes);
  targets->outputs = job.graph.classes;
  return targets;
}

}  // namespace espalier
