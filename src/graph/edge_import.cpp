#include "espalier/graph/edge_import.hpp"

#include <filesystem>
#include <memory>

#include "array_tables.hpp"
#include "edge_text.hpp"
#include "espalier/base/log.hpp"
#include "first_rank.hpp"
#include "import_edges.hpp"
#include "import_tables.hpp"
#include "input_files.hpp"
#include "matrix_market.hpp"
#include "renumbered_edges.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// What is open, on rank 0.
struct Inputs {
  std::unique_ptr<EdgeSource> edges;
  const VertexNumbers* numbers = nullptr;  // where ids are renumbered
  std::unique_ptr<NpyArray> features, labels;
  std::int64_t nodes = -1;  // -1: the largest id says
};

// Rank 0. Before anything long is begun.
Inputs open_arrays(const EdgeFileOptions& options, const OutputFile& output) {
  const auto& arrays = options.arrays;
  refuse_inputs_as_output(
      {options.file, arrays.features, arrays.labels, arrays.splits[0], arrays.splits[1], arrays.splits[2]},
      output.path);
  check_output(output);
  Inputs inputs;
  if (!arrays.features.empty()) inputs.features = open_npy(arrays.features);
  if (!arrays.labels.empty()) inputs.labels = open_npy(arrays.labels);
  for (const auto& split : arrays.splits)
    if (!split.empty()) open_npy(split);
  return inputs;
}

// Collective. Ids, features, labels, splits.
void import_arrays(const Communicator& comm, Inputs inputs, const VertexArrays& arrays, std::int64_t nodes,
                   GraphWriter& writer) {
  if (agreed(comm, inputs.numbers != nullptr) != 0)
    writer.write_number_ids(inputs.numbers != nullptr ? inputs.numbers->ids() : Buffer<std::int64_t>());
  std::unique_ptr<FeatureRows> rows;
  OgbLabels labels;
  on_first_rank(comm, [&] {
    if (inputs.features) rows = open_feature_array(std::move(inputs.features), nodes);
    if (inputs.labels)
      labels = read_labels(open_feature_array(std::move(inputs.labels), nodes), nodes, NoClass::kMinusOneToo);
    if (labels.columns > 0) log::info("labels     {}", in_words(labels));
  });
  const auto columns = import_features(comm, std::move(rows), nodes, arrays.half, writer);
  if (columns > 0) log::info("features   {} x {}", nodes, columns);
  import_labels(comm, labels, writer);
  if (arrays.splits == std::array<std::string, 3>()) return;
  Splits splits;
  on_first_rank(comm, [&] {
    SplitCollector collected(nodes, labels, HiddenTests::kRefuse);
    const VertexCount vertices{nodes, "the graph has " + counted(nodes, "vertex")};
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
      if (const auto& path = arrays.splits[static_cast<std::size_t>(split)]; !path.empty())
        read_split_array(*open_npy(path), vertices, split, collected, inputs.numbers);
    splits = collected.finish();
    log::info("splits     {}", in_words(splits, ""));
  });
  import_splits(splits, writer);
}

// Collective. `line`: what an edge is in its file.
void import_graph(const Communicator& comm, Inputs inputs, const EdgeFileOptions& options,
                  const std::string& line, const char* layout, const OutputFile& output) {
  GraphWriter writer(comm, output);
  EdgeReport report{options.edges};
  report.line = line;
  const auto found = import_edges(comm, {inputs.edges.get(), inputs.nodes, report}, writer);
  // Of numbers that nobody has chosen. Rank 0 knows.
  if (inputs.edges && inputs.nodes < 0 && found.alone > found.nodes / 2)
    log::warning("{} of the vertices 0 to {} have no edge; --renumber makes vertices of those that have one",
                 found.alone, found.nodes - 1);
  import_arrays(comm, std::move(inputs), options.arrays, found.nodes, writer);
  const auto file = fs::path(options.file).filename().string();
  // "soc-LiveJournal1" of soc-LiveJournal1.txt.gz
  writer.commit({file.substr(0, file.find('.', 1)), fmt::format("{} {}", layout, file), found.directed});
}

Inputs open_edge_list(const EdgeFileOptions& options, const OutputFile& output) {
  auto inputs = open_arrays(options, output);
  EdgeTextOptions text{options.file, options.weights, -1, "", options.renumber};
  // Where nobody said how many vertices there are, arrays do: these are their rows.
  const auto* array = inputs.features ? inputs.features.get() : inputs.labels.get();
  if (options.vertices) {
    text.nodes = *options.vertices;
    text.nodes_by = "--vertices says " + counted(text.nodes, "vertex");
  } else if (array != nullptr && !options.renumber) {
    text.nodes = array->shape()[0];
    text.nodes_by = fmt::format("{} has {}", array->name(), counted(text.nodes, "row"));
  }
  inputs.nodes = text.nodes;
  inputs.edges = open_edge_text(std::move(text));
  if (!options.renumber) return inputs;
  auto renumbered = std::make_unique<RenumberedEdges>(std::move(inputs.edges));
  inputs.numbers = &renumbered->numbers();
  inputs.nodes = std::ssize(inputs.numbers->ids());
  inputs.edges = std::move(renumbered);
  return inputs;
}

}  // namespace

void import_edge_list(const Communicator& comm, const EdgeFileOptions& options, const OutputFile& output) {
  Inputs inputs;
  on_first_rank(comm, [&] { inputs = open_edge_list(options, output); });
  import_graph(comm, std::move(inputs), options, "line", "edge list", output);
}

void import_matrix_market(const Communicator& comm, const EdgeFileOptions& options,
                          const OutputFile& output) {
  Inputs inputs;
  on_first_rank(comm, [&] {
    inputs = open_arrays(options, output);
    auto matrix = std::make_unique<MatrixMarket>(options.file, options.weights);
    if (matrix->symmetric() && options.edges.symmetrize)
      usage_error("--symmetrize: {} says that it is symmetric; leave it out", options.file);
    inputs.nodes = matrix->nodes();
    inputs.edges = std::move(matrix);
  });
  import_graph(comm, std::move(inputs), options, "entry", "Matrix Market file", output);
}

}  // namespace espalier
