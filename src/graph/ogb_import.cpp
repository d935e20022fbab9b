#include "espalier/graph/ogb_import.hpp"

#include <filesystem>
#include <memory>
#include <string>

#include "espalier/base/error.hpp"
#include "espalier/file/input_files.hpp"
#include "first_rank.hpp"
#include "graph_source.hpp"
#include "ogb_folder.hpp"

namespace espalier {

namespace {

bool has_raw(const OgbOptions& options, const char* name) {
  return std::filesystem::exists(std::filesystem::path(options.folder) / "raw" / name);
}
bool has_table(const OgbOptions& options, const char* stem) {
  return !find_table(std::filesystem::path(options.folder) / "raw", stem).empty();
}

// Options that mean nothing are refused, not ignored.
void check_options(const OgbOptions& options, bool typed) {
  if (!typed && !options.inverses)
    usage_error("--no-inverse: {} has no types of vertices and so no inverse relations; leave it out",
                options.folder);
  if (!typed) return;
  if (options.symmetrize)
    usage_error(
        "--symmetrize: {} has several types of vertices, and each relation gets an inverse without it; leave "
        "it "
        "out (--no-inverse leaves the inverses out)",
        options.folder);
  if (options.edge_weight)
    usage_error("--edge-weight: edges of a graph with several types have no weights; leave it out");
}

DescribedGraph describe_ogb_folder(const OgbOptions& options) {
  const bool arrays_of_types = has_raw(options, "edge_index_dict.npz"),
             typed = arrays_of_types || has_table(options, "num-node-dict");
  check_options(options, typed);
  auto graph = arrays_of_types || (!typed && has_raw(options, "data.npz"))
                   ? describe_binary_ogb_folder(options, typed)
                   : describe_csv_ogb_folder(options, typed);
  graph.options = import_options(options, options.symmetrize);
  return graph;
}

}  // namespace

void import_ogb(const Communicator& comm, const OgbOptions& options, const OutputFile& output) {
  import_graph(comm, output, [&] {
    refuse_input_as_output(options.folder, output.path);
    return std::make_unique<GraphSource>(describe_ogb_folder(options));
  });
}

std::string describe_ogb(const Communicator& comm, const OgbOptions& options) {
  std::string text;
  on_first_rank(comm, [&] { text = as_toml(describe_ogb_folder(options)); });
  return text;
}

}  // namespace espalier
