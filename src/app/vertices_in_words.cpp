// Features and labels of vertices and edges.
#include <algorithm>

#include "espalier/base/counted.hpp"
#include "espalier/file/csv.hpp"
#include "espalier/graph/graph_facts.hpp"
#include "espalier/graph/row_range.hpp"
#include "info_pages.hpp"

namespace espalier {

std::string labels_in_words(const Communicator& world, const GraphFile& file, int type) {
  const auto& info = file.info().types[type];
  const auto vertices = file.info().schema.types()[type].size();
  if (!info.has_labels) return "none";
  if (info.classes == 0) return fmt::format("all {} vertices are unlabelled (-1)", vertices);
  auto counts = count_labels(world, file, type);
  const auto unknown = counts.back();
  counts.pop_back();
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  std::int64_t total = 0;
  for (const auto count : counts) total += count;
  const auto* noun = info.multi_label ? "label" : "class";
  const auto range = fmt::format("{} {} has least ({}), {} {} most ({})", noun, least - counts.begin(),
                                 *least, noun, most - counts.begin(), *most);
  if (info.multi_label)
    return fmt::format(
        "{} per vertex, 0 or 1, {:.3f} of them 1{}; {}", info.classes,
        static_cast<double>(total) / static_cast<double>(std::max<std::int64_t>(1, vertices) * info.classes),
        unknown > 0 ? fmt::format(", {} unknown", unknown) : "", range);
  return fmt::format("{}, {} of {} labelled; {}", counted(info.classes, "class"), total,
                     counted(vertices, "vertex"), range);
}

std::string ids_in_words(const Communicator& world, const GraphFile& file, int type) {
  const auto& of = file.info().schema.types()[type];
  in_row_parts(
      world, of.size(),
      [&](std::int64_t begin, std::int64_t end) { file.read_texts(Column::kIds, type, begin, end); }, 32);
  const std::string words = file.info().types[type].ids == IdKind::kNumbers ? "numbers" : "texts";
  if (of.size() == 0) return words + ", of no vertex";
  return fmt::format("{}, {} to {}", words, excerpt(file.read_texts(Column::kIds, type, 0, 1)[0], 40),
                     excerpt(file.read_texts(Column::kIds, type, of.size() - 1, of.size())[0], 40));
}

static std::string names_in_words(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 200;
  std::string words;
  for (const auto& name : names) {
    if (words.size() > kMost) return words + ", ..";
    words += (words.empty() ? "" : ", ") + csv_field(excerpt(name, 40));
  }
  return words;
}

std::string class_names_in_words(const GraphFile& file, int type) {
  return names_in_words(file.read_texts(Column::kClassNames, type, 0, file.info().types[type].class_names));
}

void show_columns(const GraphFile& file) {
  for (const auto& [group, of] : file.info().feature_columns) {
    const std::string noun = group.starts_with("/edges/") ? "edge columns" : "columns";
    const auto first = group.find('/', 1) + 1;
    const auto owner = first < group.size() ? group.substr(first, group.size() - first - 1) + ": " : "";
    info_line(noun.c_str(), fmt::format("{}{}, {}{}", owner, of.names.size(), names_in_words(of.names),
                                        of.scales.empty() ? "" : "; filled or scaled"));
  }
}

static std::string numbers_in_words(const NumberFacts& facts, std::int64_t numbers) {
  return fmt::format("from {:.4g} to {:.4g}, {:.1f} % not zero", facts.least, facts.most,
                     100.0 * static_cast<double>(facts.nonzero) / static_cast<double>(numbers));
}

std::string features_in_words(const Communicator& world, const GraphFile& file, int type) {
  const auto& info = file.info().types[type];
  const auto& vertices = file.info().schema.types()[type];
  const auto values = vertices.size() * info.features;
  if (info.features == 0) return "none";
  const auto words = fmt::format("{} x {}", info.features, info.half_features ? "float16" : "float32");
  if (values == 0) return words + ", of no vertex";
  if (info.pairs > 0)
    return words +
           fmt::format(
               ", sparse: {} numbers, {:.3g} in a row and {} at most, {:.2g} % of a matrix",
               info.feature_entries,
               static_cast<double>(info.feature_entries * info.features) / static_cast<double>(values),
               info.pairs, 100.0 * static_cast<double>(info.feature_entries) / static_cast<double>(values));
  return words + ", " + numbers_in_words(read_feature_facts(world, file, type), values);
}

std::string in_words(const SplitInfo& split) {
  return fmt::format("{}{}train {}, valid {}, test {}", split.name, split.name.empty() ? "" : ": ",
                     split.train, split.valid, split.test);
}

void show_unreached(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  const auto& schema = info.schema;
  const auto unreached = count_unreached(world, file);
  for (std::size_t t = 0; t < unreached.size(); ++t) {
    const bool reached = std::ranges::any_of(
        schema.relations(), [&](const auto& of) { return of.target == static_cast<int>(t); });
    if (unreached[t].all == 0) continue;
    info_line("no in-edge",
              fmt::format("{}{}{}{}", info.typed ? schema.types()[t].name + ": " : "",
                          counted(unreached[t].all, "vertex"),
                          unreached[t].of_train == 0
                              ? ""
                              : fmt::format(", {} of {} to train", unreached[t].train, unreached[t].of_train),
                          reached ? "" : "; no relation leads to them"));
  }
}

std::string edge_features_in_words(const Communicator& world, const GraphFile& file, int relation) {
  const auto& info = file.info().edge_features[relation];
  const auto words =
      fmt::format("{} x {} {}", info.entries, info.features, info.half ? "float16" : "float32");
  if (info.entries == 0) return words;
  return words + ", " +
         numbers_in_words(read_edge_feature_facts(world, file, relation), info.entries * info.features);
}

void show_times(const Communicator& world, const GraphFile& file, Column column, int owner) {
  const auto info = file.column(column, owner);
  if (info.rows == 0) return;
  const auto [earliest, latest] = read_time_range(world, file, column, owner);
  const auto& schema = file.info().schema;
  const bool of_edges = column == Column::kEdgeTime;
  const auto of = of_edges ? schema.full_name(owner) : schema.types()[owner].name;
  info_line(of_edges ? "edge times" : "times",
            fmt::format("{}{} to {}{}{}", file.info().typed ? of + ": " : "", earliest, latest,
                        info.unit.empty() ? "" : " ", excerpt(info.unit)));
}

}  // namespace espalier
