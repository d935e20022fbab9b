#include <filesystem>
#include <string>

#include "espalier/base/error.hpp"
#include "graph_source.hpp"
#include "ogb_folder.hpp"

namespace espalier {

namespace {

bool has_raw(const FolderOptions& options, const char* name) {
  return std::filesystem::exists(std::filesystem::path(options.folder) / "raw" / name);
}
bool has_table(const FolderOptions& options, const char* stem) {
  return !find_table(std::filesystem::path(options.folder) / "raw", stem).empty();
}

// Options that mean nothing are refused, not ignored.
void check_options(const FolderOptions& options, bool typed) {
  if (!typed && !options.inverses)
    usage_error("--no-inverse: {} has no types of vertices and so no inverse relations; leave it out",
                options.folder);
  if (!typed) return;
  if (options.edges.symmetrize)
    usage_error(
        "--symmetrize: {} has several types of vertices, and each relation gets an inverse without it; leave "
        "it "
        "out (--no-inverse leaves the inverses out)",
        options.folder);
  if (options.edge_weight)
    usage_error("--edge-weight: edges of a graph with several types have no weights; leave it out");
}

DescribedGraph describe_ogb_folder(const FolderOptions& options) {
  const bool arrays_of_types = has_raw(options, "edge_index_dict.npz"),
             typed = arrays_of_types || has_table(options, "num-node-dict");
  check_options(options, typed);
  auto graph = arrays_of_types || (!typed && has_raw(options, "data.npz"))
                   ? describe_binary_ogb_folder(options, typed)
                   : describe_csv_ogb_folder(options, typed);
  return graph;
}

}  // namespace

ImportPlan plan_of(const OgbFolder& folder) {
  return {.describe = [=] { return describe_ogb_folder(folder); }, .folder = folder.folder};
}

}  // namespace espalier
