#include "espalier/partition/owned_reader.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/group_stably.hpp"

namespace espalier {

namespace {

constexpr const char* kSetupLabel = "setup";

template <class T>
void append(Buffer<T>& all, const Buffer<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Rows of pairs of a type whose longest is shorter than that of another type.
template <class T>
Buffer<T> as_wide(Matrix<T> rows, std::int64_t width) {
  if (rows.columns == width) return std::move(rows.data);
  Buffer<T> wide(rows.rows * width, T{});
  for (std::int64_t k = 0; k < rows.rows; ++k)
    std::copy_n(rows.row(k), rows.columns, wide.data() + k * width);
  return wide;
}

}  // namespace

// The rows [read.begin, read.end), on their way from the rank that read them to their owners.
struct OwnedReader::Deal {
  const Communicator& column;
  std::vector<std::int64_t> order;   // the rows, counted from read.begin, grouped by owner
  std::vector<std::int64_t> counts;  // rows for each rank

  Deal(const Communicator& comm, const Ownership& ownership, RowRange read)
      : column(comm), order(read.size()) {
    std::iota(order.begin(), order.end(), std::int64_t{0});
    counts =
        group_stably(order, comm.size(), [&](std::int64_t k) { return ownership.owner(read.begin + k); });
  }

  // Rows of equal width.
  template <class T>
  Buffer<T> send(const T* rows, std::int64_t width) const {
    Buffer<T> sent(std::ssize(order) * width);
    for (std::int64_t k = 0; k < std::ssize(order); ++k)
      std::copy_n(rows + order[k] * width, width, sent.data() + k * width);
    auto sizes = counts;
    for (auto& size : sizes) size *= width;
    return column.all_to_all_v(std::span<const T>(sent), sizes, kSetupLabel).data;
  }

  // Rows of any width: row k is values[indptr[k] .. indptr[k + 1]).
  template <class T>
  Buffer<T> send(const Buffer<std::int64_t>& indptr, const Buffer<T>& values) const {
    Buffer<T> sent;
    sent.reserve(values.size());
    std::vector<std::int64_t> sizes;
    auto k = order.begin();
    for (const auto rows : counts) {
      const auto before = std::ssize(sent);
      for (const auto end = k + rows; k != end; ++k)
        sent.insert(sent.end(), values.begin() + indptr[*k], values.begin() + indptr[*k + 1]);
      sizes.push_back(std::ssize(sent) - before);
    }
    return column.all_to_all_v(std::span<const T>(sent), sizes, kSetupLabel).data;
  }

  // The sizes of rows, of which my own follow the rows of `all`.
  template <class Index>
  void send_sizes(const Csr<Index>& read, Csr<Index>& all) const {
    Buffer<std::int64_t> sizes(read.rows);
    for (std::int64_t k = 0; k < read.rows; ++k) sizes[k] = read.row_size(k);
    for (const auto size : send(sizes.data(), 1)) all.indptr.push_back(all.indptr.back() + size);
  }
};

OwnedReader::OwnedReader(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                         std::int64_t piece_bytes)
    : grid_(grid),
      file_(file),
      ownership_(ownership),
      part_(ownership.parts() > 1 ? grid.row() : 0),
      piece_bytes_(piece_bytes) {}

// Collective over the column. Calls read(deal, begin, end) for one piece after another of a data
// set of so many bytes.
template <class Read>
void OwnedReader::each_piece(std::int64_t bytes, Read read) const {
  const auto& column = grid_.column_comm();
  const auto n = ownership_.rows(), rounds = 1 + bytes / column.size() / piece_bytes_;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto slice = even_range(n, rounds, round),
               mine = even_range(slice.size(), column.size(), column.rank());
    const RowRange piece{slice.begin + mine.begin, slice.begin + mine.end};
    read(Deal(column, ownership_, piece), piece.begin, piece.end);
  }
}

template <class Index>
Csr<Index> OwnedReader::rows() const {
  if (!ownership_.is_map())
    return file_.read_rows<Index>(ownership_.ranges().begin(part_), ownership_.ranges().end(part_));
  const auto& info = file_.info();
  std::vector<Csr<Index>> pieces;
  Csr<Index> all;
  all.rows = ownership_.size(part_);
  all.columns = info.columns;
  all.indptr.reserve(all.rows + 1);
  const std::int64_t entry_bytes = sizeof(Index) + (info.weighted ? sizeof(float) : 0);
  each_piece(info.edges * entry_bytes, [&](const Deal& deal, std::int64_t begin, std::int64_t end) {
    const auto read = file_.read_rows<Index>(begin, end);
    deal.send_sizes(read, all);
    auto& piece = pieces.emplace_back();
    piece.indices = deal.send(read.indptr, read.indices);
    if (info.weighted) piece.values = deal.send(read.indptr, read.values);
  });
  all.indices.reserve(all.indptr.back());
  all.weighted = info.weighted;
  all.values.reserve(info.weighted ? all.indptr.back() : 0);
  for (auto& piece : pieces) {
    append(all.indices, piece.indices);
    append(all.values, piece.values);
    piece = {};
  }
  return all;
}

// My rows of a data set with `width` values in each; read(begin, end) reads some.
template <class T, class Read>
Buffer<T> OwnedReader::collect(std::int64_t width, Read read) const {
  Buffer<T> all;
  all.reserve(ownership_.size(part_) * width);
  each_piece(ownership_.rows() * width * static_cast<std::int64_t>(sizeof(T)),
             [&](const Deal& deal, std::int64_t begin, std::int64_t end) {
               const Buffer<T> rows = read(begin, end);
               append(all, deal.send(rows.data(), width));
             });
  return all;
}

// Rows of a range of the numbers of types that are held.
template <class T>
Buffer<T> OwnedReader::read_features(const HeldTypes& held, std::int64_t width, std::int64_t begin,
                                     std::int64_t end) const {
  const auto& types = file_.info().schema.types();
  Buffer<T> rows;
  for (int t = 0; t < std::ssize(types); ++t) {
    if (!held.holds_type(t)) continue;
    const auto from = std::clamp(begin + held.shift(t), types[t].begin, types[t].end),
               to = std::clamp(end + held.shift(t), from, types[t].end);
    append(rows, as_wide(file_.read_features<T>(from, to, t), width));
  }
  return rows;
}

template <class T>
Matrix<T> OwnedReader::features(const HeldTypes& held, std::int64_t width) const {
  const auto read = [&](std::int64_t begin, std::int64_t end) {
    return read_features<T>(held, width, begin, end);
  };
  Matrix<T> mine(0, width);
  mine.rows = ownership_.size(part_);
  mine.data = ownership_.is_map() ? collect<T>(width, read)
                                  : read(ownership_.ranges().begin(part_), ownership_.ranges().end(part_));
  return mine;
}

template <class T>
void OwnedReader::features_in_pieces(const HeldTypes& held, std::int64_t width,
                                     const std::function<void(Matrix<T>)>& use) const {
  const auto give = [&](Buffer<T> values) {
    Matrix<T> rows(0, width);
    rows.rows = width == 0 ? 0 : std::ssize(values) / width;
    rows.data = std::move(values);
    use(std::move(rows));
  };
  const auto row_bytes = width * static_cast<std::int64_t>(sizeof(T)), n = ownership_.rows();
  if (ownership_.is_map())
    return each_piece(n * row_bytes, [&](const Deal& deal, std::int64_t begin, std::int64_t end) {
      give(deal.send(read_features<T>(held, width, begin, end).data(), width));
    });
  const auto& ranges = ownership_.ranges();
  const auto rounds = 1 + n * row_bytes / ownership_.parts() / piece_bytes_;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto some = even_range(ranges.size(part_), rounds, round);
    const auto first = ranges.begin(part_);
    give(read_features<T>(held, width, first + some.begin, first + some.end));
  }
}

// Edges of one range of rows after another, with their features. Each relation's features stand in
// the file in the order of its entries, so a range begins where those before it have ended: ranges
// of the ranks of a column follow one another, and those of a later call follow all of these.
template <class Index, class T>
class OwnedReader::EdgePieces {
 public:
  EdgePieces(const Communicator& column, const GraphFile& file, const std::vector<std::uint8_t>& held,
             std::int64_t width, bool in_turn)
      : column_(column),
        file_(file),
        held_(held),
        width_(width),
        in_turn_(in_turn),
        before_(held.size(), 0) {}

  // Collective over the column; in turn: ranges follow one another by rank. Else all have all rows.
  OwnedEdges<Index, T> read(std::int64_t begin, std::int64_t end) {
    const auto rows = file_.read_rows<Index>(begin, end);
    const auto& schema = file_.info().schema;
    OwnedEdges<Index, T> piece;
    piece.entries.rows = rows.rows;
    piece.entries.columns = rows.columns;
    std::vector<std::int64_t> counts(held_.size(), 0);
    std::vector<std::uint8_t> relations;
    for (std::int64_t k = 0; k < rows.rows; ++k) {
      for (const auto column : rows.row_indices(k)) {
        const int relation = schema.relation_of(column);
        if (held_[relation] == 0) continue;
        piece.entries.indices.push_back(column);
        relations.push_back(static_cast<std::uint8_t>(relation));
        ++counts[relation];
      }
      piece.entries.indptr.push_back(piece.entries.entries());
    }
    piece.rows.resize(std::ssize(relations), width_);
    std::fill(piece.rows.data.begin(), piece.rows.data.end(), T{});
    auto first = first_of_mine(counts);
    for (int r = 0; r < std::ssize(held_); ++r)
      if (held_[r] != 0) place(r, first[r], counts[r], relations, piece.rows);
    return piece;
  }

  // When all was read.
  void check_counts() const { check_edge_features(file_, before_); }

 private:
  // Of each relation the first of my entries among all; those of this call are behind it then.
  std::vector<std::int64_t> first_of_mine(const std::vector<std::int64_t>& counts) {
    auto first = before_;
    Buffer<std::int64_t> all(counts.begin(), counts.end());
    if (in_turn_) all = column_.all_gather_v(std::span<const std::int64_t>(all), kSetupLabel);
    const auto relations = std::ssize(counts);
    for (std::int64_t at = 0; at < std::ssize(all); ++at) {
      if (in_turn_ && at / relations < column_.rank()) first[at % relations] += all[at];
      before_[at % relations] += all[at];
    }
    for (int r = 0; r < relations; ++r)
      if (held_[r] != 0 && before_[r] > file_.info().edge_features[r].entries) check_counts();
    return first;
  }
  void place(int relation, std::int64_t first, std::int64_t count, const std::vector<std::uint8_t>& relations,
             Matrix<T>& rows) const {
    const auto read = file_.read<T>(Column::kEdgeFeatures, relation, first, first + count);
    std::int64_t at = 0;
    for (std::int64_t e = 0; e < rows.rows; ++e)
      if (relations[e] == relation) std::copy_n(read.row(at++), read.columns, rows.row(e));
  }

  const Communicator& column_;
  const GraphFile& file_;
  const std::vector<std::uint8_t>& held_;
  std::int64_t width_;
  bool in_turn_;
  std::vector<std::int64_t> before_;  // [relations] entries that were read, by all
};

template <class Index, class T>
OwnedEdges<Index, T> OwnedReader::edges(const std::vector<std::uint8_t>& held, std::int64_t width) const {
  EdgePieces<Index, T> pieces(grid_.column_comm(), file_, held, width, ownership_.parts() > 1);
  OwnedEdges<Index, T> mine;
  if (!ownership_.is_map()) {
    mine = pieces.read(ownership_.ranges().begin(part_), ownership_.ranges().end(part_));
  } else {
    mine.entries.rows = ownership_.size(part_);
    mine.entries.columns = file_.info().columns;
    mine.rows.columns = width;
    std::int64_t rows = 0;
    for (const auto& edges : file_.info().edge_features) rows += edges.entries;
    each_piece(rows * width * std::int64_t{sizeof(T)},
               [&](const Deal& deal, std::int64_t begin, std::int64_t end) {
                 const auto piece = pieces.read(begin, end);
                 auto starts = piece.entries.indptr;
                 for (auto& start : starts) start *= width;
                 deal.send_sizes(piece.entries, mine.entries);
                 append(mine.entries.indices, deal.send(piece.entries.indptr, piece.entries.indices));
                 append(mine.rows.data, deal.send(starts, piece.rows.data));
               });
  }
  pieces.check_counts();
  mine.rows.rows = mine.entries.entries() + 1;
  mine.rows.data.resize(mine.rows.rows * width);
  std::fill_n(mine.rows.row(mine.rows.rows - 1), width, T{});
  return mine;
}

template <class T, class Read>
Buffer<T> OwnedReader::collect_share(std::int64_t width, Read read) const {
  const auto shares = ownership_.cut(grid_.replication());
  const int share = part_ * grid_.replication() + grid_.column();
  if (!ownership_.is_map()) return read(shares.ranges().begin(share), shares.ranges().end(share));
  const auto part = collect<T>(width, read);
  std::int64_t before = 0;
  for (int other = part_ * grid_.replication(); other < share; ++other) before += shares.size(other);
  return {part.begin() + before * width, part.begin() + (before + shares.size(share)) * width};
}

Buffer<std::int32_t> OwnedReader::labels() const {
  return collect_share<std::int32_t>(1, [&](auto begin, auto end) { return file_.read_labels(begin, end); });
}

Matrix<std::uint8_t> OwnedReader::multi_labels() const {
  Matrix<std::uint8_t> mine(0, file_.info().classes);
  mine.data = collect_share<std::uint8_t>(
      mine.columns, [&](auto begin, auto end) { return file_.read_multi_labels(begin, end).data; });
  mine.rows = mine.columns == 0 ? 0 : std::ssize(mine.data) / mine.columns;
  return mine;
}

template Csr<std::int32_t> OwnedReader::rows() const;
template Csr<std::int64_t> OwnedReader::rows() const;
template Matrix<float> OwnedReader::features(const HeldTypes&, std::int64_t) const;
template Matrix<Half> OwnedReader::features(const HeldTypes&, std::int64_t) const;
template void OwnedReader::features_in_pieces(const HeldTypes&, std::int64_t,
                                              const std::function<void(Matrix<float>)>&) const;
template OwnedEdges<std::int32_t, float> OwnedReader::edges(const std::vector<std::uint8_t>&,
                                                            std::int64_t) const;
template OwnedEdges<std::int32_t, Half> OwnedReader::edges(const std::vector<std::uint8_t>&,
                                                           std::int64_t) const;
template OwnedEdges<std::int64_t, float> OwnedReader::edges(const std::vector<std::uint8_t>&,
                                                            std::int64_t) const;
template OwnedEdges<std::int64_t, Half> OwnedReader::edges(const std::vector<std::uint8_t>&,
                                                           std::int64_t) const;

}  // namespace espalier
