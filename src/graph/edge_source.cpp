#include "espalier/graph/edge_source.hpp"

#include <unordered_map>

#include "espalier/base/host_device.hpp"
#include "espalier/base/log.hpp"
#include "reverse_entries.hpp"
#include "row_building.hpp"
#include "shared_edges.hpp"

namespace espalier {

namespace {

// A sum, of which each edge is a term.
std::uint64_t digest_of(std::int64_t source, std::int64_t target) {
  return mix(static_cast<std::uint64_t>(source) ^ static_cast<std::uint64_t>(target) << 32 ^
             static_cast<std::uint64_t>(target) >> 32);
}

// Are there more vertices than so many edges have a use for? Where rows begin takes 8
// bytes of each.
bool are_too_many(std::int64_t vertices, std::int64_t edges) {
  constexpr std::int64_t kFew = std::int64_t{1} << 24, kOfAnEdge = 64;
  return vertices > kFew && vertices / kOfAnEdge > edges;
}

// How many entries each row has. Vertices far beyond what edges have been read take memory only
// when that is known to be meant: until then they are few. The rows are those of rank `rank` where
// every so manieth is: as long as nobody knows how many there are, no other range is known.
class RowCounts {
 public:
  explicit RowCounts(const Communicator& comm) : ranks_(comm.size()), rank_(comm.rank()) {}
  /// An entry, when so many edges were read.
  void add(std::int64_t row, std::int64_t edges) {
    const auto place = (ranks_ == 1 ? row : row / ranks_) + 1;
    if (place >= std::ssize(near_)) {
      if (are_too_many(row + 1, edges)) {
        ++far_[place];
        return;
      }
      near_.resize(place + 1, 0);
    }
    ++near_[place];
  }
  /// Collective. Of so many rows those of this rank's even range, that of its row r at r + 1.
  Buffer<std::int64_t> release(const Communicator& comm, std::int64_t n) {
    near_.resize((n - rank_ + ranks_ - 1) / ranks_ + 1, 0);
    near_.shrink_to_fit();
    for (const auto& [place, entries] : far_) near_[place] += entries;
    return ranks_ == 1 ? std::move(near_) : in_even_ranges(comm, n);
  }

 private:
  Buffer<std::int64_t> in_even_ranges(const Communicator& comm, std::int64_t n) {
    Buffer<std::int64_t> sent;
    std::vector<std::int64_t> counts;
    std::int64_t row = rank_;
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto before = std::ssize(sent);
      for (const auto end = even_range(n, ranks_, rank).end; row < end; row += ranks_)
        sent.push_back(near_[row / ranks_ + 1]);
      counts.push_back(std::ssize(sent) - before);
    }
    near_ = {};
    const auto received = comm.all_to_all_v(std::span<const std::int64_t>(sent), counts, "rows");
    std::vector<std::int64_t> next(counts.size(), 0);
    std::partial_sum(received.counts.begin(), received.counts.end() - 1, next.begin() + 1);
    const auto range = even_range(n, ranks_, rank_);
    Buffer<std::int64_t> found = {0};
    for (auto mine = range.begin; mine < range.end; ++mine)
      found.push_back(received.data[next[mine % ranks_]++]);
    return found;
  }

  std::int64_t ranks_, rank_;
  Buffer<std::int64_t> near_ = {0};
  std::unordered_map<std::int64_t, std::int64_t> far_;
};

// Collective. Says, or refuses where nobody said how many vertices there are, that few of so many
// have one of the edges.
void check_vertices(const SharedEdges& edges, std::int64_t given, std::int64_t n, bool said) {
  if (!are_too_many(n, given)) return;
  struct End {
    std::int64_t vertex;
    std::uint32_t number;
  };
  const auto& comm = edges.comm();
  std::vector<std::int64_t> ends;
  std::int64_t first_of_last = -1;
  spread<End>(
      edges, [&](std::int64_t vertex) { return vertex % comm.size(); },
      [&](const ReadEdge& edge, const auto& send) {
        send(edge.source, {edge.source, edge.number});
        send(edge.target, {edge.target, edge.number});
      },
      [&](const End& end, std::int64_t first) {
        ends.push_back(end.vertex);
        if (end.vertex == n - 1 && first_of_last < 0) first_of_last = first + end.number;
      });
  std::ranges::sort(ends);
  const auto joined = comm.all_reduce<std::int64_t>(std::unique(ends.begin(), ends.end()) - ends.begin(),
                                                    Reduction::kSum, "vertices");
  first_of_last = comm.all_reduce(first_of_last, Reduction::kMax, "vertices");
  const auto words = fmt::format("{} vertices, of which {} an edge", n,
                                 joined == 1 ? "1 has" : fmt::format("{} have", joined));
  on_first_rank(comm, [&] {
    if (!said)
      input_error(
          "{}: vertex {} makes {}; --renumber makes vertices of those that have one, --vertices {} says "
          "that all are meant",
          edges.mine()->place(first_of_last), n - 1, words, n);
    log::warning("{}: {}; where rows begin takes {:.1f} GB", edges.name(), words,
                 8e-9 * static_cast<double>(n));
  });
}

EdgeCounts sum_of_ranks(const Communicator& comm, const EdgeCounts& mine) {
  auto sums = std::bit_cast<CountFields>(mine);
  comm.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "edges");
  return std::bit_cast<EdgeCounts>(sums);
}

}  // namespace

void EdgeSource::read_parts(const RankShare& share, const std::function<void(const EdgePiece&)>& use) const {
  if (share.rank > 0) return;
  std::int64_t edges = 0;
  read([&](const EdgePiece& piece) {
    use(piece);
    if ((edges += std::ssize(piece.sources)) < share.most_edges()) return;
    edges = 0;
    share.next();
  });
}

SharedEdges::SharedEdges(const Communicator& comm, const EdgeSource* mine)
    : comm_(comm),
      mine_(mine),
      weighted_(agreed(comm, mine != nullptr && mine->weighted()) != 0),
      name_(comm.broadcast_text(mine != nullptr ? mine->name() : "", 0, "edges")) {}

CountedEntries count_entries(const SharedEdges& edges, std::int64_t nodes, const EdgeOptions& options,
                             std::int64_t columns) {
  const auto& comm = edges.comm();
  const bool wide = columns >= 0, alone = comm.size() == 1;
  RowCounts rows(comm);
  EdgeCounts mine;
  std::uint64_t digest = 0;
  std::int64_t largest = -1;
  spread<std::int64_t>(
      edges, [&](std::int64_t row) { return row % comm.size(); },
      [&](const ReadEdge& edge, const auto& send) {
        const auto u = edge.source, v = edge.target;
        const auto vertex = wide ? v : std::max(u, v);
        ESPALIER_CHECK(nodes < 0 || vertex < nodes, "vertex {} of {}", vertex, nodes);
        ESPALIER_CHECK(!wide || u < columns, "column {} of {}", u, columns);
        largest = std::max(largest, vertex);
        digest += digest_of(u, v);
        ++mine.given;
        mine.vanished += edge.vanished;
        if (options.drop_self_loops && edge.loop) {
          ++mine.loops_dropped;
          return;
        }
        send(v, v);
        if (!options.symmetrize) return;
        send(u, u);
        ++mine.reversed;
      },
      [&](std::int64_t row, std::int64_t first) { rows.add(row, alone ? mine.given : first + 1); });
  CountedEntries counted;
  counted.edges = sum_of_ranks(comm, mine);
  counted.digest = comm.all_reduce(digest, Reduction::kSum, "edges");
  counted.nodes = nodes < 0 ? comm.all_reduce(largest, Reduction::kMax, "edges") + 1 : nodes;
  counted.columns = wide ? columns : counted.nodes;
  if (!wide) check_vertices(edges, counted.edges.given, counted.nodes, nodes >= 0);
  counted.indptr = rows.release(comm, counted.nodes);
  add_up(counted.indptr);
  return counted;
}

// ---- rows ----

namespace {

// Between which vertices an edge is, as the row and the column of one entry.
std::pair<std::int64_t, std::int64_t> ends_of(std::int64_t source, std::int64_t target, bool either_way) {
  return either_way && target < source ? std::pair(source, target) : std::pair(target, source);
}

bool is_before(const RepeatedEdge& a, const RepeatedEdge& b) {
  return static_cast<std::uint64_t>(a.edge) < static_cast<std::uint64_t>(b.edge);  // -1 last
}

[[noreturn]] void refuse_change(const SharedEdges& edges) {
  input_error("{}: changed while it was read; import it again", edges.name());
}

}  // namespace

// Collective. As spread(), to the owners of rows.
template <class Index>
template <class Item, class Make, class Take>
void SharedRows<Index>::spread_to_rows(Make make, Take take) const {
  const auto ranks = edges_.comm().size();
  spread<Item>(
      edges_, [&](std::int64_t row) { return even_owner(nodes_, ranks, row); }, make, take);
}

// Collective. As row_building.hpp wants it. `digest` becomes that of what this rank reads.
template <class Index>
template <class Visit>
void SharedRows<Index>::for_each_entry(Visit visit, std::uint64_t* digest) const {
  struct Item {
    Index row, column;  // marked
    float weight;
    std::uint32_t number;
  };
  const bool counts = options_.duplicates == Duplicates::kCount;
  std::uint64_t mine = 0;
  spread_to_rows<Item>(
      [&](const ReadEdge& edge, const auto& send) {
        mine += digest_of(edge.source, edge.target);
        for_entries_of(edge, options_, [&](std::int64_t row, std::int64_t column, bool reversed) {
          if (row < nodes_)  // else the file has changed
            send(row, {static_cast<Index>(row), Marked<Index>::of(static_cast<Index>(column), reversed),
                       counts ? 1 : edge.weight, edge.number});
        });
      },
      [&](const Item& item, std::int64_t first) {
        visit(item.row, Marked<Index>::column(item.column), item.weight, first + item.number,
              Marked<Index>::reversed(item.column));
      });
  if (digest != nullptr) *digest = mine;
}

// Collective. Throws where any rank met what the first reading did not.
template <class Index>
void SharedRows<Index>::check_unchanged(bool good) const {
  if (edges_.comm().all_reduce<std::int64_t>(good ? 0 : 1, Reduction::kMax, "edges") != 0)
    refuse_change(edges_);
}

template <class Index>
SharedRows<Index>::SharedRows(const SharedEdges& edges, CountedEntries counted, const EdgeOptions& options)
    : edges_(edges),
      options_(options),
      nodes_(counted.nodes),
      range_(even_range(nodes_, edges.comm().size(), edges.comm().rank())) {
  const auto& comm = edges.comm();
  rows_.rows = range_.size();
  rows_.columns = counted.columns;
  rows_.indptr = std::move(counted.indptr);
  std::uint64_t digest = 0;
  const bool fit = place_entries([&](auto visit) { for_each_entry(visit, &digest); }, range_,
                                 weighs(edges.weighted(), options), rows_);
  digest = comm.all_reduce(digest, Reduction::kSum, "edges");
  check_unchanged(fit && digest == counted.digest);
  counts_ = sum_of_ranks(comm, finish_rows(range_, options.duplicates, rows_));
  if (options.duplicates == Duplicates::kRefuse && counts_.repeated + counts_.mirrored > 0)
    throw DuplicateEdge(first_repeated());
  add(counts_, counted.edges);
}

// Collective. There is one: the first edge with an earlier one between its vertices, in the rows
// that all of them made.
template <class Index>
RepeatedEdge SharedRows<Index>::first_repeated() const {
  struct Item {
    Index row, source, target;
    std::uint32_t number;
  };
  const auto& comm = edges_.comm();
  const auto read = [&](auto wanted, auto take) {
    std::pair<std::int64_t, std::int64_t> before{-1, -1};
    spread_to_rows<Item>(
        [&](const ReadEdge& edge, const auto& send) {
          if (options_.drop_self_loops && edge.loop) return;
          const auto ends = ends_of(edge.source, edge.target, options_.symmetrize);
          if (edge.turned && ends == before) return;  // a loop is its own reverse
          before = ends;
          if (ends.first < nodes_ && wanted(ends))
            send(ends.first, {static_cast<Index>(ends.first), static_cast<Index>(edge.source),
                              static_cast<Index>(edge.target), edge.number});
        },
        take);
  };
  std::vector<bool> seen(rows_.indices.size());
  RepeatedEdge found{-1}, earlier{-1};
  read([](const auto&) { return true; },
       [&](const Item& item, std::int64_t first) {
         const auto column = item.row == item.target ? item.source : item.target;
         const auto place = found.edge < 0 ? place_of(rows_, item.row - range_.begin, column) : -1;
         if (place < 0) return;
         if (seen[place]) found = {first + item.number, -1, item.source, item.target};
         seen[place] = true;
       });
  found = std::ranges::min(comm.all_gather(found, "edges"), is_before);
  if (found.edge < 0) refuse_change(edges_);
  const auto ends = ends_of(found.source, found.target, options_.symmetrize);
  read([&](const auto& of) { return of == ends; },
       [&](const Item& item, std::int64_t first) {
         if (earlier.edge < 0) earlier = {first + item.number, -1, item.source, item.target};
       });
  earlier = std::ranges::min(comm.all_gather(earlier, "edges"), is_before);
  found.earlier = earlier.edge;
  found.reversed = earlier.source != found.source;
  return found;
}

template <class Index>
Buffer<std::int64_t> SharedRows<Index>::feature_edges() const {
  auto found = find_feature_edges([&](auto visit) { for_each_entry(visit); }, edges_.weighted(), range_,
                                  options_, rows_);
  check_unchanged(std::ranges::find(found, -1) == found.end());
  return found;
}

template <class Index>
Buffer<std::int64_t> SharedRows<Index>::times() const {
  enum Origin : std::uint8_t { kNone, kReverse, kGiven };
  struct Item {
    Index row, column;  // marked
    std::int64_t time;
  };
  Buffer<std::int64_t> times(rows_.indices.size(), 0);
  std::vector<std::uint8_t> origins(rows_.indices.size(), kNone);
  bool good = true;
  spread_to_rows<Item>(
      [&](const ReadEdge& edge, const auto& send) {
        if (edge.time == nullptr) return;
        for_entries_of(edge, options_, [&](std::int64_t row, std::int64_t column, bool reversed) {
          if (row < nodes_)
            send(row, {static_cast<Index>(row), Marked<Index>::of(static_cast<Index>(column), reversed),
                       *edge.time});
        });
      },
      [&](const Item& item, std::int64_t) {
        const auto place = place_of(rows_, item.row - range_.begin, Marked<Index>::column(item.column));
        if (place < 0) {
          good = false;
          return;
        }
        const auto origin = Marked<Index>::reversed(item.column) ? kReverse : kGiven;
        auto& kept = times[place];
        if (origin < origins[place] ||
            (origin == origins[place] && (options_.latest ? item.time <= kept : item.time >= kept)))
          return;
        kept = item.time;
        origins[place] = origin;
      });
  check_unchanged(good);
  return times;
}

template <class Index>
Buffer<std::int64_t> SharedRows<Index>::standing_edges(const Buffer<std::int64_t>& first,
                                                       std::int64_t count) const {
  struct Item {
    Index row, column;
    std::uint32_t number;
  };
  struct Standing {
    std::int64_t edge, first;
  };
  const auto& comm = edges_.comm();
  Buffer<std::int64_t> found(comm.rank() == 0 ? count : 0, -1);
  Buffer<Standing> answers;  // of a round, for rank 0
  bool good = true;
  spread<Item>(
      edges_, [&](std::int64_t row) { return even_owner(nodes_, comm.size(), row); },
      [&](const ReadEdge& edge, const auto& send) {
        if (edge.target < nodes_ && !(options_.drop_self_loops && edge.loop))
          send(edge.target, {static_cast<Index>(edge.target), static_cast<Index>(edge.source), edge.number});
      },
      [&](const Item& item, std::int64_t before) {
        const auto place = place_of(rows_, item.row - range_.begin, item.column);
        const auto edge = before + item.number;
        good = good && place >= 0 && edge < count;
        if (good) answers.push_back({edge, first[place]});
      },
      [&] {
        std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 0);
        counts[0] = std::ssize(answers);
        const auto received = comm.all_to_all_v(std::span<const Standing>(answers), counts, "edges");
        for (const auto& of : received.data) found[of.edge] = of.first;
        answers.clear();
      });
  check_unchanged(good);
  return found;
}

template class SharedRows<std::int32_t>;
template class SharedRows<std::int64_t>;

template <class Index>
std::int64_t count_one_way(const Communicator& comm, const Csr<Index>& rows) {
  const auto range = even_range(rows.columns, comm.size(), comm.rank());
  const auto found = find_reverses(comm, Schema(rows.columns), range, rows, {rows.entries()}, {0});
  return found.edges[0] - found.answered[0];
}

template std::int64_t count_one_way(const Communicator&, const Csr<std::int32_t>&);
template std::int64_t count_one_way(const Communicator&, const Csr<std::int64_t>&);

}  // namespace espalier
