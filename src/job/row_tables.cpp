// The tables of an inference: of which types and vertices rows are asked for.
#include "espalier/job/named_vertices.hpp"

#include <sstream>

#include "espalier/plan/job_shapes.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

// Of each type: was it asked for?
std::vector<bool> types_named(const GraphInfo& graph, const std::string& path, const std::string& names) {
  if (!graph.typed) usage_error("--types {}: {} has no vertex types; leave it out", names, path);
  std::vector<bool> named(graph.schema.types().size(), names == "all");
  if (names == "all") return named;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    const int type = graph.schema.find_type(name);
    if (type < 0)
      usage_error("--types {}: {} has no vertex type '{}'; give all, or some of {}", names, path, name,
                  graph.schema.type_names());
    named[static_cast<std::size_t>(type)] = true;
  }
  if (names.empty()) usage_error("--types names no type; give all, or some of {}", graph.schema.type_names());
  return named;
}

// Of each type: does the loss, which is of the target's rows of the last layer, read its rows of
// layer `layer`? It reads its own and those of the neighbours in the layer before, and so on.
std::vector<bool> types_in_loss(const Job& job, std::int64_t layer) {
  const auto& schema = job.graph.schema;
  const auto fanout = sampler_shape(job.config, job.graph, job.grid->ranks()).relation_fanout;
  std::vector<bool> read(schema.types().size(), false);
  if (job.graph.target < 0) return read;
  read[static_cast<std::size_t>(job.graph.target)] = true;
  for (auto above = job.config.model.layers; above > layer; --above) {
    const auto readers = read;
    for (std::size_t r = 0; r < schema.relations().size(); ++r) {
      const auto& relation = schema.relations()[r];
      const bool left_out = !fanout.empty() && fanout[0][r] == 0;
      if (!left_out && readers[static_cast<std::size_t>(relation.target)])
        read[static_cast<std::size_t>(relation.source)] = true;
    }
  }
  return read;
}

// Those of the target, or of all types where the task has none, or of those named, without the
// vertices chosen.
std::vector<RowTable> tables_asked_for(const RowsAskedFor& asked, const Job& job, std::int64_t layer) {
  const auto& graph = job.graph;
  const auto& path = job.config.graph.file;
  const auto& task = task_kind_of(job.config.train.task);
  const bool predicts_target = asked.predictions || !asked.csv.empty();
  const std::string option = asked.predictions ? "--predictions" : "--csv " + asked.csv;
  if (predicts_target && !task.of_labels)
    usage_error("{}: predictions are of vertices, and train.task = {} learns none of them; leave it out",
                option, task.name);
  if (!asked.types && (task.of_labels || !graph.typed)) {
    if (!graph.typed) return {{.vertices = {0, graph.nodes}, .predictions = asked.predictions}};
    if (graph.target < 0)
      usage_error(
          "{}: several vertex types have labels, or none has; say with graph.target or --types whose rows to "
          "write ({})",
          path, graph.schema.type_names());
    const auto& target = graph.schema.types()[graph.target];
    return {{.vertices = {target.begin, target.end}, .predictions = asked.predictions}};
  }
  const auto named = types_named(graph, path, asked.types.value_or("all")),
             in_loss = types_in_loss(job, layer);
  std::vector<RowTable> tables;
  bool predicts = false;
  for (std::size_t t = 0; t < named.size(); ++t) {
    if (!named[t]) continue;
    const auto& type = graph.schema.types()[t];
    const bool is_target = static_cast<int>(t) == graph.target;
    tables.push_back(
        {.type = type.name,
         .vertices = {type.begin, type.end},
         .predictions = is_target && asked.predictions,
         .trained = task.of_labels && graph.target >= 0 ? std::optional<bool>(in_loss[t]) : std::nullopt});
    predicts |= is_target;
  }
  if (predicts_target && graph.target < 0)
    usage_error("{}: predictions are those of the target type; say with graph.target which one that is ({})",
                option, graph.schema.type_names());
  if (predicts_target && !predicts)
    usage_error("{}: predictions are those of the target type, {}, which --types {} leaves out; add it",
                option, graph.schema.types()[graph.target].name, *asked.types);
  return tables;
}

}  // namespace

std::vector<RowTable> row_tables(const RowsAskedFor& asked, const Job& job, std::int64_t layer) {
  auto tables = tables_asked_for(asked, job, layer);
  if (asked.nodes.empty()) return tables;
  if (tables.size() > 1)
    usage_error("--nodes {} counts within one type, and --types {} is {}; name one", asked.nodes,
                asked.types.value_or("all"), types_of(tables, job.graph));
  auto& only = tables[0];
  const auto of = job.graph.typed ? "type " + types_of(tables, job.graph) : "the graph";
  const int type = !job.graph.typed    ? 0
                   : only.type.empty() ? job.graph.target
                                       : job.graph.schema.find_type(only.type);
  const auto& info = job.graph.types[type];
  if (asked.named_by == "ids" && info.ids == IdKind::kNone)
    usage_error("--named-by ids: {} has no ids of {}; leave it out", job.config.graph.file, of);
  only.chosen = named_by_ids(info, asked.named_by, "--nodes " + asked.nodes, of)
                    ? read_id_list(job.grid->world(), asked.nodes, *job.file, type, of)
                    : read_vertex_list(job.grid->world(), asked.nodes, only.vertices.size(), of);
  return tables;
}

std::string types_of(const std::vector<RowTable>& tables, const GraphInfo& graph) {
  if (!graph.typed) return {};
  std::string names;
  for (const auto& table : tables)
    names += (names.empty() ? "" : ",") +
             (table.type.empty() ? graph.schema.types()[graph.target].name : table.type);
  return names;
}

void warn_of_untrained(const RowFileShape& shape, const Job& job) {
  std::string names;
  for (const auto& table : shape.tables)
    if (!table.trained.value_or(true)) names += (names.empty() ? "" : ", ") + table.type;
  if (names.empty()) return;
  job.tell(
      log::Level::kWarning,
      "{} of {}: no loss has read such rows, as it is of {} alone; docs/typed-graphs.md says what they are",
      shape.rows.substr(1), names, job.graph.schema.types()[job.graph.target].name);
}

}  // namespace espalier
