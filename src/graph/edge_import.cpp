#include "espalier/graph/edge_import.hpp"

#include <filesystem>
#include <memory>

#include "array_tables.hpp"
#include "edge_text.hpp"
#include "espalier/base/log.hpp"
#include "first_rank.hpp"
#include "import_edges.hpp"
#include "import_vertices.hpp"
#include "input_files.hpp"
#include "matrix_market.hpp"
#include "npy_file.hpp"
#include "renumbered_edges.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// What is open, on rank 0.
struct Inputs {
  std::unique_ptr<EdgeSource> file;
  std::unique_ptr<VertexNumbers> numbers;       // where ids are renumbered
  std::unique_ptr<RenumberedEdges> renumbered;  // and then these are the edges
  std::unique_ptr<NpyArray> features, labels;
  std::int64_t nodes = -1;  // -1: the largest id says

  const EdgeSource& edges() const { return renumbered ? static_cast<const EdgeSource&>(*renumbered) : *file; }
  // Where nobody said how many vertices there are, arrays do: these are their rows.
  const NpyArray* of_vertices() const { return features ? features.get() : labels.get(); }
};

// Rank 0. Before anything long is begun.
Inputs open_arrays(const std::string& file, const VertexArrays& arrays, const OutputFile& output) {
  refuse_inputs_as_output(
      {file, arrays.features, arrays.labels, arrays.splits[0], arrays.splits[1], arrays.splits[2]},
      output.path);
  check_output(output);
  Inputs inputs;
  if (!arrays.features.empty()) inputs.features = open_npy(arrays.features);
  if (!arrays.labels.empty()) inputs.labels = open_npy(arrays.labels);
  for (const auto& split : arrays.splits)
    if (!split.empty()) open_npy(split);
  return inputs;
}

// "soc-LiveJournal1" of soc-LiveJournal1.txt.gz
std::string name_of(const std::string& file) {
  const auto name = fs::path(file).filename().string();
  return name.substr(0, name.find('.', 1));
}

class GraphImport {
 public:
  GraphImport(const Communicator& comm, Inputs inputs, const OutputFile& output)
      : comm_(comm), inputs_(std::move(inputs)), writer_(comm, output) {}

  ImportedEdges import_matrix(const EdgeReport& report) {
    GivenEdges given;
    if (inputs_.file) given.edges = &inputs_.edges();
    given.nodes = inputs_.nodes;
    given.report = report;
    found_ = import_edges(comm_, given, writer_);
    return found_;
  }
  void import_rest(const VertexArrays& arrays);
  void commit(const std::string& file, const char* layout) {
    writer_.commit(
        {name_of(file), fmt::format("{} {}", layout, fs::path(file).filename().string()), found_.directed});
  }

 private:
  const Communicator& comm_;
  Inputs inputs_;
  GraphWriter writer_;
  ImportedEdges found_;
};

// Ids, features, labels, splits.
void GraphImport::import_rest(const VertexArrays& arrays) {
  if (comm_.all_reduce(inputs_.numbers ? 1 : 0, Reduction::kMax, "import") != 0)
    writer_.write_number_ids(inputs_.numbers ? inputs_.numbers->ids() : Buffer<std::int64_t>());
  std::unique_ptr<FeatureRows> rows;
  OgbLabels labels;
  on_first_rank(comm_, [&] {
    if (inputs_.features) rows = open_feature_array(std::move(inputs_.features), found_.nodes);
    if (inputs_.labels) labels = read_label_array(*inputs_.labels, found_.nodes, NoClass::kMinusOneToo);
    if (labels.columns > 0) log::info("labels     {}", in_words(labels));
  });
  const auto columns = import_features(comm_, std::move(rows), found_.nodes, arrays.half, writer_);
  if (columns > 0) log::info("features   {} x {}", found_.nodes, columns);
  import_labels(comm_, labels, writer_);
  if (arrays.splits == std::array<std::string, 3>()) return;
  Splits splits;
  on_first_rank(comm_, [&] {
    SplitCollector collected(found_.nodes, labels, HiddenTests::kRefuse);
    const ArrayVertices vertices{found_.nodes, "the graph has " + counted(found_.nodes, "vertex")};
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
      if (const auto& path = arrays.splits[static_cast<std::size_t>(split)]; !path.empty())
        read_split_array(*open_npy(path), vertices, split, collected, inputs_.numbers.get());
    splits = collected.finish();
    log::info("splits     {} train, {} valid, {} test", splits[0].size(), splits[1].size(), splits[2].size());
  });
  import_splits(splits, writer_);
}

// ---- edge lists ----

Inputs open_edge_list(const EdgeListOptions& options, const OutputFile& output) {
  auto inputs = open_arrays(options.file, options.arrays, output);
  EdgeTextOptions text{options.file, options.weights, -1, "", options.renumber};
  if (options.vertices) {
    text.nodes = *options.vertices;
    text.nodes_by = "--vertices says " + counted(text.nodes, "vertex");
  } else if (const auto* array = inputs.of_vertices(); array != nullptr && !options.renumber) {
    text.nodes = array->shape()[0];
    text.nodes_by = fmt::format("{} has {}", array->name(), counted(text.nodes, "row"));
  }
  inputs.nodes = text.nodes;
  inputs.file = std::make_unique<EdgeText>(std::move(text));
  if (!options.renumber) return inputs;
  inputs.numbers = std::make_unique<VertexNumbers>(*inputs.file);
  inputs.nodes = std::ssize(inputs.numbers->ids());
  inputs.renumbered = std::make_unique<RenumberedEdges>(*inputs.file, *inputs.numbers);
  return inputs;
}

// Of numbers that nobody has chosen.
void report_sparse_ids(const ImportedEdges& found, const EdgeListOptions& options) {
  if (options.vertices || options.renumber || !options.arrays.features.empty() ||
      !options.arrays.labels.empty() || found.alone <= found.nodes / 2)
    return;
  log::warning("{} of the vertices 0 to {} have no edge; --renumber makes vertices of those that have one",
               found.alone, found.nodes - 1);
}

}  // namespace

void import_edge_list(const Communicator& comm, const EdgeListOptions& options, const OutputFile& output) {
  Inputs inputs;
  on_first_rank(comm, [&] { inputs = open_edge_list(options, output); });
  GraphImport import(comm, std::move(inputs), output);
  EdgeReport report{options.edges};
  report_sparse_ids(import.import_matrix(report), options);
  import.import_rest(options.arrays);
  import.commit(options.file, "edge list");
}

// ---- Matrix Market ----

void import_matrix_market(const Communicator& comm, const MatrixMarketOptions& options,
                          const OutputFile& output) {
  Inputs inputs;
  on_first_rank(comm, [&] {
    inputs = open_arrays(options.file, options.arrays, output);
    auto matrix = std::make_unique<MatrixMarket>(options.file, options.weights);
    if (matrix->symmetric() && options.edges.symmetrize)
      usage_error("--symmetrize: {} says that it is symmetric; leave it out", options.file);
    inputs.nodes = matrix->nodes();
    inputs.file = std::move(matrix);
  });
  GraphImport import(comm, std::move(inputs), output);
  EdgeReport report{options.edges};
  report.line = "entry";
  import.import_matrix(report);
  import.import_rest(options.arrays);
  import.commit(options.file, "Matrix Market file");
}

}  // namespace espalier
