#include "ogb_typed_splits.hpp"

#include <algorithm>

namespace espalier {

namespace fs = std::filesystem;

std::vector<std::string> read_type_header(CsvReader& csv) {
  std::vector<std::string> names;
  if (!csv.next_line()) input_error("{}: is empty; expected a line of vertex types", csv.path());
  while (csv.has_field()) names.emplace_back(csv.text());
  for (auto name = names.begin(); name != names.end(); ++name)
    if (std::find(names.begin(), name, *name) != name) csv.fail("two vertex types are called {}", *name);
  return names;
}

void next_type_values(CsvReader& csv, std::size_t types) {
  if (!csv.next_line()) input_error("{}: ends after its header", csv.path());
  if (csv.count_fields() != static_cast<std::int64_t>(types))
    csv.fail("has {} fields, the header has {}", csv.count_fields(), types);
}

void read_type_sizes(const std::string& path,
                     const std::function<void(const std::string&, std::int64_t)>& add) {
  CsvReader csv(path);
  const auto names = read_type_header(csv);
  next_type_values(csv, names.size());
  for (const auto& name : names) {
    const auto size = csv.integer();
    if (size < 0) csv.fail("{} is not a number of vertices", size);
    add(name, size);
  }
  if (csv.next_line()) csv.fail("a second graph; only folders with one graph (ogbn sets) can be imported");
}

namespace {

bool flag(CsvReader& csv) {
  const auto word = csv.text();
  if (word == "True" || word == "true" || word == "1") return true;
  if (word != "False" && word != "false" && word != "0") csv.fail("a flag is neither True nor False");
  return false;
}

std::set<int> types_with_folder(const TypedFolder& folder, const fs::path& parts) {
  std::set<int> found;
  for (int t = 0; t < std::ssize(folder.types()); ++t)
    if (fs::is_directory(parts / folder.types()[t].name)) found.insert(t);
  return found;
}

}  // namespace

std::set<int> types_with(const TypedFolder& folder, const TypeFlags& what) {
  const auto path = find_table(what.folder, what.flags);
  if (path.empty()) return types_with_folder(folder, what.parts);
  std::set<int> found;
  CsvReader csv(path);
  const auto names = read_type_header(csv);
  for (const auto& name : names)
    if (folder.type_of(name) < 0) csv.fail("there is no vertex type \"{}\"", name);
  next_type_values(csv, names.size());
  for (const auto& name : names) {
    if (!flag(csv)) continue;
    if (!fs::is_directory(what.parts / name))
      csv.fail("says that {} has {}, but there is no {}", name, what.things, (what.parts / name).string());
    found.insert(folder.type_of(name));
  }
  return found;
}

OgbTypedSplits::OgbTypedSplits(const TypedFolder& folder, const std::string& path, const std::string& split)
    : folder_(find_split_folder(path, split)) {
  if (folder_.empty()) return;
  types_ = types_with(folder, {folder_, "nodetype-has-split", folder_, "splits"});
  if (!types_.empty() || is_split_of_links(folder_, path)) return;
  if (fs::exists(fs::path(folder_) / "split_dict.pt"))
    input_error("{}/split_dict.pt: is a pickle of PyTorch's; run scripts/mag240m_pickles.py {} first",
                folder_, path);
}

Splits OgbTypedSplits::read(const std::string& type, const TableVertices& vertices,
                            const OgbLabels& labels) const {
  return read_split_tables((fs::path(folder_) / type).string(), vertices, labels, HiddenTests::kLeave);
}

std::vector<OgbTypedSplits> open_splits(const TypedFolder& folder, const TypedImportOptions& options) {
  std::vector<OgbTypedSplits> splits;
  for (const auto& name : names_of_splits(options.split)) splits.emplace_back(folder, options.folder, name);
  return splits;
}

}  // namespace espalier
