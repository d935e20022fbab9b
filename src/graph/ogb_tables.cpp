#include "ogb_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "espalier/base/log.hpp"

namespace espalier {

namespace fs = std::filesystem;

std::string find_table(const fs::path& folder, const std::string& stem) {
  for (const char* ending : {".csv.gz", ".csv"})
    if (const auto path = folder / (stem + ending); fs::exists(path)) return path.string();
  return {};
}

std::int64_t read_count(const std::string& path) {
  CsvReader csv(path);
  if (!csv.next_line()) input_error("{}: is empty; expected one number", path);
  const auto count = csv.integer();
  csv.end_line();
  if (count < 0) csv.fail("{} is not a number of things", count);
  if (csv.next_line()) csv.fail("a second graph; only folders with one graph (ogbn sets) can be imported");
  return count;
}

void check_lines(const CsvReader& csv, std::int64_t lines, std::int64_t wanted, const std::string& things) {
  if (lines == wanted) return;
  input_error("{}: has {} lines, but there are {} {}; is the download complete?", csv.path(), lines, wanted,
              things);
}

std::int64_t read_vertex(CsvReader& csv, const VertexCount& vertices) {
  const auto id = csv.integer();
  if (id < 0 || id >= vertices.count)
    csv.fail("vertex {} is out of range: {}, 0 to {}", id, vertices.by, vertices.count - 1);
  return id;
}

// ---- features ----

namespace {

class FeatureTable : public FeatureRows {
 public:
  FeatureTable(const std::string& path, std::int64_t count, const std::string& things)
      : csv_(path), count_(count), things_(things) {
    if (read_ahead()) columns_ = csv_.count_fields();
  }
  std::int64_t columns() const override { return columns_; }
  void next(std::span<double> row) override {
    if (row_ > 0) read_ahead();
    if (!more_) check_lines(csv_, row_, count_, things_);
    ++row_;
    for (auto& value : row) {
      if (!csv_.has_field()) refuse_width();
      value = csv_.number();
    }
    if (csv_.has_field()) refuse_width();
  }
  void finish() override {
    if (count_ == 0 ? more_ : csv_.next_line())
      csv_.fail("one line too many: the graph has {} {}", count_, things_);
  }
  std::string place() const override { return fmt::format("{}:{}", csv_.path(), csv_.line()); }

 private:
  bool read_ahead() { return more_ = csv_.next_line(); }
  [[noreturn]] void refuse_width() const {
    csv_.fail("has {} fields, the first line has {}", csv_.count_fields(), columns_);
  }

  CsvReader csv_;
  std::int64_t count_, columns_ = 0, row_ = 0;
  std::string things_;
  bool more_ = false;
};

}  // namespace

std::unique_ptr<FeatureRows> open_feature_table(const std::string& path, std::int64_t count,
                                                const std::string& things) {
  return path.empty() ? nullptr : std::make_unique<FeatureTable>(path, count, things);
}

// ---- splits ----

std::vector<std::string> names_of_splits(const std::string& asked) {
  auto names = split_text(asked, ',');
  if (names.size() < 2) return {asked};
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (!is_split_name(*name))
      usage_error("--split {}: of several splits each has a name, and {}", asked, kSplitNameRule);
    if (std::find(names.begin(), name, *name) != name)
      usage_error("--split {}: names {} twice", asked, *name);
  }
  return names;
}

std::vector<std::string> kept_names(const std::string& asked) {
  const auto names = names_of_splits(asked);
  return names.size() > 1 ? names : std::vector<std::string>{""};
}

std::string find_split_folder(const std::string& folder, const std::string& split) {
  const auto parent = fs::path(folder) / "split";
  std::vector<std::string> names;
  if (fs::is_directory(parent))
    for (const auto& entry : fs::directory_iterator(parent))
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  if (split.empty()) {
    if (names.size() > 1)
      usage_error("{} holds several splits; choose one with --split: {}", parent.string(),
                  fmt::join(names, ", "));
    return names.empty() ? std::string() : (parent / names[0]).string();
  }
  if (std::ranges::find(names, split) == names.end())
    input_error("--split {}: no such folder in {}; there is {}{}", split, parent.string(),
                names.empty() ? "none" : "", fmt::join(names, ", "));
  return (parent / split).string();
}

bool is_split_of_links(const std::string& split_folder, const std::string& folder) {
  const fs::path place = split_folder;
  if (split_folder.empty() || !fs::exists(place / "train.pt")) return false;
  for (const char* name : kSplitNames)
    if (!find_table(place, name).empty()) return false;
  log::info(
      "links      {} holds splits of links, not of vertices; `scripts/ogb_links.py {} FILE` puts them into "
      "the graph file",
      place.string(), folder);
  return true;
}

void read_split_table(const std::string& path, const VertexCount& vertices, Split split,
                      SplitCollector& splits) {
  CsvReader csv(path);
  const auto place = [&] { return fmt::format("{}:{}", csv.path(), csv.line()); };
  while (csv.next_line()) {
    const auto id = read_vertex(csv, vertices);
    csv.end_line();
    splits.add(split, id, place);
  }
}

}  // namespace espalier
