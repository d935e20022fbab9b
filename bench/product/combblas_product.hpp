// P = Q A by CombBLAS's PSpGEMM, the 2D sparse SUMMA that users know, and by our schedules,
// comparable.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <CombBLAS/CombBLAS.h>

#include <memory>
#include <string>
#include <vector>

#include "espalier/graph/graph_file.hpp"
#include "espalier/product/product.hpp"

namespace espalier::bench {

using Index = std::int32_t;
using Ids = Buffer<std::int64_t>;

/// What is compared of a product P.
struct Fingerprint {
  std::uint64_t nonzeros = 0, sum = 0, checksum = 0;
  void add(std::int64_t row, std::int64_t column, std::int64_t value) {
    ++nonzeros;
    sum += static_cast<std::uint64_t>(value);
    auto mixed = static_cast<std::uint64_t>(row) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(column);
    mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9u;
    checksum += (mixed ^ (mixed >> 32)) * static_cast<std::uint64_t>(value);
  }
  Fingerprint total(const Communicator& world) const {
    std::uint64_t sums[] = {nonzeros, sum, checksum};
    world.all_reduce(std::span<std::uint64_t>(sums), Reduction::kSum, "bench");
    return {sums[0], sums[1], sums[2]};
  }
  bool operator==(const Fingerprint&) const = default;
};

/// Q: this rank's rows, as stacked frontiers.
struct Problem {
  std::string sampler, label;
  Frontier q;
  bool one_row_per_batch = false;
  std::int64_t fanout = 0;
  std::int64_t first_row = 0, rows = 0;  // of P: the first of this rank, and of all ranks

  Problem(const Communicator& world, std::string sampler_, std::string label_, Frontier q_, bool per_batch,
          std::int64_t fanout_)
      : sampler(std::move(sampler_)),
        label(std::move(label_)),
        q(std::move(q_)),
        one_row_per_batch(per_batch),
        fanout(fanout_) {
    const auto counts = world.all_gather(per_batch ? q.batches() : q.rows(), "bench");
    first_row = std::accumulate(counts.begin(), counts.begin() + world.rank(), std::int64_t{0});
    rows = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  }
};

/// The first `most` entries of a row, or its length alone.
class TakeRow final : public RowOperation<Index> {
 public:
  explicit TakeRow(std::int64_t most) : most_(most) {}
  bool has_values() const override { return false; }
  void apply(const Cpu&, const RowView<Index>* rows, const RowKey*, std::int64_t count,
             Entries<Index>& out) const override {
    for (std::int64_t r = 0; r < count; ++r) {
      const auto& row = rows[r];
      if (most_ == kLengthOnly)
        out.ids.push_back(static_cast<Index>(row.size));
      else
        out.ids.insert(out.ids.end(), row.indices, row.indices + std::min(row.size, most_));
      out.end_row();
    }
  }
  static constexpr std::int64_t kLengthOnly = -1, kWhole = std::numeric_limits<std::int64_t>::max();

 private:
  std::int64_t most_;
};

/// Ours.
inline Fingerprint product(const Problem& problem, const DistCsr<Index>& a, Schedule schedule,
                           std::int64_t most) {
  const auto opened = open_product(Cpu{1}, problem.q, a, schedule, problem.label);
  Fingerprint mine;
  if (problem.one_row_per_batch) {
    opened->sum(Cpu{1}, EntryWeight{}, [&](std::int64_t batch, const SparseSum<Index>& sum) {
      for (std::size_t k = 0; k < sum.columns.size(); ++k)
        mine.add(problem.first_row + batch, sum.columns[k], static_cast<std::int64_t>(sum.sums[k]));
    });
    return mine;
  }
  const auto rows = opened->apply(Cpu{1}, TakeRow(most));
  for (std::int64_t q = 0; q < rows.rows(); ++q)
    for (auto k = rows.begin(q); k < rows.begin(q) + rows.size(q); ++k)
      mine.add(problem.first_row + q, rows.ids[k], 1);
  return mine;
}

/// Nothing that is printed meanwhile, by a library that talks, reaches the output.
class Silence {
 public:
  Silence() {
    std::fflush(stdout);
    kept_ = dup(STDOUT_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    close(nowhere);
  }
  ~Silence() {
    std::cout.flush();
    std::fflush(stdout);
    dup2(kept_, STDOUT_FILENO);
    close(kept_);
  }

 private:
  int kept_;
};

/// A zero or a one each, added up as integers.
struct CountPaths {
  static Index id() { return 0; }
  static bool returnedSAID() { return false; }
  static Index add(Index x, Index y) { return x + y; }
  static Index multiply(bool x, bool y) { return x && y; }
  static void axpy(bool a, bool x, Index& y) { y += multiply(a, x); }
};

/// P = Q A on CombBLAS's sqrt(p) x sqrt(p) grid.
class CombBlas {
 public:
  using Pattern = combblas::SpParMat<Index, bool, combblas::SpDCCols<Index, bool>>;
  using Counts = combblas::SpParMat<Index, Index, combblas::SpDCCols<Index, Index>>;
  using Entry = std::tuple<Index, Index, bool>;

  static int side_of(int ranks) {
    int side = 1;
    while (side * side < ranks) ++side;
    return side * side == ranks ? side : 0;
  }

  CombBlas(const Communicator& world, const GraphFile& file)
      : world_(world),
        side_(side_of(world.size())),
        grid_(std::make_shared<combblas::CommGrid>(world.native(), side_, side_)) {
    const auto n = file.info().nodes;
    const auto rows = range(n, world.rank() / side_), columns = range(n, world.rank() % side_);
    const auto block = file.read_rows<Index>(rows.first, rows.second);
    std::vector<Entry> entries;
    for (std::int64_t row = 0; row < block.rows; ++row)
      for (const auto column : block.row_indices(row))
        if (column >= columns.first && column < columns.second)
          entries.emplace_back(static_cast<Index>(row), static_cast<Index>(column - columns.first), true);
    a_ = distributed(entries, rows, columns);
    columns_ = columns;
  }

  /// Collective. Brings Q to where CombBLAS wants it; not measured.
  void take(const Problem& problem) {
    Ids rows;
    for (std::int64_t b = 0; b < problem.q.batches(); ++b)
      for (auto r = problem.q.begin(b); r < problem.q.offsets[b + 1]; ++r)
        rows.push_back(problem.first_row + (problem.one_row_per_batch ? b : r));
    const auto all_rows = world_.all_gather_v(std::span<const std::int64_t>(rows), "bench");
    const auto vertices = world_.all_gather_v(std::span<const std::int64_t>(problem.q.vertices), "bench");
    rows_ = range(problem.rows, world_.rank() / side_);
    std::vector<Entry> entries;
    for (std::size_t k = 0; k < vertices.size(); ++k)
      if (all_rows[k] >= rows_.first && all_rows[k] < rows_.second && vertices[k] >= columns_.first &&
          vertices[k] < columns_.second)
        entries.emplace_back(static_cast<Index>(all_rows[k] - rows_.first),
                             static_cast<Index>(vertices[k] - columns_.first), true);
    q_ = distributed(entries, rows_, columns_);
  }

  /// Collective.
  void multiply() {
    p_.reset();
    p_ = std::make_unique<Counts>(
        combblas::Mult_AnXBn_Synch<CountPaths, Index, combblas::SpDCCols<Index, Index>>(*q_, *a_));
  }

  Fingerprint fingerprint() const {
    Fingerprint mine;
    auto& block = p_->seq();
    if (block.getnnz() == 0) return mine;
    for (auto column = block.begcol(); column != block.endcol(); ++column)
      for (auto entry = block.begnz(column); entry != block.endnz(column); ++entry)
        mine.add(rows_.first + entry.rowid(), columns_.first + column.colid(), entry.value());
    return mine;
  }

 private:
  using Range = std::pair<std::int64_t, std::int64_t>;

  // CombBLAS's own cut: the last part takes the remainder.
  Range range(std::int64_t ids, int part) const {
    return {ids / side_ * part, part == side_ - 1 ? ids : ids / side_ * (part + 1)};
  }
  std::unique_ptr<Pattern> distributed(const std::vector<Entry>& entries, Range rows, Range columns) const {
    auto* owned = new Entry[entries.size()];  // the tuples take it over
    std::ranges::copy(entries, owned);
    const combblas::SpTuples<Index, bool> tuples(std::ssize(entries),
                                                 static_cast<Index>(rows.second - rows.first),
                                                 static_cast<Index>(columns.second - columns.first), owned);
    return std::make_unique<Pattern>(new combblas::SpDCCols<Index, bool>(tuples, false), grid_);
  }

  const Communicator& world_;
  int side_;
  std::shared_ptr<combblas::CommGrid> grid_;
  Range rows_, columns_;
  std::unique_ptr<Pattern> a_, q_;
  std::unique_ptr<Counts> p_;
};

}  // namespace espalier::bench
