#include <algorithm>
#include <filesystem>

#include "array_tables.hpp"
#include "espalier/base/error.hpp"
#include "graph_source.hpp"
#include "ogb_folder.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

std::vector<DescribedType> read_types(const std::string& folder) {
  const auto path = find_table(folder, "num-node-dict");
  if (path.empty())
    input_error("{}/num-node-dict.csv: no such file; scripts/mag240m_pickles.py {} makes it from meta.pt",
                folder, folder);
  return read_type_sizes(path);
}

// Triplets are the folders that are called so, in ascending order.
void find_names(const FolderOptions& options, const fs::path& processed, DescribedGraph& graph) {
  graph.types = read_types(options.folder);
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(processed))
    if (entry.is_directory() && !split_triplet(entry.path().filename()).head.empty())
      folders.push_back(entry.path().filename());
  std::ranges::sort(folders);
  for (const auto& name : folders)
    graph.add_relation({.triplet = split_triplet(name, options.inverses), .by = ""},
                       (processed / name).string());
  graph.check_names(processed.string());
}

// Splits are of the one type that has labels.
void set_target(DescribedGraph& graph, const fs::path& split) {
  if (!fs::is_directory(split)) return;
  DescribedType* target = nullptr;
  for (auto& type : graph.types) {
    if (!type.labels.given()) continue;
    if (target != nullptr)
      input_error("{}: {} and {} have labels; of which are the splits in {}?", graph.place, target->name,
                  type.name, split.string());
    target = &type;
  }
  if (target == nullptr)
    input_error("{}: holds splits, but no type has labels in {}", split.string(), graph.place);
  target->splits = {split_of_arrays("", split)};
}

DescribedGraph describe_mag240m_folder(const FolderOptions& options) {
  const auto processed = fs::path(options.folder) / "processed";
  if (!fs::is_directory(processed)) input_error("{}: no such folder", processed.string());
  auto graph = describe_layout(options, "MAG240M");
  find_names(options, processed, graph);
  graph.place = processed.string();
  for (auto& type : graph.types)
    for (const auto& [array, file] :
         {std::pair{"node_feat.npy", &type.features}, {"node_label.npy", &type.labels}})
      if (const auto path = processed / type.name / array; fs::exists(path)) file->path = path.string();
  for (auto& relation : graph.relations)
    relation.edges = {{.file = {(processed / relation.triplet.joined() / "edge_index.npy").string()}}};
  set_target(graph, fs::path(options.folder) / "split");
  return graph;
}

}  // namespace

ImportPlan plan_of(const Mag240mFolder& folder) {
  return {.describe = [=] { return describe_mag240m_folder(folder); },
          .folder = folder.folder,
          .parts = {"processed", "split"},
          .shared = true};
}

}  // namespace espalier
