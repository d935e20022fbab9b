// Reading row ranges. Each read has two halves: the transfer, and then the local check of what
// arrived, inside agree(), so that one damaged row on one rank is one message for all.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "espalier/comm/agree.hpp"
#include "espalier/graph/row_range.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace {

template <class... Args>
[[noreturn]] void fail(const OpenGraphFile& h, fmt::format_string<Args...> format, Args&&... args) {
  input_error("graph file {}: {}; {}", h.path, fmt::format(format, std::forward<Args>(args)...), kWriteAgain);
}

void check_range(const OpenGraphFile& h, std::int64_t begin, std::int64_t end) {
  ESPALIER_CHECK(0 <= begin && begin <= end && end <= h.info.nodes, "rows [{}, {}) of {}", begin, end,
                 h.info.nodes);
}

/// A check that looks at entries one by one, and so may be given them in pieces: check(piece, place
/// of its first entry). A piece is hashed while it is in cache.
template <class Check>
struct InPieces {
  Check check;
};

// This rank's share of the digest of a data set, and the check of what it read.
template <class T, class Check>
std::uint64_t hash_and_check(std::span<const T> values, std::int64_t first, bool hashes, Check& whole) {
  whole(values);
  return hashes ? content_digest(values, first) : 0;
}
template <class T, class Check>
std::uint64_t hash_and_check(std::span<const T> values, std::int64_t first, bool hashes,
                             InPieces<Check>& entries) {
  constexpr std::size_t kPiece = 2048;
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < values.size(); at += kPiece) {
    const auto piece = values.subspan(at, std::min(kPiece, values.size() - at));
    const auto place = static_cast<std::int64_t>(at);
    entries.check(piece, place);
    if (hashes) sum += content_digest(piece, first + place);
  }
  return sum;
}

// Collective. Counts what this rank read, entries [first, first + entries), towards the digest.
void check_content(OpenGraphFile& h, const hdf5::Dataset& dataset, std::int64_t first, std::size_t entries,
                   std::uint64_t share) {
  auto& content = h.contents.at(dataset.name);
  if (content.add(h.comm, first, first + static_cast<std::int64_t>(entries), share)) return;
  input_error(
      "graph file {}: {} does not hold what was written there: its digest is {}, the file says {}; {}",
      h.path, dataset.name, hex(*content.found()), hex(*content.stated()), kDigestAgain);
}

// Collective. Rows of a dataset as T; then `check` on what arrived, by all ranks together. The last
// `overlap` values are counted by another rank towards the digest.
template <class T, class Check>
Buffer<T> read_checked(OpenGraphFile& h, const hdf5::Dataset& dataset, const hdf5::Slab& slab, Check check,
                       std::size_t overlap = 0) {
  Buffer<T> values((slab.end - slab.begin) * slab.columns);
  const bool good = hdf5::read_slab(dataset, hdf5::memory_type<T>(), slab, values.data());
  const bool hashes = h.verify != Verify::kNo && !h.contents.at(dataset.name).found();
  const auto first = slab.begin * slab.columns;
  std::uint64_t share = 0;
  agree(h.comm, [&] {
    if (!good)
      fail(h, "cannot read rows {} to {} of {}: {}", slab.begin, slab.end, dataset.name, hdf5::reason());
    share = hash_and_check(std::span<const T>(values), first, hashes && overlap == 0, check);
  });
  if (!hashes) return values;
  const auto entries = values.size() - overlap;
  if (overlap > 0) share = content_digest(std::span<const T>(values.data(), entries), first);
  check_content(h, dataset, first, entries, share);
  return values;
}

// ---- the adjacency matrix ----

void check_indptr(const OpenGraphFile& h, std::int64_t begin, std::int64_t end,
                  std::span<const std::int64_t> indptr) {
  const auto edges = h.info.edges;
  if (begin == 0 && indptr[0] != 0) fail(h, "/graph/indptr starts with {}, not with 0", indptr[0]);
  if (end == h.info.nodes && indptr.back() != edges)
    fail(h, "/graph/indptr ends with {}, but /graph/indices has {} entries", indptr.back(), edges);
  for (std::size_t i = 0; i < indptr.size(); ++i) {
    if (indptr[i] < 0 || indptr[i] > edges || (i > 0 && indptr[i] < indptr[i - 1]))
      fail(h, "/graph/indptr is not ascending within [0, {}]: entry {} is {}{}", edges,
           begin + static_cast<std::int64_t>(i), indptr[i],
           i > 0 ? fmt::format(" after {}", indptr[i - 1]) : std::string());
  }
}

// Goes over the columns of rows in pieces that follow each other.
class ColumnCheck {
 public:
  ColumnCheck(const OpenGraphFile& h, std::int64_t first_row, std::span<const std::int64_t> indptr)
      : h_(h), first_row_(first_row), indptr_(indptr) {}

  template <class Stored>
  void operator()(std::span<const Stored> columns, std::int64_t first) {
    const auto end = first + std::ssize(columns);
    for (auto e = first; e < end;) {
      while (indptr_[row_ + 1] <= e) {
        ++row_;
        previous_ = -1;
      }
      const auto row_end = std::min(indptr_[row_ + 1], end);
      for (; e < row_end; ++e) check(columns[e - first]);
    }
  }

 private:
  void check(std::int64_t column) {
    if (column < 0 || column >= h_.info.nodes)
      fail(h_, "/graph/indices: row {} names vertex {}, but the graph has vertices 0 to {}",
           first_row_ + static_cast<std::int64_t>(row_), column, h_.info.nodes - 1);
    if (column <= previous_)
      fail(h_, "/graph/indices: the columns of row {} are not strictly ascending ({} after {})",
           first_row_ + static_cast<std::int64_t>(row_), column, previous_);
    previous_ = column;
  }

  const OpenGraphFile& h_;
  std::int64_t first_row_;
  std::span<const std::int64_t> indptr_;
  std::size_t row_ = 0;
  std::int64_t previous_ = -1;
};

// Collective. Indices as they are stored, checked, then in the width asked for.
template <class Stored, class Index>
Buffer<Index> read_indices(OpenGraphFile& h, std::int64_t begin, const Buffer<std::int64_t>& indptr,
                           const hdf5::Slab& slab) {
  auto stored = read_checked<Stored>(h, h.indices, slab, InPieces{ColumnCheck(h, begin, indptr)});
  if constexpr (std::is_same_v<Stored, Index>) {
    return stored;
  } else {
    return Buffer<Index>(stored.begin(), stored.end());
  }
}

Buffer<float> read_weights(OpenGraphFile& h, const hdf5::Slab& slab) {
  const auto check = [&](std::span<const float> weights, std::int64_t first) {
    for (std::size_t e = 0; e < weights.size(); ++e)
      if (!(weights[e] >= 0 && weights[e] <= std::numeric_limits<float>::max()))
        fail(h, "/graph/weights: entry {} is {}; weights must be finite and not negative",
             slab.begin + first + static_cast<std::int64_t>(e), weights[e]);
  };
  return read_checked<float>(h, h.weights, slab, InPieces{check});
}

}  // namespace

template <class Index>
Csr<Index> GraphFile::read_rows(std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  check_range(h, begin, end);
  if (std::is_same_v<Index, std::int32_t> && h.info.nodes > std::numeric_limits<std::int32_t>::max())
    input_error("graph file {}: {} vertices do not fit 32-bit ids", h.path, h.info.nodes);
  Csr<Index> rows;
  rows.rows = end - begin;
  rows.columns = h.info.nodes;
  // The entry behind my last row is the first of another rank, but for the very last.
  rows.indptr = read_checked<std::int64_t>(
      h, h.indptr, {begin, end + 1, 1}, [&](const auto& indptr) { check_indptr(h, begin, end, indptr); },
      end < h.info.nodes || begin == end ? 1 : 0);
  const hdf5::Slab slab{rows.indptr.front(), rows.indptr.back(), 1};
  for (auto& offset : rows.indptr) offset -= slab.begin;
  rows.indices = h.info.wide_indices ? read_indices<std::int64_t, Index>(h, begin, rows.indptr, slab)
                                     : read_indices<std::int32_t, Index>(h, begin, rows.indptr, slab);
  if (h.info.weighted) rows.values = read_weights(h, slab);
  return rows;
}

template Csr<std::int32_t> GraphFile::read_rows(std::int64_t, std::int64_t) const;
template Csr<std::int64_t> GraphFile::read_rows(std::int64_t, std::int64_t) const;

// ---- features ----

namespace {

bool is_finite(float x) {
  return (std::bit_cast<std::uint32_t>(x) & 0x7f800000u) != 0x7f800000u;
}
bool is_finite(Half x) {
  return (x.bits & 0x7c00u) != 0x7c00u;
}

template <class T>
void check_finite(const OpenGraphFile& h, const hdf5::Slab& slab, std::span<const T> values,
                  std::int64_t first, const char* wrong) {
  bool all = true;
  for (const T x : values) all &= is_finite(x);
  if (all) return;
  const auto bad = std::find_if(values.begin(), values.end(), [](T x) { return !is_finite(x); });
  const auto place = first + (bad - values.begin());
  fail(h, "/nodes/features: row {}, column {} is {}", slab.begin + place / slab.columns, place % slab.columns,
       wrong);
}

template <class Stored>
Buffer<Stored> read_finite(OpenGraphFile& h, const hdf5::Slab& slab) {
  return read_checked<Stored>(h, h.features, slab,
                              InPieces{[&](std::span<const Stored> piece, std::int64_t first) {
                                check_finite(h, slab, piece, first, "not a finite number");
                              }});
}

}  // namespace

template <class T>
Matrix<T> GraphFile::read_features(std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  check_range(h, begin, end);
  if (!h.features.exists()) input_error("graph file {}: has no /nodes/features", h.path);
  const hdf5::Slab slab{begin, end, h.info.features};
  Matrix<T> rows(end - begin, h.info.features);
  if (std::is_same_v<T, Half> == h.info.half_features) {
    rows.data = read_finite<T>(h, slab);
  } else if constexpr (std::is_same_v<T, Half>) {
    const auto stored = read_finite<float>(h, slab);
    std::transform(stored.begin(), stored.end(), rows.data.begin(), [](float x) { return to_half(x); });
    agree(h.comm,
          [&] { check_finite(h, slab, std::span<const Half>(rows.data), 0, "too large for float16"); });
  } else {
    const auto stored = read_finite<Half>(h, slab);
    std::transform(stored.begin(), stored.end(), rows.data.begin(), [](Half x) { return to_float(x); });
  }
  return rows;
}

template Matrix<float> GraphFile::read_features(std::int64_t, std::int64_t) const;
template Matrix<Half> GraphFile::read_features(std::int64_t, std::int64_t) const;

// ---- labels and splits ----

Buffer<std::int32_t> GraphFile::read_labels(std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  check_range(h, begin, end);
  if (!h.labels.exists()) input_error("graph file {}: has no /nodes/labels", h.path);
  ESPALIER_CHECK(!h.info.multi_label, "{} has several labels per vertex", h.path);
  return read_checked<std::int32_t>(h, h.labels, {begin, end, 1}, [&](const auto& labels) {
    for (std::size_t v = 0; v < labels.size(); ++v)
      if (labels[v] < -1 || labels[v] >= h.info.classes)
        fail(h, "/nodes/labels: vertex {} has label {}; labels are -1 (none) or 0 to {}",
             begin + static_cast<std::int64_t>(v), labels[v], h.info.classes - 1);
  });
}

Matrix<std::uint8_t> GraphFile::read_multi_labels(std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  check_range(h, begin, end);
  ESPALIER_CHECK(h.info.multi_label, "{} has one label per vertex", h.path);
  const hdf5::Slab slab{begin, end, h.info.classes};
  const auto check = [&](const auto& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != 0 && values[i] != 1 && values[i] != kUnknownLabel && values[i] != -1)
        fail(h, "/nodes/labels: row {} holds {}; several labels are given as 0 or 1, or 255 where unknown",
             begin + static_cast<std::int64_t>(i) / slab.columns, values[i]);
  };
  Matrix<std::uint8_t> rows(end - begin, h.info.classes);
  if (h.labels.type_size == 1 && !h.labels.type_signed) {
    rows.data = read_checked<std::uint8_t>(h, h.labels, slab, check);
  } else {  // HDF5 would make 255 of what is larger, and 0 of what is negative
    const auto wide = read_checked<std::int32_t>(h, h.labels, slab, check);
    std::ranges::transform(wide, rows.data.begin(),
                           [](std::int32_t x) { return static_cast<std::uint8_t>(x); });
  }
  return rows;
}

Buffer<std::int64_t> GraphFile::read_split(Split split) const {
  auto& h = *open_;
  const auto& dataset = h.splits[static_cast<std::size_t>(split)];
  if (!dataset.exists()) return {};
  return read_checked<std::int64_t>(h, dataset, {0, dataset.rows(), 1}, [&](const auto& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= h.info.nodes)
        fail(h, "{}: entry {} is {}, but the graph has vertices 0 to {}", dataset.name, i, ids[i],
             h.info.nodes - 1);
      if (i > 0 && ids[i] <= ids[i - 1])
        fail(h, "{}: ids are not strictly ascending (entry {} is {} after {})", dataset.name, i, ids[i],
             ids[i - 1]);
    }
  });
}

void check_splits(const Communicator& comm, const GraphFile& file) {
  const auto& info = file.info();
  const auto range = even_range(info.nodes, comm.size(), comm.rank());
  const bool labelled = info.classes > 0 && !info.multi_label;
  const auto labels = labelled ? file.read_labels(range.begin, range.end) : Buffer<std::int32_t>();
  const Buffer<std::int64_t> splits[] = {file.read_split(Split::kTrain), file.read_split(Split::kValid),
                                         file.read_split(Split::kTest)};
  std::vector<signed char> owner(range.size(), -1);
  agree(comm, [&] {
    for (std::size_t s = 0; s < kSplitNames.size(); ++s) {
      const auto first = std::lower_bound(splits[s].begin(), splits[s].end(), range.begin);
      for (auto id = first; id != splits[s].end() && *id < range.end; ++id) {
        const auto place = static_cast<std::size_t>(*id - range.begin);
        if (owner[place] >= 0)
          input_error("graph file {}: vertex {} is in /split/{} and in /split/{}; splits must not overlap",
                      file.path(), *id, kSplitNames[owner[place]], kSplitNames[s]);
        owner[place] = static_cast<signed char>(s);
        if (labelled && labels[place] < 0)
          input_error("graph file {}: vertex {} of /split/{} has no label (-1); leave it out of the split",
                      file.path(), *id, kSplitNames[s]);
      }
    }
  });
}

void read_everything(const Communicator& comm, const GraphFile& file) {
  constexpr std::int64_t kValuesPerPart = std::int64_t{1} << 26;
  const auto& info = file.info();
  const auto mine = even_range(info.nodes, comm.size(), comm.rank());
  // Calls read(begin, end) for my rows, as often on every rank.
  const auto in_parts = [&](std::int64_t values, auto read) {
    const auto parts = 1 + values / comm.size() / kValuesPerPart;
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto rows = even_range(mine.size(), parts, part);
      read(mine.begin + rows.begin, mine.begin + rows.end);
    }
  };
  in_parts(info.edges, [&](auto begin, auto end) { file.read_rows<std::int64_t>(begin, end); });
  if (info.features > 0)
    in_parts(info.nodes * info.features, [&](auto begin, auto end) {
      info.half_features ? void(file.read_features<Half>(begin, end))
                         : void(file.read_features<float>(begin, end));
    });
  if (info.has_labels)
    in_parts(info.nodes * (info.multi_label ? info.classes : 1), [&](auto begin, auto end) {
      info.multi_label ? void(file.read_multi_labels(begin, end)) : void(file.read_labels(begin, end));
    });
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) file.read_split(split);
}

}  // namespace espalier
