#include "ogb_folder.hpp"

#include <filesystem>

#include "array_tables.hpp"
#include "import_edge_features.hpp"
#include "npy_file.hpp"

namespace espalier {

namespace fs = std::filesystem;

void OgbFolder::check_edge_weight(const std::string& place, std::int64_t columns) const {
  if (options_.edge_weight && *options_.edge_weight >= columns)
    usage_error("--edge-weight {}: {} has {} column{}, counted from 0", *options_.edge_weight, place, columns,
                columns == 1 ? "" : "s");
}

std::unique_ptr<FeatureRows> OgbFolder::open_edge_features(std::int64_t edges) const {
  if (!options_.edge_features) return nullptr;
  auto rows = open_all_edge_features(edges);
  return options_.edge_weight ? without_column(std::move(rows), *options_.edge_weight) : std::move(rows);
}

std::string OgbFolder::split_folder(const std::string& split) const {
  return find_split_folder(options_.folder, split);
}

namespace {

std::string split_array(const std::string& folder, Split split) {
  const std::string name = kSplitNames[static_cast<std::size_t>(split)];
  return (fs::path(folder) / (name + ".npy")).string();
}

}  // namespace

Splits OgbFolder::read_splits(const OgbLabels& labels, const std::string& name) const {
  const auto folder = split_folder(name);
  if (folder.empty() || is_split_of_links(folder, options_.folder)) return {};
  if (!find_table(folder, "train").empty() || !fs::exists(split_array(folder, Split::kTrain)))
    return read_split_tables(folder, {nodes_, nodes_in_words()}, labels, HiddenTests::kRefuse);
  SplitCollector splits(nodes_, labels, HiddenTests::kRefuse);
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
    read_split_array(*open_npy(split_array(folder, split)), {nodes_, nodes_in_words()}, split, splits);
  return splits.finish();
}

}  // namespace espalier
