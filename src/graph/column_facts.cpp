#include "espalier/graph/column_facts.hpp"

#include <algorithm>
#include <limits>

#include "espalier/graph/degrees.hpp"

namespace espalier {

namespace {

constexpr const char* kFactsLabel = "info";

// Of a matrix whose rows [begin, end) read(begin, end) reads.
template <class Read>
NumberFacts read_number_facts(const Communicator& world, std::int64_t rows, std::int64_t columns, Read read) {
  NumberFacts facts = {std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(), 0};
  const auto look = [&](std::int64_t begin, std::int64_t end) {
    for (const float x : read(begin, end).data) {
      facts.least = std::min(facts.least, x);
      facts.most = std::max(facts.most, x);
      facts.nonzero += x != 0;
    }
  };
  in_row_parts(world, rows, look, columns);
  return {world.all_reduce(facts.least, Reduction::kMin, kFactsLabel),
          world.all_reduce(facts.most, Reduction::kMax, kFactsLabel),
          world.all_reduce(facts.nonzero, Reduction::kSum, kFactsLabel)};
}

}  // namespace

NumberFacts read_feature_facts(const Communicator& world, const GraphFile& file, int type) {
  const auto& vertices = file.info().schema.types()[type];
  return read_number_facts(
      world, vertices.size(), file.info().types[type].features, [&](auto begin, auto end) {
        return file.read_features<float>(vertices.begin + begin, vertices.begin + end, type);
      });
}

NumberFacts read_edge_feature_facts(const Communicator& world, const GraphFile& file, int relation) {
  const auto& info = file.info().edge_features[relation];
  return read_number_facts(world, info.entries, info.features, [&](auto begin, auto end) {
    return file.read<float>(Column::kEdgeFeatures, relation, begin, end);
  });
}

std::vector<std::int64_t> count_labels(const Communicator& world, const GraphFile& file, int type) {
  const auto& info = file.info().types[type];
  const auto& of = file.info().schema.types()[type];
  const auto mine = even_range(of.size(), world.size(), world.rank());
  const auto begin = of.begin + mine.begin, end = of.begin + mine.end;
  std::vector<std::int64_t> counts(info.classes + 1, 0);
  if (info.multi_label) {
    const auto labels = file.read_multi_labels(begin, end, type);
    for (std::int64_t v = 0; v < labels.rows; ++v)
      for (std::int64_t k = 0; k < info.classes; ++k)
        counts[labels(v, k) == kUnknownLabel ? info.classes : k] += labels(v, k) != 0;
  } else {
    for (const auto label : file.read_labels(begin, end, type))
      if (label >= 0) ++counts[label];
  }
  world.all_reduce(std::span<std::int64_t>(counts), Reduction::kSum, kFactsLabel);
  return counts;
}

TimeRange read_time_range(const Communicator& world, const GraphFile& file, Column column, int owner) {
  TimeRange range = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  in_row_parts(world, file.column(column, owner).rows, [&](std::int64_t begin, std::int64_t end) {
    for (const auto time : file.read<std::int64_t>(column, owner, begin, end).data) {
      range.earliest = std::min(range.earliest, time);
      range.latest = std::max(range.latest, time);
    }
  });
  return {world.all_reduce(range.earliest, Reduction::kMin, kFactsLabel),
          world.all_reduce(range.latest, Reduction::kMax, kFactsLabel)};
}

std::vector<UnreachedVertices> count_unreached(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  std::vector<Buffer<std::int64_t>> train;
  for (int t = 0; t < std::ssize(info.types); ++t)
    train.push_back(info.types[t].split < 0 ? Buffer<std::int64_t>() : file.read_split(Split::kTrain, t));
  // [types, 2]: of all, of those to train on
  std::vector<std::int64_t> counts(2 * info.types.size());
  in_row_parts(world, info.nodes, [&](std::int64_t begin, std::int64_t end) {
    const auto sizes = file.read_row_sizes(begin, end);
    for (std::size_t t = 0; t < train.size(); ++t) {
      const auto& type = info.schema.types()[t];
      for (auto v = std::max(begin, type.begin); v < std::min(end, type.end); ++v) {
        if (sizes[v - begin] > 0) continue;
        ++counts[2 * t];
        counts[2 * t + 1] += std::ranges::binary_search(train[t], v);
      }
    }
  });
  world.all_reduce(std::span(counts), Reduction::kSum, kFactsLabel);
  std::vector<UnreachedVertices> unreached;
  for (std::size_t t = 0; t < train.size(); ++t)
    unreached.push_back({counts[2 * t], counts[2 * t + 1], std::ssize(train[t])});
  return unreached;
}

}  // namespace espalier
