// Plans of an import of one file of edges, in text or as Matrix Market has it, with arrays beside
// it.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "array_tables.hpp"
#include "described_graph.hpp"
#include "edge_text.hpp"
#include "espalier/base/text.hpp"
#include "graph_source.hpp"
#include "renumbered_edges.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

GraphDescription description_of(const std::string& path, const std::string& layout) {
  const auto file = fs::path(path).filename().string();
  // "soc-LiveJournal1" of soc-LiveJournal1.txt.gz
  return {file.substr(0, file.find('.', 1)), fmt::format("{} {}", layout, file), false};
}

// What a user of options could have written, but for the edges, and how many vertices there are.
DescribedGraph describe_edge_file(const EdgeFileOptions& options, const std::string& layout) {
  const auto& [features, labels, splits, half] = options.arrays;
  DescribedGraph graph;
  graph.about = description_of(options.file, layout);
  graph.options = {.place = options.file, .edges = options.edges, .half = half};
  graph.place = options.file;
  graph.no_class = NoClass::kMinusOneToo;
  graph.hidden = HiddenTests::kRefuse;
  graph.types.resize(1);
  const auto array = [](const std::string& path) { return DescribedFile{.path = path, .array = true}; };
  if (!features.empty()) graph.types[0].features = array(features);
  if (!labels.empty()) graph.types[0].labels = array(labels);
  if (splits != std::array<std::string, 3>()) {
    auto& split = graph.types[0].splits.emplace_back();
    for (std::size_t s = 0; s < splits.size(); ++s) {
      split.empty[s] = splits[s].empty();
      if (!split.empty[s]) split.parts[s] = array(splits[s]);
    }
  }
  graph.relations.resize(1);
  graph.relations[0].edges = {{.file = {options.file}}};
  return graph;
}

PairForm lines_of_edges(bool weights) {
  PairForm form;
  if (weights) {
    form.fields.push_back(PairField::kValue);
    form.names = "source, target and weight";
  } else {
    form.hint = "; --weights reads the third as the edge's weight";
  }
  return form;
}

DescribedGraph describe_edge_list_file(const EdgeListFile& options) {
  auto graph = describe_edge_file(options, "edge list");
  graph.relations[0].edges[0].form = lines_of_edges(options.weights);
  graph.types[0].count = options.vertices;
  return graph;
}

// With the number of vertices, where it is said.
EdgeTextOptions text_of_edges(const EdgeListFile& options) {
  EdgeTextOptions text{
      .path = options.file, .form = lines_of_edges(options.weights), .any_ids = options.renumber};
  VertexCount vertices{-1, ""};
  // Where nobody said how many vertices there are, arrays do: these are their rows.
  const auto& arrays = options.arrays;
  const auto& path = arrays.features.empty() ? arrays.labels : arrays.features;
  if (options.vertices) {
    vertices = {*options.vertices, "--vertices says " + counted(*options.vertices, "vertex")};
  } else if (!path.empty() && !options.renumber) {
    const auto array = open_npy(path);
    const auto rows = array->shape()[0];
    vertices = {rows, fmt::format("{} has {}", array->name(), counted(rows, "row"))};
  }
  text.sources = text.targets = vertices;
  return text;
}

// With the edges, which are read.
DescribedGraph describe_edges_of_list(const EdgeListFile& options) {
  auto graph = describe_edge_list_file(options);
  auto& type = graph.types[0];
  auto text = text_of_edges(options);
  type.count = text.sources.count;
  auto edges = open_edge_text(std::move(text));
  if (options.renumber) {
    auto renumbered = std::make_shared<RenumberedEdges>(std::move(edges));
    type.numbers = &renumbered->numbers();
    type.count = std::ssize(type.numbers->ids());
    graph.relations[0].edges[0].source = std::move(renumbered);
  } else {
    graph.relations[0].edges[0].source = std::move(edges);
  }
  return graph;
}

DescribedGraph describe_matrix_market(const MatrixMarketFile& options) {
  auto graph = describe_edge_file(options, "Matrix Market file");
  const auto matrix = std::make_shared<MatrixMarket>(options.file, options.weights);
  if (matrix->symmetric() && options.edges.symmetrize)
    usage_error("--symmetrize: {} says that it is symmetric; leave it out", options.file);
  graph.types[0].count = matrix->nodes();
  graph.relations[0].edges[0].source = matrix;
  graph.line = "entry";
  return graph;
}

// Edges are read where nothing else says how many vertices there are.
DescribedGraph describe_whole_list(const EdgeListFile& options) {
  if (options.file.ends_with(".npy"))
    usage_error(
        "--describe: {} is a text, but a description takes what is called .npy for an array; call it "
        "otherwise",
        options.file);
  auto graph = describe_edge_list_file(options);
  auto& type = graph.types[0];
  if (type.count || type.features.given() || type.labels.given()) return graph;
  std::int64_t largest = -1;
  open_edge_text({.path = options.file, .form = graph.relations[0].edges[0].form})
      ->read([&](const EdgePiece& piece) {
        for (const auto& ends : {piece.sources, piece.targets})
          if (!ends.empty()) largest = std::max(largest, std::ranges::max(ends));
      });
  type.count = largest + 1;
  return graph;
}

// Before anything long is begun, all that the arrays' headers say is checked.
template <class File>
ImportPlan plan_with(const File& file, DescribedGraph (&describe)(const File&)) {
  const auto& [features, labels, splits, half] = file.arrays;
  const std::vector<std::string> arrays = {features, labels, splits[0], splits[1], splits[2]};
  ImportPlan plan{.describe = [=, &describe] {
    for (const auto& path : arrays)
      if (!path.empty()) open_npy(path);
    return describe(file);
  }};
  plan.inputs = arrays;
  plan.inputs.push_back(file.file);
  return plan;
}

}  // namespace

// Who renumbers reads all.
ImportPlan plan_of(const EdgeListFile& file) {
  auto plan = plan_with(file, describe_edges_of_list);
  plan.shared = !file.renumber;
  plan.in_toml = [=] { return describe_whole_list(file); };
  return plan;
}

ImportPlan plan_of(const MatrixMarketFile& file) {
  auto plan = plan_with(file, describe_matrix_market);
  plan.shared = true;
  return plan;
}

}  // namespace espalier
