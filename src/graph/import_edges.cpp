#include "import_edges.hpp"

#include <algorithm>
#include <vector>

#include "espalier/base/clock.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/base/log.hpp"
#include "first_rank.hpp"
#include "import_tables.hpp"

namespace espalier {

namespace {

[[noreturn]] void refuse_duplicate(const EdgeSource& edges, const RepeatedEdge& found) {
  const auto here = edges.place(found.edge), earlier = edges.place(found.earlier);
  if (found.reversed)
    input_error(
        "{}: reverses the edge of {}, and with --symmetrize each of the two stands for both directions; "
        "leave out --symmetrize, or choose --duplicates sum, max or first",
        here, earlier);
  input_error("{}: repeats the edge of {}; choose --duplicates sum, max or first to merge them", here,
              earlier);
}

template <class Index>
std::int64_t count_alone(const Csr<Index>& rows) {
  std::vector<bool> joined(static_cast<std::size_t>(rows.rows));
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    if (rows.row_size(row) > 0) joined[row] = true;
    for (const auto column : rows.row_indices(row)) joined[column] = true;
  }
  return std::ranges::count(joined, false);
}

// Collective. The matrix, and what its edges have as features.
template <class Index>
ImportedEdges import_as(const Communicator& comm, const GivenEdges& given, CountedEntries counted_entries,
                        double start, GraphWriter& writer) {
  Csr<Index> rows;
  GivenFeatures features;
  Buffer<std::int64_t> first;  // for each entry its edge, where edges have features
  ImportedEdges found;
  on_first_rank(comm, [&] {
    const auto& edges = *given.edges;
    auto report = given.report;
    const auto& options = report.options;
    EdgeCounts counts;
    try {
      rows = build_rows<Index>(edges, std::move(counted_entries), options, counts);
    } catch (const DuplicateEdge& duplicate) {
      refuse_duplicate(edges, duplicate.found());
    }
    if (given.open_features) features = {given.open_features(counts.given), counts.given};
    if (features.rows) first = feature_edges(edges, options, rows);
    if (features.rows && options.adds_features()) {
      features.standing = standing_edges(edges, options, rows, first);
      features.mean = options.features == DuplicateFeatures::kMean;
    }
    const auto one_way = options.symmetrize ? 0 : count_one_way(rows);
    report.weighted = rows.has_values();
    report.featured = features.rows != nullptr;
    report_edges(report, counts, rows.entries(), one_way, now() - start);
    found = {rows.rows, count_alone(rows), one_way > 0};
  });
  writer.write_adjacency(rows);
  const bool half = agreed(comm, given.half) != 0;
  const auto columns =
      import_edge_features(comm, std::move(features), half, {{0, [&] { return std::move(first); }}}, writer);
  if (columns > 0) log::info("edges      {} of each", counted(columns, "feature", "features"));
  return {agreed(comm, found.nodes), agreed(comm, found.alone), agreed(comm, found.directed) != 0};
}

}  // namespace

ImportedEdges import_edges(const Communicator& comm, const GivenEdges& given, GraphWriter& writer) {
  const double start = now();
  CountedEntries counted;
  on_first_rank(comm, [&] {
    counted = count_entries(*given.edges, given.nodes, given.report.options);
    if (counted.nodes == 0) input_error("{}: has no edge, and so the graph no vertex", given.edges->name());
  });
  return with_index_type(agreed(comm, counted.nodes), [&]<class Index>(Index) {
    return import_as<Index>(comm, given, std::move(counted), start, writer);
  });
}

}  // namespace espalier
