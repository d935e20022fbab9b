#include "ogb_folder.hpp"

#include <algorithm>

#include "array_tables.hpp"
#include "import_tables.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// The first line of a table whose columns are types; then the line of values is the current one.
std::vector<std::string> read_type_header(CsvReader& csv,
                                          const std::function<void(const std::string&)>& check) {
  std::vector<std::string> names;
  if (!csv.next_line()) input_error("{}: is empty; expected a line of vertex types", csv.path());
  while (csv.has_field()) names.emplace_back(csv.text());
  for (auto name = names.begin(); name != names.end(); ++name)
    if (std::find(names.begin(), name, *name) != name) csv.fail("two vertex types are called {}", *name);
  std::ranges::for_each(names, check);
  if (!csv.next_line()) input_error("{}: ends after its header", csv.path());
  if (csv.count_fields() != std::ssize(names))
    csv.fail("has {} fields, the header has {}", csv.count_fields(), names.size());
  return names;
}

bool flag(CsvReader& csv) {
  const auto word = csv.text();
  if (word == "True" || word == "true" || word == "1") return true;
  if (word != "False" && word != "false" && word != "0") csv.fail("a flag is neither True nor False");
  return false;
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> read_type_sizes(const std::string& path) {
  CsvReader csv(path);
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  for (const auto& name : read_type_header(csv, [](const std::string&) {})) {
    sizes.emplace_back(name, csv.integer());
    if (sizes.back().second < 0) csv.fail("{} is not a number of vertices", sizes.back().second);
  }
  if (csv.next_line()) csv.fail("a second graph; only folders with one graph (ogbn sets) can be imported");
  return sizes;
}

std::set<int> types_with(const GraphSource& source, const std::string& flags, const fs::path& parts,
                         const std::string& things) {
  std::set<int> found;
  if (flags.empty()) {
    for (int t = 0; t < std::ssize(source.types()); ++t)
      if (fs::is_directory(parts / source.types()[t].name)) found.insert(t);
    return found;
  }
  CsvReader csv(flags);
  const auto check = [&](const std::string& name) {
    if (source.type_of(name) < 0) csv.fail("there is no vertex type \"{}\"", name);
  };
  for (const auto& name : read_type_header(csv, check)) {
    if (!flag(csv)) continue;
    if (!fs::is_directory(parts / name))
      csv.fail("says that {} has {}, but there is no {}", name, things, (parts / name).string());
    found.insert(source.type_of(name));
  }
  return found;
}

ImportOptions import_options(const TypedImportOptions& options, bool symmetrize) {
  return {.place = options.folder,
          .edges = {symmetrize, options.drop_self_loops, options.duplicates, options.duplicate_features},
          .edge_features = options.edge_features,
          .half = options.half,
          .splits = kept_names(options.split)};
}

void OgbFolder::check_edge_weight(const std::string& place, std::int64_t columns) const {
  if (*options_.edge_weight >= columns)
    usage_error("--edge-weight {}: {} has {} column{}, counted from 0", *options_.edge_weight, place, columns,
                columns == 1 ? "" : "s");
}

std::unique_ptr<FeatureRows> OgbFolder::open_edge_features(int triplet, std::int64_t edges) const {
  auto rows = open_all_edge_features(triplet, edges);
  return options_.edge_weight ? without_column(std::move(rows), *options_.edge_weight) : std::move(rows);
}

void OgbFolder::find_splits(const std::function<bool(int)>& has_labels, const fs::path& labels) {
  for (const auto& split : names_of_splits(options_.split)) {
    splits_.push_back({find_split_folder(options_.folder, split), {}});
    auto& [folder, types] = splits_.back();
    if (!typed()) types = {0};
    if (!typed() || folder.empty()) continue;
    types = types_with(*this, find_table(folder, "nodetype-has-split"), folder, "splits");
    if (types.empty() && !is_split_of_links(folder, options_.folder) &&
        fs::exists(fs::path(folder) / "split_dict.pt"))
      input_error("{}/split_dict.pt: is a pickle of PyTorch's; run scripts/mag240m_pickles.py {} first",
                  folder, options_.folder);
    for (const int type : types)
      if (!has_labels(type))
        input_error("{}: {} has a split, but no labels in {}", folder, name(type), labels.string());
  }
}

Splits OgbFolder::read_splits(int type, const OgbLabels& labels, std::size_t place) const {
  const auto& folder = splits_[place].folder;
  if (typed())
    return read_split_tables((fs::path(folder) / name(type)).string(), vertices(type), labels,
                             HiddenTests::kLeave);
  if (folder.empty() || is_split_of_links(folder, options_.folder)) return {};
  const bool arrays = find_table(folder, "train").empty() && fs::exists(split_array(folder, Split::kTrain));
  return arrays ? read_split_arrays(folder, vertices(type), labels, HiddenTests::kRefuse)
                : read_split_tables(folder, vertices(type), labels, HiddenTests::kRefuse);
}

}  // namespace espalier
