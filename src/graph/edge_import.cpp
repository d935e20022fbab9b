#include "espalier/graph/edge_import.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "array_tables.hpp"
#include "described_graph.hpp"
#include "edge_text.hpp"
#include "espalier/base/counted.hpp"
#include "first_rank.hpp"
#include "graph_source.hpp"
#include "input_files.hpp"
#include "matrix_market.hpp"
#include "renumbered_edges.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

GraphDescription description_of(const std::string& path, const std::string& layout) {
  const auto file = fs::path(path).filename().string();
  // "soc-LiveJournal1" of soc-LiveJournal1.txt.gz
  return {file.substr(0, file.find('.', 1)), fmt::format("{} {}", layout, file), false};
}

ImportOptions import_options(const EdgeFileOptions& options) {
  return {.place = options.file, .edges = options.edges, .half = options.arrays.half};
}

// A file of edges, with arrays beside it.
class EdgeFile : public GraphSource {
 public:
  /// Before anything long is begun: all that the arrays' headers say is checked. `options` must
  /// outlive it.
  EdgeFile(const EdgeFileOptions& options, const OutputFile& output, const std::string& layout)
      : GraphSource(description_of(options.file, layout), import_options(options)), options_(options) {
    const auto& arrays = options.arrays;
    refuse_inputs_as_output(
        {options.file, arrays.features, arrays.labels, arrays.splits[0], arrays.splits[1], arrays.splits[2]},
        output.path);
    check_output(output);
    for (const auto& path :
         {arrays.features, arrays.labels, arrays.splits[0], arrays.splits[1], arrays.splits[2]})
      if (!path.empty()) open_npy(path);
  }
  /// Of so many vertices; -1: as many as the largest id says.
  void set_edges(std::unique_ptr<EdgeSource> edges, std::int64_t vertices, const char* line) {
    edges_ = std::move(edges);
    line_ = line;
    set_names(GraphNames::plain(vertices));
  }
  void renumber() {
    auto renumbered = std::make_unique<RenumberedEdges>(std::move(edges_));
    numbers_ = &renumbered->numbers();
    set_edges(std::move(renumbered), std::ssize(numbers_->ids()), line_);
  }

  std::string place() const override { return edges_->name(); }
  void read_edges(int, const std::function<void(const EdgePiece&)>& use) const override { edges_->read(use); }
  bool weighted(int) const override { return edges_->weighted(); }
  std::string edge_place(int, std::int64_t edge) const override { return edges_->place(edge); }
  const char* line() const override { return line_; }
  std::unique_ptr<FeatureRows> open_features(int) const override { return open(options_.arrays.features); }
  std::unique_ptr<FeatureRows> open_labels(int) const override { return open(options_.arrays.labels); }
  NoClass no_class() const override { return NoClass::kMinusOneToo; }
  const Buffer<std::int64_t>* number_ids(int) const override {
    return numbers_ != nullptr ? &numbers_->ids() : nullptr;
  }
  bool has_split(int, std::size_t, Split) const override {
    return options_.arrays.splits != std::array<std::string, 3>();
  }
  Splits read_splits(int, const OgbLabels& labels, std::size_t) const override {
    const auto nodes = types()[0].size();
    SplitCollector collected(nodes, labels, HiddenTests::kRefuse);
    const VertexCount vertices{nodes, "the graph has " + counted(nodes, "vertex")};
    for (const auto split : kSplits)
      if (const auto& path = options_.arrays.splits[static_cast<std::size_t>(split)]; !path.empty())
        read_split_array(*open_npy(path), vertices, split, collected, numbers_);
    return collected.finish();
  }

 private:
  std::unique_ptr<FeatureRows> open(const std::string& path) const {
    return path.empty() ? nullptr : open_feature_array(open_npy(path), types()[0].size());
  }

  const EdgeFileOptions& options_;
  std::unique_ptr<EdgeSource> edges_;
  const VertexNumbers* numbers_ = nullptr;  // where ids are renumbered
  const char* line_ = "";
};

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

std::unique_ptr<GraphSource> open_edge_list(const EdgeFileOptions& options, const OutputFile& output) {
  auto file = std::make_unique<EdgeFile>(options, output, "edge list");
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
  file->set_edges(open_edge_text(std::move(text)), vertices.count, "line");
  if (options.renumber) file->renumber();
  return file;
}

std::unique_ptr<GraphSource> open_matrix_market(const EdgeFileOptions& options, const OutputFile& output) {
  auto file = std::make_unique<EdgeFile>(options, output, "Matrix Market file");
  auto matrix = std::make_unique<MatrixMarket>(options.file, options.weights);
  if (matrix->symmetric() && options.edges.symmetrize)
    usage_error("--symmetrize: {} says that it is symmetric; leave it out", options.file);
  const auto nodes = matrix->nodes();
  file->set_edges(std::move(matrix), nodes, "entry");
  return file;
}

std::int64_t largest_id(const EdgeSource& edges) {
  std::int64_t largest = -1;
  edges.read([&](const EdgePiece& piece) {
    for (const auto& ends : {piece.sources, piece.targets})
      if (!ends.empty()) largest = std::max(largest, std::ranges::max(ends));
  });
  return largest;
}

// What a user could have written.
DescribedGraph describe_list(const EdgeFileOptions& options) {
  const auto& [features, labels, splits, half] = options.arrays;
  DescribedGraph graph;
  graph.options = import_options(options);
  graph.types = {{.name = {}, .by = {}, .count = options.vertices}};
  auto& vertices = graph.types[0];
  vertices.features.path = features;
  vertices.labels.path = labels;
  const auto form = lines_of_edges(options.weights);
  if (!options.vertices && features.empty() && labels.empty())
    vertices.count = largest_id(*open_edge_text({.path = options.file, .form = form})) + 1;
  if (splits != std::array<std::string, 3>()) {
    DescribedSplit split;
    for (std::size_t s = 0; s < splits.size(); ++s) {
      split.parts[s].path = splits[s];
      split.empty[s] = splits[s].empty();
    }
    vertices.splits = {split};
  }
  graph.relations = {{.triplet = {}, .by = {}, .edges = {{.file = {options.file}, .form = form}}}};
  return graph;
}

}  // namespace

void import_edge_list(const Communicator& comm, const EdgeFileOptions& options, const OutputFile& output) {
  import_graph(comm, output, [&] { return open_edge_list(options, output); });
}

std::string describe_edge_list(const Communicator& comm, const EdgeFileOptions& options) {
  std::string text;
  on_first_rank(comm, [&] { text = as_toml(describe_list(options)); });
  return text;
}

void import_matrix_market(const Communicator& comm, const EdgeFileOptions& options,
                          const OutputFile& output) {
  import_graph(comm, output, [&] { return open_matrix_market(options, output); });
}

}  // namespace espalier
