// Columns of features by name (graph_file.hpp): compared, and kept in weights and checkpoints.
#include "espalier/graph/graph_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "espalier/base/text.hpp"
#include "espalier/file/hdf5.hpp"

namespace espalier {

namespace {

constexpr std::size_t kMostOfName = 60;  // letters, in a message

// The list, from a few before `at` on, as far as a message has room.
std::string names_around(const std::vector<std::string>& names, std::size_t at) {
  constexpr std::size_t kBefore = 5, kMost = 400;
  auto k = at > kBefore ? at - kBefore : 0;
  std::string words = k > 0 ? ".., " : "";
  for (; k < names.size() && words.size() < kMost; ++k)
    words += excerpt(names[k], kMostOfName) + (k + 1 < names.size() ? ", " : "");
  return fmt::format("{}{} ({})", words, k < names.size() ? ".." : "", counted(std::ssize(names), "column"));
}

std::string name_at(const std::vector<std::string>& names, std::size_t at) {
  return at < names.size() ? excerpt(names[at], kMostOfName) : "none";
}

}  // namespace

const std::string* name_of_two(const FeatureColumns& columns) {
  std::set<std::string_view> known;
  const auto found =
      std::ranges::find_if(columns.names, [&](const auto& name) { return !known.insert(name).second; });
  return found == columns.names.end() ? nullptr : &*found;
}

std::string difference_of_names(const FeatureColumns& there, const FeatureColumns& here) {
  const auto at =
      static_cast<std::size_t>(std::ranges::mismatch(there.names, here.names).in1 - there.names.begin());
  if (at == there.names.size() && at == here.names.size()) return {};
  return fmt::format("column {} is {} there and {} here; there: {}; here: {}", at, name_at(there.names, at),
                     name_at(here.names, at), names_around(there.names, at), names_around(here.names, at));
}

bool have_same_scales(const FeatureColumns& there, const FeatureColumns& here) {
  return there.scales.size() == here.scales.size() &&
         (here.scales.empty() ||
          std::memcmp(there.scales.data(), here.scales.data(), here.scales.size() * sizeof(double)) == 0);
}

bool write_columns(const hdf5::Handle& file, const ColumnsByGroup& columns) {
  bool good = true;
  for (const auto& [group, of] : columns) {
    std::size_t longest = 1;
    for (const auto& name : of.names) longest = std::max(longest, name.size());
    const auto width = std::ssize(of.names);
    const auto names =
        hdf5::create_texts(file, group + kNamesOfColumns, width, longest, hdf5::reserve_dataset);
    good = good && names.exists() && hdf5::write_texts_at(names, 0, of.names);
    if (of.scales.empty()) continue;
    const auto scales = hdf5::reserve_dataset(file, group + kScalesOfColumns, hdf5::file_type<double>(),
                                              {width, kScaleParts});
    good = good && scales.exists() &&
           hdf5::write_slab(scales, hdf5::memory_type<double>(), {0, width, kScaleParts}, of.scales.data());
  }
  return good;
}

bool read_columns(const hdf5::Handle& file, ColumnsByGroup& columns) {
  for (const auto& dataset : hdf5::dataset_names(file)) {
    if (!is_of_columns(dataset) || !dataset.ends_with(kNamesOfColumns)) continue;
    const auto group = "/" + dataset.substr(0, dataset.size() - std::strlen(kNamesOfColumns));
    auto& of = columns[group];
    const auto names = hdf5::open_dataset(file, "/" + dataset);
    if (!hdf5::read_texts(names, 0, names.rows(), of.names)) return false;
    const auto scales = hdf5::open_dataset(file, group + kScalesOfColumns);
    if (!scales.exists()) continue;
    if (!scales.is_float() || scales.shape != std::vector<std::int64_t>{names.rows(), kScaleParts})
      return false;
    of.scales.resize(of.names.size() * kScaleParts);
    if (!hdf5::read_slab(scales, hdf5::memory_type<double>(), {0, names.rows(), kScaleParts},
                         of.scales.data()))
      return false;
  }
  return true;
}

bool is_of_columns(const std::string& dataset) {
  return (dataset.starts_with("nodes/") || dataset.starts_with("edges/")) &&
         (dataset.ends_with(std::string("/") + kNamesOfColumns) ||
          dataset.ends_with(std::string("/") + kScalesOfColumns));
}

}  // namespace espalier
