#include "espalier/graph/edge_facts.hpp"

#include <algorithm>
#include <bit>

#include "espalier/base/mix.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/graph/degrees.hpp"

namespace espalier {

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

}  // namespace espalier
