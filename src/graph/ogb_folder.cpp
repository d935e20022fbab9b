#include "ogb_folder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>

#include "array_tables.hpp"
#include "espalier/base/error.hpp"
#include "graph_source.hpp"
#include "ogb_tables.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// meta.json, or an empty object where there is no such file or it is something else.
nlohmann::json read_meta(const fs::path& folder) {
  auto none = nlohmann::json::object();
  std::error_code error;
  if (!fs::is_regular_file(folder / "meta.json", error)) return none;
  std::ifstream file(folder / "meta.json");
  auto meta = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  return meta.is_object() ? meta : none;
}

// true, "True" and "true" say yes (OGB writes such words in quotes).
bool says(const nlohmann::json& value, bool what) {
  if (value.is_boolean()) return value.get<bool>() == what;
  if (!value.is_string()) return false;
  auto word = value.get<std::string>();
  for (auto& letter : word) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return word == (what ? "true" : "false");
}

}  // namespace

std::string one_direction_by(const std::string& folder) {
  const auto meta = read_meta(folder);
  for (const auto& [key, value] :
       {std::pair{"add_inverse_edge", true}, {"is_directed", false}, {"directed", false}})
    if (const auto found = meta.find(key); found != meta.end() && says(*found, value))
      return fmt::format("\"{}\": {}", key, found->dump());
  return {};
}

GraphDescription describe_folder(const std::string& place, const std::string& layout) {
  const auto folder = fs::absolute(place).lexically_normal();
  const auto name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  GraphDescription description{name.string(), layout + " folder " + name.string(), false};
  const auto meta = read_meta(folder);
  if (meta.contains("name") && meta["name"].is_string()) description.name = meta["name"];
  if (meta.contains("source") && meta["source"].is_string()) description.source = meta["source"];
  return description;
}

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

std::vector<DescribedType> read_type_sizes(const std::string& path) {
  CsvReader csv(path);
  std::vector<DescribedType> types;
  for (const auto& name : read_type_header(csv, [](const std::string&) {})) {
    const auto size = csv.integer();
    if (size < 0) csv.fail("{} is not a number of vertices", size);
    types.push_back({.name = name, .by = "", .count = size});
  }
  if (csv.next_line()) csv.fail("a second graph; only folders with one graph (ogbn sets) can be imported");
  return types;
}

std::set<int> types_with(const DescribedGraph& graph, const std::string& flags, const fs::path& parts,
                         const std::string& things) {
  std::set<int> found;
  if (flags.empty()) {
    for (int t = 0; t < std::ssize(graph.types); ++t)
      if (fs::is_directory(parts / graph.types[t].name)) found.insert(t);
    return found;
  }
  CsvReader csv(flags);
  const auto check = [&](const std::string& name) {
    if (graph.type_of(name) < 0) csv.fail("there is no vertex type \"{}\"", name);
  };
  for (const auto& name : read_type_header(csv, check)) {
    if (!flag(csv)) continue;
    if (!fs::is_directory(parts / name))
      csv.fail("says that {} has {}, but there is no {}", name, things, (parts / name).string());
    found.insert(graph.type_of(name));
  }
  return found;
}

DescribedGraph describe_layout(const FolderOptions& options, const std::string& layout) {
  DescribedGraph graph;
  graph.about = describe_folder(options.folder, layout);
  graph.options = {.place = options.folder, .edges = options.edges, .half = options.half};
  graph.one_direction_by = one_direction_by(options.folder);
  return graph;
}

DescribedGraph describe_plain_layout(const FolderOptions& options, const std::string& layout,
                                     std::int64_t vertices, const std::string& counted_by) {
  auto graph = describe_layout(options, layout);
  graph.hidden = HiddenTests::kRefuse;
  graph.types = {{.name = "",
                  .by = "",
                  .count = vertices,
                  .counted_by = fmt::format("{} says {} vertices", counted_by, vertices)}};
  graph.relations.resize(1);
  return graph;
}

void check_edge_weight(const FolderOptions& options, const std::string& place, std::int64_t columns) {
  if (*options.edge_weight >= columns)
    usage_error("--edge-weight {}: {} has {} column{}, counted from 0", *options.edge_weight, place, columns,
                columns == 1 ? "" : "s");
}

void set_edge_features(DescribedRelation& relation, const FolderOptions& options, const DescribedFile& file) {
  if (options.edge_features) relation.features = file;
  if (!options.edge_weight) return;
  relation.weights = file;
  relation.weights.column = relation.features.without = options.edge_weight;
}

DescribedSplit split_of_arrays(const std::string& name, const fs::path& folder) {
  DescribedSplit found{name};
  for (const auto split : kSplits)
    found.parts[static_cast<std::size_t>(split)].path = split_array(folder, split);
  return found;
}

namespace {

DescribedSplit split_of_tables(const std::string& name, const fs::path& folder) {
  DescribedSplit found{name};
  for (std::size_t s = 0; s < kSplitNames.size(); ++s) {
    const auto path = find_table(folder, kSplitNames[s]);
    found.parts[s].path = path.empty() ? folder.string() + "/" + kSplitNames[s] + ".csv.gz" : path;
  }
  return found;
}

// Of a graph without types; where there is none each part is empty.
DescribedSplit plain_split(const std::string& name, const std::string& folder, const std::string& of) {
  if (folder.empty() || is_split_of_links(folder, of)) return {name, {}, {true, true, true}};
  const bool arrays = find_table(folder, "train").empty() && fs::exists(split_array(folder, Split::kTrain));
  return arrays ? split_of_arrays(name, folder) : split_of_tables(name, folder);
}

}  // namespace

void set_splits(DescribedGraph& graph, const FolderOptions& options, const fs::path& labels) {
  const auto asked = names_of_splits(options.split), kept = kept_names(options.split);
  graph.options.splits = kept;
  for (std::size_t k = 0; k < asked.size(); ++k) {
    const auto folder = find_split_folder(options.folder, asked[k]);
    if (!graph.typed()) graph.types[0].splits.push_back(plain_split(kept[k], folder, options.folder));
    if (!graph.typed() || folder.empty()) continue;
    const auto types = types_with(graph, find_table(folder, "nodetype-has-split"), folder, "splits");
    if (types.empty() && !is_split_of_links(folder, options.folder) &&
        fs::exists(fs::path(folder) / "split_dict.pt"))
      input_error("{}/split_dict.pt: is a pickle of PyTorch's; run scripts/mag240m_pickles.py {} first",
                  folder, options.folder);
    for (const int type : types) {
      if (!graph.types[type].labels.given())
        input_error("{}: {} has a split, but no labels in {}", folder, graph.types[type].name,
                    labels.string());
      graph.types[type].splits.push_back(split_of_tables(kept[k], fs::path(folder) / graph.types[type].name));
    }
  }
}

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
