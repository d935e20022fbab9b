#include "espalier/graph/graph_facts.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "espalier/base/host_device.hpp"
#include "espalier/base/row_range.hpp"

namespace espalier {

DegreeHistogram read_degrees(const Communicator& comm, const GraphFile& file, std::int64_t more) {
  std::map<std::int64_t, std::int64_t> mine, all;
  in_row_parts(comm, file.info().nodes, [&](std::int64_t begin, std::int64_t end) {
    for (const auto degree : file.read_row_sizes(begin, end)) ++mine[degree + more];
  });
  DegreeHistogram counts;
  for (const auto& [degree, vertices] : mine) counts.push_back({degree, vertices});
  for (const auto& of : comm.all_gather_v(std::span<const DegreeCount>(counts), "setup"))
    all[of.degree] += of.vertices;
  counts.clear();
  for (const auto& [degree, vertices] : all) counts.push_back({degree, vertices});
  return counts;
}

std::int64_t quantile(const DegreeHistogram& degrees, double q, std::int64_t n) {
  const auto wanted = std::max<std::int64_t>(1, std::llround(std::ceil(q * static_cast<double>(n))));
  std::int64_t covered = 0;
  for (const auto& of : degrees)
    if ((covered += of.vertices) >= wanted) return of.degree;
  return 0;
}

namespace {

// One bit per vertex, set by whatever rank meets the vertex: grouped by the rank that has the
// vertex in its even range.
class VertexMarks {
 public:
  VertexMarks(std::int64_t n, int ranks) : n_(n), ranks_(ranks) {
    std::int64_t bytes = 0;
    for (int r = 0; r < ranks; ++r) {
      starts_.push_back(bytes);
      sizes_.push_back((even_range(n, ranks, r).size() + 7) / 8);
      bytes += sizes_.back();
    }
    bits_.assign(bytes, 0);
  }
  void mark(std::int64_t v) {
    const auto r = even_owner(n_, ranks_, v);
    const auto bit = v - even_range(n_, ranks_, r).begin;
    bits_[starts_[r] + bit / 8] |= static_cast<std::uint8_t>(1u << bit % 8);
  }
  // Collective. How many vertices has no rank marked?
  std::int64_t count_unmarked(const Communicator& world, const char* label) const {
    const auto got = world.all_to_all_v(std::span<const std::uint8_t>(bits_), sizes_, label);
    std::vector<std::uint8_t> marked(sizes_[world.rank()], 0);
    for (std::size_t k = 0; k < got.data.size(); ++k) marked[k % marked.size()] |= got.data[k];
    auto unmarked = even_range(n_, ranks_, world.rank()).size();
    for (const auto byte : marked) unmarked -= std::popcount(byte);
    return world.all_reduce(unmarked, Reduction::kSum, label);
  }

 private:
  std::int64_t n_;
  int ranks_;
  std::vector<std::int64_t> sizes_, starts_;
  std::vector<std::uint8_t> bits_;
};

// Differs for the edge the other way round.
std::uint64_t edge_hash(std::int64_t row, std::int64_t column) {
  return absorb(absorb(0, row), column);
}

void add_row(const Schema& schema, std::int64_t row, std::span<const std::int64_t> columns,
             EdgeFacts& facts) {
  for (std::size_t e = 0; e < columns.size();) {
    const int r = schema.relation_of(columns[e]);
    const auto first = e;
    for (; e < columns.size() && columns[e] < schema.begin(r + 1); ++e) {
      const auto source = columns[e] + schema.shifts()[r];
      facts.forward[r] += edge_hash(row, source);
      facts.backward[r] += edge_hash(source, row);
      facts.self_loops += source == row;
    }
    facts.entries[r] += static_cast<std::int64_t>(e - first);
    facts.most[r] = std::max(facts.most[r], static_cast<std::int64_t>(e - first));
  }
}

}  // namespace

EdgeFacts read_edge_facts(const Communicator& world, const GraphFile& file, const char* label) {
  const auto& info = file.info();
  const auto relations = info.schema.relations().size();
  EdgeFacts facts;
  facts.entries.assign(relations, 0), facts.most.assign(relations, 0);
  facts.forward.assign(relations, 0), facts.backward.assign(relations, 0);
  VertexMarks has_edge(info.nodes, world.size());
  const auto read = [&](std::int64_t begin, std::int64_t end) {
    const auto a = file.read_rows<std::int64_t>(begin, end);
    for (std::int64_t v = 0; v < a.rows; ++v) {
      add_row(info.schema, begin + v, a.row_indices(v), facts);
      if (a.row_size(v) > 0) has_edge.mark(begin + v);
    }
    for (const auto column : a.indices) has_edge.mark(info.schema.vertex_of(column));
  };
  in_row_parts(world, info.nodes, read, 1 + info.edges / info.nodes);
  facts.isolated = has_edge.count_unmarked(world, label);
  world.all_reduce(std::span(facts.entries), Reduction::kSum, label);
  world.all_reduce(std::span(facts.most), Reduction::kMax, label);
  world.all_reduce(std::span(facts.forward), Reduction::kSum, label);
  world.all_reduce(std::span(facts.backward), Reduction::kSum, label);
  facts.self_loops = world.all_reduce(facts.self_loops, Reduction::kSum, label);
  return facts;
}

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
