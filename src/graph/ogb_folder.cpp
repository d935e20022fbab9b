#include "ogb_folder.hpp"

#include <filesystem>

#include "array_tables.hpp"
#include "import_tables.hpp"

namespace espalier {

void OgbFolder::check_edge_weight(const std::string& place, std::int64_t columns) const {
  if (*options_.edge_weight >= columns)
    usage_error("--edge-weight {}: {} has {} column{}, counted from 0", *options_.edge_weight, place, columns,
                columns == 1 ? "" : "s");
}

std::unique_ptr<FeatureRows> OgbFolder::open_edge_features(std::int64_t edges) const {
  if (!options_.edge_features) return nullptr;
  auto rows = open_all_edge_features(edges);
  return options_.edge_weight ? without_column(std::move(rows), *options_.edge_weight) : std::move(rows);
}

Splits OgbFolder::read_splits(const OgbLabels& labels, const std::string& name) const {
  const auto folder = find_split_folder(options_.folder, name);
  if (folder.empty() || is_split_of_links(folder, options_.folder)) return {};
  const bool arrays =
      find_table(folder, "train").empty() && std::filesystem::exists(split_array(folder, Split::kTrain));
  return arrays ? read_split_arrays(folder, vertices_, labels, HiddenTests::kRefuse)
                : read_split_tables(folder, vertices_, labels, HiddenTests::kRefuse);
}

}  // namespace espalier
