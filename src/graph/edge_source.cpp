#include "espalier/graph/edge_source.hpp"

#include <unordered_map>

#include "espalier/base/log.hpp"
#include "espalier/base/mix.hpp"
#include "row_building.hpp"

namespace espalier {

namespace {

// A sum, of which each edge is a term.
std::uint64_t digest_of(std::int64_t source, std::int64_t target) {
  return mix(static_cast<std::uint64_t>(source) ^ static_cast<std::uint64_t>(target) << 32 ^
             static_cast<std::uint64_t>(target) >> 32);
}

[[noreturn]] void refuse_change(const EdgeSource& edges) {
  input_error("{}: changed while it was read; import it again", edges.name());
}

// Edges that were counted and are read again.
struct SecondReading {
  const EdgeSource& edges;
  std::uint64_t& digest;
};

template <class Visit>
void for_each_edge(const SecondReading& of, Visit visit) {
  for_each_edge(of.edges,
                [&](std::int64_t u, std::int64_t v, float weight, std::int64_t number, bool turned) {
                  of.digest += digest_of(u, v);
                  visit(u, v, weight, number, turned);
                });
}

// Are there more vertices than so many edges have a use for? Where rows begin takes 8
// bytes of each.
bool are_too_many(std::int64_t vertices, std::int64_t edges) {
  constexpr std::int64_t kFew = std::int64_t{1} << 24, kOfAnEdge = 64;
  return vertices > kFew && vertices / kOfAnEdge > edges;
}

// How many entries each row has. Vertices far beyond what edges have been read take memory only
// when that is known to be meant: until then they are few.
class RowCounts {
 public:
  /// Of edge number `edge`.
  void meet(std::int64_t vertex, std::int64_t edge) {
    if (vertex + 1 < std::ssize(near_)) return;
    if (!are_too_many(vertex + 1, edge + 1)) return near_.resize(vertex + 2, 0);
    if (far_.empty() || vertex > last_) last_ = vertex, edge_ = edge;
    far_[vertex];
  }
  /// An entry of a row that was met.
  void add(std::int64_t row) {
    if (row + 1 < std::ssize(near_))
      ++near_[row + 1];
    else
      ++far_[row];
  }
  std::int64_t vertices() const { return std::max(std::ssize(near_) - 1, far_.empty() ? 0 : last_ + 1); }
  /// That of the last vertex, where it is far beyond the others.
  std::int64_t edge_of_last() const { return edge_; }
  /// [n + 1] that of row r at r + 1.
  Buffer<std::int64_t> release(std::int64_t n) {
    near_.resize(n + 1, 0);
    near_.shrink_to_fit();
    for (const auto& [row, entries] : far_) near_[row + 1] += entries;
    return std::move(near_);
  }

 private:
  Buffer<std::int64_t> near_ = {0};
  std::unordered_map<std::int64_t, std::int64_t> far_;
  std::int64_t last_ = 0, edge_ = 0;
};

// Says, or refuses where nobody said how many vertices there are, that few have an edge.
void check_vertices(const EdgeSource& edges, std::int64_t given, std::int64_t nodes, const RowCounts& rows) {
  const auto n = nodes < 0 ? rows.vertices() : nodes;
  if (!are_too_many(n, given)) return;
  std::vector<std::int64_t> ends;
  for_each_edge(edges, [&](std::int64_t u, std::int64_t v, float, std::int64_t, bool) {
    ends.push_back(u);
    ends.push_back(v);
  });
  std::ranges::sort(ends);
  const auto joined = std::unique(ends.begin(), ends.end()) - ends.begin();
  const auto words = fmt::format("{} vertices, of which {} an edge", n,
                                 joined == 1 ? "1 has" : fmt::format("{} have", joined));
  if (nodes < 0)
    input_error(
        "{}: vertex {} makes {}; --renumber makes vertices of those that have one, --vertices {} says "
        "that all are meant",
        edges.place(rows.edge_of_last()), n - 1, words, n);
  log::warning("{}: {}; where rows begin takes {:.1f} GB", edges.name(), words,
               8e-9 * static_cast<double>(n));
}

}  // namespace

CountedEntries count_entries(const EdgeSource& edges, std::int64_t nodes, const EdgeOptions& options,
                             std::int64_t columns) {
  const bool wide = columns >= 0;
  CountedEntries counted;
  RowCounts rows;
  const auto count = [&](std::int64_t u, std::int64_t v) {
    const auto vertex = wide ? v : std::max(u, v);
    ESPALIER_CHECK(nodes < 0 || vertex < nodes, "vertex {} of {}", vertex, nodes);
    ESPALIER_CHECK(!wide || u < columns, "column {} of {}", u, columns);
    rows.meet(vertex, counted.edges.given);
    counted.digest += digest_of(u, v);
    ++counted.edges.given;
    if (options.drop_self_loops && u == v) {
      ++counted.edges.loops_dropped;
      return;
    }
    rows.add(v);
    if (!options.symmetrize) return;
    rows.add(u);
    ++counted.edges.reversed;
  };
  edges.read([&](const EdgePiece& piece) {
    counted.edges.vanished += piece.vanished;
    for (std::size_t k = 0; k < piece.sources.size(); ++k) count(piece.sources[k], piece.targets[k]);
  });
  if (!wide) check_vertices(edges, counted.edges.given, nodes, rows);
  counted.indptr = rows.release(nodes < 0 ? rows.vertices() : nodes);
  add_up(counted.indptr);
  counted.nodes = std::ssize(counted.indptr) - 1;
  counted.columns = wide ? columns : counted.nodes;
  return counted;
}

template <class Index>
Csr<Index> build_rows(const EdgeSource& edges, CountedEntries counted, const EdgeOptions& options,
                      EdgeCounts& counts) {
  Csr<Index> matrix;
  matrix.rows = counted.nodes;
  matrix.columns = counted.columns;
  matrix.indptr = std::move(counted.indptr);
  const RowRange all{0, counted.nodes};
  std::uint64_t digest = 0;
  const bool fit =
      place_entries(SecondReading{edges, digest}, all, weighs(edges.weighted(), options), options, matrix);
  if (!fit || digest != counted.digest) refuse_change(edges);
  counts = counted.edges;
  finish_rows(edges, all, options, matrix, counts);
  return matrix;
}

template <class Index>
Buffer<std::int64_t> feature_edges(const EdgeSource& edges, const EdgeOptions& options,
                                   const Csr<Index>& matrix) {
  auto found = find_feature_edges(edges, edges.weighted(), {0, matrix.rows}, options, matrix);
  if (std::ranges::find(found, -1) != found.end()) refuse_change(edges);
  return found;
}

template <class Index>
Buffer<std::int64_t> entry_times(const EdgeSource& edges, const EdgeOptions& options,
                                 const Csr<Index>& matrix) {
  enum Origin : std::uint8_t { kNone, kReverse, kGiven };
  Buffer<std::int64_t> times(matrix.indices.size(), 0);
  std::vector<std::uint8_t> origins(matrix.indices.size(), kNone);
  const auto meet = [&](std::int64_t row, std::int64_t column, std::uint8_t origin, std::int64_t time) {
    const auto place = place_of(matrix, row, column);
    if (place < 0) refuse_change(edges);
    auto& kept = times[place];
    if (origin < origins[place] ||
        (origin == origins[place] && (options.latest ? time <= kept : time >= kept)))
      return;
    kept = time;
    origins[place] = origin;
  };
  edges.read([&](const EdgePiece& piece) {
    for (std::size_t k = 0; k < piece.times.size(); ++k) {
      const auto source = piece.sources[k], target = piece.targets[k];
      if (options.drop_self_loops && source == target) continue;
      const bool turned = !piece.turned.empty() && piece.turned[k] != 0;
      meet(target, source, turned ? kReverse : kGiven, piece.times[k]);
      if (options.symmetrize) meet(source, target, kReverse, piece.times[k]);
    }
  });
  return times;
}

template <class Index>
Buffer<std::int64_t> standing_edges(const EdgeSource& edges, const EdgeOptions& options,
                                    const Csr<Index>& matrix, const Buffer<std::int64_t>& first) {
  Buffer<std::int64_t> found;
  for_each_edge(edges, [&](std::int64_t source, std::int64_t target, float, std::int64_t, bool) {
    const bool dropped = options.drop_self_loops && source == target;
    const auto place = dropped ? -1 : place_of(matrix, target, source);
    if (place < 0 && !dropped) refuse_change(edges);
    found.push_back(dropped ? -1 : first[place]);
  });
  return found;
}

template Csr<std::int32_t> build_rows(const EdgeSource&, CountedEntries, const EdgeOptions&, EdgeCounts&);
template Csr<std::int64_t> build_rows(const EdgeSource&, CountedEntries, const EdgeOptions&, EdgeCounts&);
template Buffer<std::int64_t> feature_edges(const EdgeSource&, const EdgeOptions&, const Csr<std::int32_t>&);
template Buffer<std::int64_t> feature_edges(const EdgeSource&, const EdgeOptions&, const Csr<std::int64_t>&);
template Buffer<std::int64_t> entry_times(const EdgeSource&, const EdgeOptions&, const Csr<std::int32_t>&);
template Buffer<std::int64_t> entry_times(const EdgeSource&, const EdgeOptions&, const Csr<std::int64_t>&);
template Buffer<std::int64_t> standing_edges(const EdgeSource&, const EdgeOptions&, const Csr<std::int32_t>&,
                                             const Buffer<std::int64_t>&);
template Buffer<std::int64_t> standing_edges(const EdgeSource&, const EdgeOptions&, const Csr<std::int64_t>&,
                                             const Buffer<std::int64_t>&);

}  // namespace espalier
