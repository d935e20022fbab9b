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

// The matrix, and what its edges have as features.
template <class Index>
class EdgeImport {
 public:
  // On rank 0.
  void read(const GivenEdges& given, CountedEntries counted, double start) {
    EdgeCounts counts;
    const auto& options = given.report.options;
    try {
      rows_ = build_rows<Index>(*given.edges, std::move(counted), options, counts);
    } catch (const DuplicateEdge& duplicate) {
      refuse_duplicate(*given.edges, duplicate.found());
    }
    if (given.open_features) features_ = {given.open_features(counts.given), counts.given};
    if (features_.rows) find_features(*given.edges, options);
    const auto one_way = options.symmetrize ? 0 : count_one_way(rows_);
    auto report = given.report;
    report.weighted = rows_.has_values();
    report.featured = features_.rows != nullptr;
    report_edges(report, counts, rows_.entries(), one_way, now() - start);
    found_ = {rows_.rows, count_alone(rows_), one_way > 0};
  }

  ImportedEdges write(const Communicator& comm, bool half, GraphWriter& writer) {
    writer.write_adjacency(rows_);
    const auto columns = import_edge_features(comm, std::move(features_), half,
                                              {{0, [&] { return std::move(first_); }}}, writer);
    if (columns > 0) log::info("edges      {} of each", counted(columns, "feature", "features"));
    return {agreed(comm, found_.nodes), agreed(comm, found_.alone), agreed(comm, found_.directed) != 0};
  }

 private:
  void find_features(const EdgeSource& edges, const EdgeOptions& options) {
    first_ = feature_edges(edges, options, rows_);
    if (!options.adds_features()) return;
    features_.standing = standing_edges(edges, options, rows_, first_);
    features_.mean = options.features == DuplicateFeatures::kMean;
  }

  Csr<Index> rows_;
  GivenFeatures features_;
  Buffer<std::int64_t> first_;  // for each entry its edge, where edges have features
  ImportedEdges found_;
};

}  // namespace

ImportedEdges import_edges(const Communicator& comm, const GivenEdges& given, GraphWriter& writer) {
  const double start = now();
  CountedEntries counted;
  on_first_rank(comm, [&] {
    counted = count_entries(*given.edges, given.nodes, given.report.options);
    if (counted.nodes == 0) input_error("{}: has no edge, and so the graph no vertex", given.edges->name());
  });
  return with_index_type(agreed(comm, counted.nodes), [&]<class Index>(Index) {
    EdgeImport<Index> import;
    on_first_rank(comm, [&] { import.read(given, std::move(counted), start); });
    return import.write(comm, agreed(comm, given.half) != 0, writer);
  });
}

}  // namespace espalier
