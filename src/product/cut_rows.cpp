#include "cut_rows.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "espalier/base/error.hpp"
#include "espalier/comm/traffic.hpp"
#include "join_rows.hpp"
#include "row_views.hpp"

namespace espalier {

namespace {

constexpr const char* kSetup = "setup";
constexpr std::int64_t kRowsAtOnce = std::int64_t{1} << 22;

}  // namespace

template <class Index>
HeldRows::HeldRows(const DistCsr<Index>& a, RowRange vertices, bool several)
    : column_(a.grid->column_comm()), held_counts_(a.parts(), 0), owned_counts_(a.parts(), 0) {
  const auto holders = a.cut->holders->of();
  const auto counts = [&](std::int64_t v) {
    return vertices.begin <= v && v < vertices.end && (!several || std::popcount(holders(v)) > 1);
  };
  std::vector<std::vector<std::int64_t>> lists(a.parts());
  const auto join = [&](std::vector<std::int64_t>& all, std::vector<std::int64_t>& sizes) {
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      sizes[rank] = std::ssize(lists[rank]);
      all.insert(all.end(), lists[rank].begin(), lists[rank].end());
      lists[rank].clear();
    }
  };
  a.for_each_row([&](std::int64_t row, std::int64_t v) {
    if (counts(v)) lists[a.ownership.owner(v)].push_back(row);
  });
  join(held, held_counts_);
  for (std::int64_t k = 0; k < a.ownership.size(a.part); ++k) {
    const auto v = a.ownership.vertex(a.part, k);
    if (counts(v)) for_each_part(holders(v), [&](int holder) { lists[holder].push_back(k); });
  }
  join(owned, owned_counts_);
}

template <class T>
Buffer<T> HeldRows::to_owners(const Buffer<T>& of_held) const {
  return column_.all_to_all_v(std::span<const T>(of_held), held_counts_, kSetup).data;
}
template <class T>
Buffer<T> HeldRows::to_owners(const Buffer<std::int64_t>& sizes, const Buffer<T>& values) const {
  return column_.all_to_all_v(std::span<const T>(values), sum_by_rank(held_counts_, sizes), kSetup).data;
}
template <class T>
Buffer<T> HeldRows::to_holders(const Buffer<T>& of_owned) const {
  return column_.all_to_all_v(std::span<const T>(of_owned), owned_counts_, kSetup).data;
}
template <class T>
Buffer<T> HeldRows::to_holders(const Buffer<std::int64_t>& sizes, const Buffer<T>& values) const {
  return column_.all_to_all_v(std::span<const T>(values), sum_by_rank(owned_counts_, sizes), kSetup).data;
}

namespace {

// Entries of each relation in row `row` of a.local, added to sizes [relations].
template <class Index>
void add_sizes(const DistCsr<Index>& a, const ColumnsOf& columns, std::int64_t row, std::int64_t* sizes) {
  for_each_segment_of(a.local, columns, row, [&](std::int64_t begin, std::int64_t end) {
    if (begin < end) sizes[columns.relation(a.local.indices[begin])] += end - begin;
  });
}

}  // namespace

template <class Index>
void for_each_whole_row(const DistCsr<Index>& a,
                        const std::function<void(std::span<const std::int64_t>)>& use) {
  const auto columns = a.columns.view();
  const auto relations = static_cast<std::size_t>(a.columns.relations());
  Buffer<std::int64_t> sizes;
  if (!a.cut) {
    for (std::int64_t row = 0; row < a.local.rows; ++row) {
      sizes.assign(relations, 0);
      add_sizes(a, columns, row, sizes.data());
      use(sizes);
    }
    return;
  }
  const auto rounds = 1 + a.rows() * static_cast<std::int64_t>(relations) / kRowsAtOnce;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto range = even_range(a.rows(), rounds, round);
    const HeldRows rows(a, range, false);
    sizes.assign(rows.held.size() * relations, 0);
    for (std::size_t k = 0; k < rows.held.size(); ++k)
      add_sizes(a, columns, rows.held[k], sizes.data() + k * relations);
    const auto pieces =
        rows.to_owners(Buffer<std::int64_t>(rows.held.size(), static_cast<std::int64_t>(relations)), sizes);
    // The places of a range follow one another.
    const auto first = rows.owned.empty() ? 0 : std::ranges::min(rows.owned),
               last = rows.owned.empty() ? -1 : std::ranges::max(rows.owned);
    sizes.assign((last + 1 - first) * relations, 0);
    for (std::size_t j = 0; j < rows.owned.size(); ++j)
      for (std::size_t r = 0; r < relations; ++r)
        sizes[(rows.owned[j] - first) * relations + r] += pieces[j * relations + r];
    for (std::size_t k = 0; k < sizes.size(); k += relations) use(std::span(sizes).subspan(k, relations));
  }
}

namespace {

// The pieces of rows of several holders in a range of vertices, at their owners.
template <class Index>
class PiecesOfRows {
 public:
  PiecesOfRows(const DistCsr<Index>& a, RowRange vertices, bool values) : a_(a), rows_(a, vertices, true) {
    Buffer<std::int64_t> sizes;
    Buffer<Index> ids;
    Buffer<float> of_entries;
    for (const auto row : rows_.held) {
      const auto columns = a.local.row_indices(row);
      sizes.push_back(a.local.row_size(row));
      ids.insert(ids.end(), columns.begin(), columns.end());
      if (!values) continue;
      const auto of_row = a.local.row_values(row);
      of_entries.insert(of_entries.end(), of_row.begin(), of_row.end());
    }
    piece_sizes_ = rows_.to_owners(sizes);
    pieces_.rows = std::ssize(piece_sizes_);
    for (const auto size : piece_sizes_) pieces_.indptr.push_back(pieces_.indptr.back() + size);
    pieces_.indices = rows_.to_owners(sizes, ids);
    if (values) pieces_.values = rows_.to_owners(sizes, of_entries);
    pieces_.weighted = values;
    places_ = rows_.owned;
    std::ranges::sort(places_);
    places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
    Buffer<RowView<Index>> views;
    for (std::size_t j = 0; j < rows_.owned.size(); ++j) {
      row_of_.push_back(std::ranges::lower_bound(places_, rows_.owned[j]) - places_.begin());
      views.push_back(row_view(pieces_, static_cast<std::int64_t>(j)));
    }
    whole_ = join_rows<Index>(Cpu{1}, std::span<const RowView<Index>>(views), row_of_.data(),
                              std::ssize(places_), values);
  }

  // Puts the sum of whole rows to each segment of the pieces that I hold.
  void sum(Buffer<double>& sums, const std::vector<std::int64_t>& first_segment) const {
    const auto columns = a_.columns.view();
    // 1. Of the segments of whole rows.
    const auto relations = a_.columns.relations();
    Buffer<double> of_rows(std::ssize(places_) * relations, 0.0);
    for (std::size_t r = 0; r < places_.size(); ++r)
      for (std::int64_t k = 0; k < whole_.rows[r].size; ++k)
        of_rows[r * relations + columns.relation(whole_.rows[r].indices[k])] += whole_.rows[r].values[k];

    // 2. Back to the holders, for each segment that a piece has.
    Buffer<double> answers;
    Buffer<std::int64_t> counts(rows_.owned.size(), 0);
    for_each_segment(pieces_, columns, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      const auto relation = begin < end ? columns.relation(pieces_.indices[begin]) : 0;
      answers.push_back(of_rows[row_of_[piece] * relations + relation]);
      ++counts[piece];
    });
    const auto received = rows_.to_holders(counts, answers);
    auto from = received.begin();
    for (const auto row : rows_.held) {
      const auto segments = first_segment[row + 1] - first_segment[row];
      std::copy_n(from, segments, sums.begin() + first_segment[row]);
      from += segments;
    }
  }

  // Adds the supports of whole rows to the pieces that I hold.
  void add_supports(WholeRows& to, bool off_diagonal) const {
    Buffer<RowSupport> of_rows, answers;
    for (std::size_t r = 0; r < places_.size(); ++r) {
      const auto& row = whole_.rows[r];
      const auto diagonal = off_diagonal ? place_of_self(places_[r], row.columns()) : -1;
      auto& support = of_rows.emplace_back(support_of(row, diagonal));
      support.total = total_weight(row, diagonal, support.shift());
    }
    for (const auto row : row_of_) answers.push_back(of_rows[row]);
    const auto received = rows_.to_holders(answers);
    for (const auto k : by_row()) to.add(received[k]);
  }

  // Adds where in whole rows the entries of the pieces are that I hold.
  void place(WholeRows& to) const {
    constexpr std::size_t kHead = 2;  // size, diagonal
    Buffer<std::int64_t> counts, answers;
    for (std::size_t j = 0; j < rows_.owned.size(); ++j) {
      const auto whole = whole_.rows[row_of_[j]].columns();
      const auto place_of = [&](std::int64_t column) {
        return std::ranges::lower_bound(whole, static_cast<Index>(column)) - whole.begin();
      };
      answers.push_back(std::ssize(whole));
      answers.push_back(place_of_self(rows_.owned[j], whole));
      for (const auto column : pieces_.row_indices(static_cast<std::int64_t>(j)))
        answers.push_back(place_of(column));
      counts.push_back(piece_sizes_[j] + static_cast<std::int64_t>(kHead));
    }
    const auto received = rows_.to_holders(counts, answers);
    std::vector<std::span<const std::int64_t>> of_held;
    auto from = std::span<const std::int64_t>(received);
    for (const auto row : rows_.held) {
      of_held.push_back(from.first(kHead + static_cast<std::size_t>(a_.local.row_size(row))));
      from = from.subspan(of_held.back().size());
    }
    for (const auto k : by_row()) to.add(of_held[k].subspan(kHead), of_held[k][0], of_held[k][1]);
  }

 private:
  // Numbers of rows_.held, which are by owner, as rows ascend.
  std::vector<std::size_t> by_row() const {
    std::vector<std::size_t> numbers(rows_.held.size());
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    std::ranges::sort(numbers, {}, [&](std::size_t k) { return rows_.held[k]; });
    return numbers;
  }
  // Of the k-th vertex that I own in its row; -1: not there.
  std::int64_t place_of_self(std::int64_t k, std::span<const Index> row) const {
    const auto self = a_.ownership.vertex(a_.part, k);
    const auto found = std::ranges::lower_bound(row, static_cast<Index>(self)) - row.begin();
    return !a_.columns.typed() && found < std::ssize(row) && row[found] == self ? found : -1;
  }

  const DistCsr<Index>& a_;
  HeldRows rows_;
  Buffer<std::int64_t> piece_sizes_;
  Csr<Index> pieces_;                 // as they arrive
  std::vector<std::int64_t> places_;  // of the rows that have some
  Buffer<std::int64_t> row_of_;       // of each piece, in places_
  PiecedRows<Index> whole_;           // [places_]
};

constexpr std::int64_t kEntriesAtOnce = std::int64_t{1} << 22;

// Collective over the column. Calls use(pieces) for ranges of all rows of several holders.
template <class Index, class Use>
void for_each_range(const DistCsr<Index>& a, bool values, Use use) {
  const auto rounds =
      1 + a.grid->column_comm().all_reduce(a.local.entries(), Reduction::kMax, kSetup) / kEntriesAtOnce;
  for (std::int64_t round = 0; round < rounds; ++round)
    use(PiecesOfRows<Index>(a, even_range(a.rows(), rounds, round), values));
}

// Collective over the column.
template <class Index>
std::shared_ptr<const WholeRows> know_whole_rows(const DistCsr<Index>& a, WholeRowFacts facts) {
  const auto holders = a.cut->holders->of();
  std::vector<bool> is_piece(a.local.rows);
  a.for_each_row([&](std::int64_t row, std::int64_t v) { is_piece[row] = std::popcount(holders(v)) > 1; });
  auto whole = std::make_shared<WholeRows>(a.local.rows, [&](std::int64_t row) { return is_piece[row]; });
  const bool places = facts == WholeRowFacts::kPlaces;
  for_each_range(a, !places, [&](const PiecesOfRows<Index>& pieces) {
    if (places)
      pieces.place(*whole);
    else
      pieces.add_supports(*whole, facts == WholeRowFacts::kSupportsOffDiagonal);
  });
  return whole;
}

}  // namespace

template <class Index>
DistCsr<Index> count_rows(DistCsr<Index> a, WholeRowFacts facts) {
  if (!a.cut) return a;
  auto counted = *a.cut;
  counted.sizes.clear(), counted.long_rows.clear();
  const auto holders = a.cut->holders->of();
  double sums[] = {0, 0};  // entries, and those times holders
  for_each_whole_row(a, [&](std::span<const std::int64_t> sizes) {
    const auto size = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    const auto v = a.ownership.vertex(a.part, std::ssize(counted.sizes));
    counted.add_size(size);
    sums[0] += static_cast<double>(size);
    sums[1] += static_cast<double>(size) * std::popcount(holders(v));
  });
  a.grid->column_comm().all_reduce(std::span<double>(sums), Reduction::kSum, kSetup);
  if (sums[0] > 0) counted.copies = sums[1] / sums[0];
  if (facts != WholeRowFacts::kNone) counted.whole = know_whole_rows(a, facts);
  a.cut = std::make_shared<const CutRows>(std::move(counted));
  return a;
}

template <class Index>
Buffer<double> segment_sums(const DistCsr<Index>& a) {
  Buffer<double> sums;
  std::vector<std::int64_t> first_segment(a.local.rows + 1, 0);
  for_each_segment(a.local, a.columns.view(), [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
    double sum = 0;
    for (auto k = begin; k < end; ++k) sum += a.local.values[k];
    sums.push_back(sum);
    first_segment[row + 1] = std::ssize(sums);
  });
  if (!a.cut) return sums;
  for (std::int64_t row = 0; row < a.local.rows; ++row)
    first_segment[row + 1] = std::max(first_segment[row + 1], first_segment[row]);
  for_each_range(a, true, [&](const PiecesOfRows<Index>& pieces) { pieces.sum(sums, first_segment); });
  return sums;
}

template <class Index>
std::vector<std::pair<const char*, std::int64_t>> topology_arrays(const DistCsr<Index>& a) {
  const auto bytes = [](const auto& array) {
    return static_cast<std::int64_t>(array.size() * sizeof(*array.data()));
  };
  std::vector<std::pair<const char*, std::int64_t>> arrays = {{"entries", bytes(a.local.indices)},
                                                              {"values", bytes(a.local.values)},
                                                              {"where rows begin", bytes(a.local.indptr)}};
  if (a.cut) {
    const auto& marks = *a.cut->mine;
    arrays.emplace_back("holders of rows", a.cut->holders->bytes());
    arrays.emplace_back("rows held", bytes(marks.words) + bytes(marks.before));
    arrays.emplace_back("sizes of rows owned", bytes(a.cut->sizes) + 48 * std::ssize(a.cut->long_rows));
    arrays.emplace_back("places in whole rows", a.cut->whole ? a.cut->whole->list_bytes() : 0);
    arrays.emplace_back("whole rows", a.cut->whole ? a.cut->whole->bytes() : 0);
  }
  if (a.parts() > 1)
    for (auto& array : arrays)
      array.second = a.grid->column_comm().all_reduce(array.second, Reduction::kSum, kSetup);
  return arrays;
}

#define ESPALIER_INSTANTIATE(Index)                                                                  \
  template void for_each_whole_row(const DistCsr<Index>&,                                            \
                                   const std::function<void(std::span<const std::int64_t>)>&);       \
  template std::vector<std::pair<const char*, std::int64_t>> topology_arrays(const DistCsr<Index>&); \
  template DistCsr<Index> count_rows(DistCsr<Index>, WholeRowFacts);                                 \
  template HeldRows::HeldRows(const DistCsr<Index>&, RowRange, bool);                                \
  template Buffer<double> segment_sums(const DistCsr<Index>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE
template Buffer<double> HeldRows::to_owners(const Buffer<double>&) const;

}  // namespace espalier
