// Reading rows of the adjacency matrix, and of sparse features.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/dense/paired_rows.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace {

// ---- the adjacency matrix ----

// What the columns of a run of entries must be: of a row, or of a segment of one.
struct Run {
  std::int64_t row = 0;
  std::int64_t low = 0, high = 0;  // sources lie in [low, high)
};

// Goes over the columns of runs in pieces that follow each other. `begins`: where each run begins,
// and the end; run(k) says what run k is.
template <class RunAt>
class ColumnCheck {
 public:
  ColumnCheck(const OpenGraphFile& h, std::span<const std::int64_t> begins, RunAt run_at)
      : h_(h), begins_(begins), run_at_(run_at) {}

  template <class Stored>
  void operator()(std::span<const Stored> columns, std::int64_t first) {
    const auto end = first + std::ssize(columns);
    for (auto e = first; e < end;) {
      while (next_ == 0 || begins_[next_] <= e) {
        run_ = run_at_(next_++);
        previous_ = -1;
      }
      const auto run_end = std::min(begins_[next_], end);
      for (; e < run_end; ++e) check(columns[e - first]);
    }
  }

 private:
  void check(std::int64_t column) {
    if (column < run_.low || column >= run_.high)
      fail(h_, "/graph/indices: row {} names vertex {}, but {} has {}", run_.row, column,
           run_.high - run_.low == h_.info.nodes ? "the graph" : "the source type of its relation",
           run_.low < run_.high ? fmt::format("vertices {} to {}", run_.low, run_.high - 1) : "none");
    if (column <= previous_ && !h_.view.repeats)
      fail(
          h_,
          "/graph/indices: the columns of row {} are not strictly ascending ({} after {}); `espalier prepare "
          "--drop-duplicates` sorts rows and merges what is repeated",
          run_.row, column, previous_);
    previous_ = column;
  }

  const OpenGraphFile& h_;
  std::span<const std::int64_t> begins_;  // [runs + 1]
  RunAt run_at_;
  std::size_t next_ = 0;  // the run after run_
  Run run_;
  std::int64_t previous_ = -1;
};

// Collective. Indices as they are stored, checked, then in the width asked for.
template <class Index, class RunAt>
Buffer<Index> read_indices(OpenGraphFile& h, std::span<const std::int64_t> begins, RunAt run_at,
                           const hdf5::Slab& slab) {
  const auto read_as = [&]<class Stored>(Stored) -> Buffer<Index> {
    auto stored = read_checked<Stored>(h, h.indices, slab, InPieces{ColumnCheck(h, begins, run_at)});
    if constexpr (std::is_same_v<Stored, Index>)
      return stored;
    else
      return {stored.begin(), stored.end()};
  };
  return h.info.wide_indices ? read_as(std::int64_t()) : read_as(std::int32_t());
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

// Collective. Where rows [begin, end) begin in another list of `total` entries.
Buffer<std::int64_t> read_starts(OpenGraphFile& h, const hdf5::Dataset& dataset, std::int64_t begin,
                                 std::int64_t end, std::int64_t total, const char* other) {
  check_range(h, begin, end);
  return read_starts(h, dataset, {begin, end}, h.info.nodes, total, other, true);
}

Buffer<std::int64_t> read_indptr(OpenGraphFile& h, std::int64_t begin, std::int64_t end) {
  return read_starts(h, h.indptr, begin, end, h.info.edges, "/graph/indices");
}

// ---- segments ----

// The segments of some rows.
struct Segments {
  Buffer<std::int64_t> ptr;       // [rows + 1] the first of each row, counted from the first here
  Buffer<std::int32_t> relation;  // [segments]
  Buffer<std::int64_t> begin;     // [segments + 1] entries, counted from the first here
};

// Are the segments of each row in order, not empty, all of the row, of relations into its type?
void check_segments(const OpenGraphFile& h, std::int64_t first_row, const Csr<std::int64_t>& of_rows,
                    std::span<const std::int64_t> indptr, std::span<const std::int32_t> relations,
                    std::span<const std::int64_t> begins) {
  const auto& schema = h.info.schema;
  for (std::int64_t k = 0; k + 1 < std::ssize(indptr); ++k) {
    const auto row = first_row + k;
    const int type = schema.type_of(row);
    std::int64_t at = indptr[k];
    if (of_rows.row_size(k) == 0 && indptr[k + 1] > at)
      fail(h, "/graph/segment_ptr: row {} has {} entries, but no segment", row, indptr[k + 1] - at);
    for (auto s = of_rows.row_begin(k); s < of_rows.row_end(k); ++s) {
      const auto relation = relations[s];
      if (relation < 0 || relation >= std::ssize(schema.relations()))
        fail(h, "/graph/segment_relation: row {} has relation {}, of {}", row, relation,
             schema.relations().size());
      if (s > of_rows.row_begin(k) && relation <= relations[s - 1])
        fail(h, "/graph/segment_relation: the relations of row {} are not strictly ascending ({} after {})",
             row, relation, relations[s - 1]);
      if (schema.relations()[relation].target != type)
        fail(h, "/graph/segment_relation: row {} is of type {}, but has an edge of relation {}", row,
             schema.types()[type].name, schema.full_name(relation));
      const bool first = s == of_rows.row_begin(k);
      if (first ? begins[s] != at : begins[s] <= at)
        fail(h,
             "/graph/segment_begin: segment {} of row {} begins at entry {}, {} {}; segments are not empty "
             "and "
             "cover their row",
             s - of_rows.row_begin(k), row, begins[s], first ? "not at" : "not after", at);
      at = begins[s];
    }
    if (at > indptr[k + 1] || (of_rows.row_size(k) > 0 && at == indptr[k + 1]))
      fail(h, "/graph/segment_begin: the last segment of row {} begins at entry {}, but the row ends at {}",
           row, at, indptr[k + 1]);
  }
}

// Collective. Of rows [begin, end), whose entries begin at `indptr`, absolute.
Segments read_segments(OpenGraphFile& h, std::int64_t begin, std::int64_t end,
                       std::span<const std::int64_t> indptr) {
  Segments segments;
  segments.ptr =
      read_starts(h, h.segment_ptr, begin, end, h.segment_relation.rows(), "/graph/segment_relation");
  const hdf5::Slab slab{segments.ptr.front(), segments.ptr.back(), 1};
  for (auto& first : segments.ptr) first -= slab.begin;
  segments.relation = read_checked<std::int32_t>(h, h.segment_relation, slab, [](const auto&) {});
  Csr<std::int64_t> of_rows;
  of_rows.rows = end - begin;
  of_rows.indptr = segments.ptr;
  segments.begin = read_checked<std::int64_t>(h, h.segment_begin, slab, [&](const auto& begins) {
    check_segments(h, begin, of_rows, indptr, segments.relation, begins);
  });
  for (auto& first : segments.begin) first -= indptr.front();
  segments.begin.push_back(indptr.back() - indptr.front());
  return segments;
}

// Sources become columns of the wide matrix.
template <class Index>
void set_apart(const Schema& schema, const Segments& segments, Csr<Index>& rows) {
  rows.columns = schema.columns();
  for (std::size_t s = 0; s < segments.relation.size(); ++s) {
    const auto shift = schema.shifts()[segments.relation[s]];
    for (auto e = segments.begin[s]; e < segments.begin[s + 1]; ++e)
      rows.indices[e] = static_cast<Index>(rows.indices[e] - shift);
  }
}

// The sources of each row in ascending order, each once.
template <class Index>
void merge_relations(Csr<Index>& rows) {
  std::vector<std::pair<Index, float>> row;
  std::int64_t kept = 0;
  const bool values = rows.has_values();
  for (std::int64_t v = 0, from = 0; v < rows.rows; ++v) {
    const auto to = rows.indptr[v + 1];
    row.clear();
    for (auto e = from; e < to; ++e) row.emplace_back(rows.indices[e], values ? rows.values[e] : 0);
    std::ranges::stable_sort(row, {}, &std::pair<Index, float>::first);
    rows.indptr[v] = kept;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const bool again = k > 0 && row[k].first == row[k - 1].first;
      if (!again) rows.indices[kept++] = row[k].first;
      if (values) rows.values[kept - 1] = again ? rows.values[kept - 1] + row[k].second : row[k].second;
    }
    from = to;
  }
  rows.indptr[rows.rows] = kept;
  rows.indices.resize(kept);
  if (values) rows.values.resize(kept);
}

}  // namespace

template <class Index>
Csr<Index> GraphFile::read_rows(std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  if (std::is_same_v<Index, std::int32_t> && h.info.columns > std::numeric_limits<std::int32_t>::max())
    input_error("graph file {}: {} {} do not fit 32-bit ids", h.path, h.info.columns,
                h.view.apart ? "columns of its relations" : "vertices");
  Csr<Index> rows;
  rows.rows = end - begin;
  rows.columns = h.info.nodes;
  rows.indptr = read_indptr(h, begin, end);
  Segments segments;
  if (h.info.typed) segments = read_segments(h, begin, end, rows.indptr);
  const hdf5::Slab slab{rows.indptr.front(), rows.indptr.back(), 1};
  for (auto& offset : rows.indptr) offset -= slab.begin;
  if (h.info.typed) {
    std::int64_t row = 0;  // of the segment before
    rows.indices = read_indices<Index>(
        h, segments.begin,
        [&, row](std::size_t s) mutable {
          while (segments.ptr[row + 1] <= static_cast<std::int64_t>(s)) ++row;
          const auto& source = h.info.schema.types()[h.info.schema.relations()[segments.relation[s]].source];
          return Run{begin + row, source.begin, source.end};
        },
        slab);
  } else {
    rows.indices = read_indices<Index>(
        h, rows.indptr,
        [&](std::size_t k) {
          return Run{begin + static_cast<std::int64_t>(k), 0, h.info.nodes};
        },
        slab);
  }
  if (h.info.weighted) rows.values = read_weights(h, slab);
  rows.weighted = h.info.weighted;
  if (h.info.typed) h.view.apart ? set_apart(h.info.schema, segments, rows) : merge_relations(rows);
  return rows;
}

template Csr<std::int32_t> GraphFile::read_rows(std::int64_t, std::int64_t) const;
template Csr<std::int64_t> GraphFile::read_rows(std::int64_t, std::int64_t) const;

Buffer<std::int64_t> GraphFile::read_row_sizes(std::int64_t begin, std::int64_t end) const {
  auto sizes = read_indptr(*open_, begin, end);
  for (std::size_t v = 0; v + 1 < sizes.size(); ++v) sizes[v] = sizes[v + 1] - sizes[v];
  sizes.pop_back();
  return sizes;
}

std::vector<std::int64_t> GraphFile::count_entries(std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  const auto indptr = read_indptr(h, begin, end);
  std::vector<std::int64_t> counts(h.info.schema.relations().size(), 0);
  if (!h.info.typed) {
    counts[0] = indptr.back() - indptr.front();
    return counts;
  }
  const auto segments = read_segments(h, begin, end, indptr);
  for (std::size_t s = 0; s < segments.relation.size(); ++s)
    counts[segments.relation[s]] += segments.begin[s + 1] - segments.begin[s];
  return counts;
}

// ---- sparse features, rows of pairs (dense/paired_rows.hpp) ----

namespace {

// Those of a type.
struct Sparse {
  Sparse(const OpenGraphFile& h, int type)
      : begins(h.at(Column::kSparseBegins, type)),
        columns(h.at(Column::kSparseColumns, type)),
        values(h.at(Column::kSparseValues, type)),
        rows(begins.rows() - 1) {}

  const hdf5::Dataset &begins, &columns, &values;
  std::int64_t rows;
};

// Columns ascend in a row and are below `columns`.
void check_columns(const OpenGraphFile& h, const Sparse& of, std::int64_t begin,
                   std::span<const std::int64_t> starts, std::int64_t columns,
                   std::span<const std::int64_t> read) {
  for (std::size_t row = 0; row + 1 < starts.size(); ++row) {
    std::int64_t previous = -1;
    for (auto e = starts[row] - starts[0]; e < starts[row + 1] - starts[0]; ++e) {
      if (read[e] < 0 || read[e] >= columns)
        fail(h, "{}: row {} names column {}, but there are {}", of.columns.name,
             begin + static_cast<std::int64_t>(row), read[e], columns);
      if (read[e] <= previous)
        fail(h, "{}: the columns of row {} are not strictly ascending ({} after {})", of.columns.name,
             begin + static_cast<std::int64_t>(row), read[e], previous);
      previous = read[e];
    }
  }
}

}  // namespace

void find_pairs(OpenGraphFile& h, int type) {
  const Sparse of(h, type);
  if (!of.begins.exists()) return;
  auto& info = h.info.types[type];
  std::int64_t longest = 1;
  in_row_parts(h.comm, of.rows, [&](std::int64_t begin, std::int64_t end) {
    const auto starts =
        read_starts(h, of.begins, {begin, end}, of.rows, of.columns.rows(), of.columns.name, false);
    for (std::size_t i = 1; i < starts.size(); ++i) longest = std::max(longest, starts[i] - starts[i - 1]);
  });
  info.pairs = h.comm.all_reduce(longest, Reduction::kMax, "graph file");
}

Matrix<float> read_pairs(OpenGraphFile& h, int type, std::int64_t begin, std::int64_t end) {
  const Sparse of(h, type);
  const auto& info = h.info.types[type];
  const auto starts =
      read_starts(h, of.begins, {begin, end}, of.rows, of.columns.rows(), of.columns.name, false);
  const hdf5::Slab slab{starts.front(), starts.back(), 1};
  const auto columns = read_checked<std::int64_t>(
      h, of.columns, slab,
      [&](std::span<const std::int64_t> read) { check_columns(h, of, begin, starts, info.features, read); });
  const auto check_finite = [&](std::span<const float> piece, std::int64_t first) {
    for (std::size_t e = 0; e < piece.size(); ++e)
      if (!std::isfinite(piece[e]))
        fail(h, "{}: entry {} is not a finite number", of.values.name,
             slab.begin + first + static_cast<std::int64_t>(e));
  };
  const auto values = read_checked<float>(h, of.values, slab, InPieces{check_finite});
  Matrix<float> rows(end - begin, 2 * info.pairs);
  std::ranges::fill(rows.data, 0.0f);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    float* pair = rows.row(row);
    for (auto e = starts[row] - slab.begin; e < starts[row + 1] - slab.begin; ++e, pair += 2) {
      pair[0] = static_cast<float>(columns[e]);
      pair[1] = values[e];
    }
  }
  return rows;
}

}  // namespace espalier
