// The products of the layer-wise samplers on one rank: the sum of a batch's rows, and its rows in
// some columns.
//
//     products_bench [--scale N]      a symmetrised R-MAT of 2^N vertices (rmat.hpp;
//                                     default 20), 8 batches
//
//     sum       row of P = Q A of one batch: the exact sum of the frontier's rows, squared entries
//               in fixed point (LADIES) or edges counted, sorted and without zeros
//               (sparse/sum_rows.hpp)
//     columns   A(F, C): the entries of the frontier's rows in 512 columns
//               (sparse/select_columns.hpp)
//
// Frontiers: `seeds`, 1024 random vertices, and `last`, what LADIES with 512,512,512 reaches in its
// last layer, with the hubs it has picked.
//
// Derivation: an entry is read once, 4 bytes of id and, where it counts, 4 of value; an entry of
// the sum is written once, 4 + 8 bytes. The bound moves these bytes at the rate of a memcpy. Far
// below 1 is expected of the sums: an entry has to find the place of its column. What that takes a
// plain loop is the second bound, Gustavson's: one dense array as wide as the graph, a list of the
// columns met, and their sort. Columns may pass the bound where a long row is searched.
//
// Verification: against Gustavson's loop and a marked array, every sum and every entry.
#include <omp.h>

#include "espalier/comm/session.hpp"
#include "espalier/product/product.hpp"
#include "espalier/sparse/select_columns.hpp"
#include "rates.hpp"
#include "rmat.hpp"

namespace espalier::bench {
namespace {

using Row = RowView<std::int32_t>;
constexpr std::int64_t kBatchSize = 1024, kBatches = 8, kPicks = 512;

struct Batch {
  std::vector<Row> rows;
  std::vector<std::int32_t> columns;  // picked, ascending
};

struct Frontiers {
  const char* name;
  std::int64_t width;  // of the matrix
  std::vector<Batch> batches;

  double entries() const {
    std::int64_t sum = 0;
    for (const auto& batch : batches)
      for (const auto& row : batch.rows) sum += row.size;
    return static_cast<double>(sum);
  }
};

/// sum_rows with the weight that the samplers give it.
void sum_batch(const Batch& batch, std::int64_t width, const EntryWeight& weight,
               SparseSum<std::int32_t>& out) {
  sum_rows(
      Cpu{1}, std::span<const Row>(batch.rows), width,
      [&](const Row& row, std::int64_t k) { return weight(weight.squared ? row.values + k : nullptr); }, out,
      weight.equal_in_rows);
}

/// The same by Gustavson's loop; `dense` holds a 0 for every column, before and after.
void sum_plainly(const Batch& batch, const EntryWeight& weight, std::vector<std::uint64_t>& dense,
                 SparseSum<std::int32_t>& out) {
  out.clear();
  for (const auto& row : batch.rows)
    for (std::int64_t k = 0; k < row.size; ++k) {
      const auto w = weight(weight.squared ? row.values + k : nullptr);
      auto& sum = dense[static_cast<std::size_t>(row.indices[k])];
      if (sum == 0 && w > 0) out.columns.push_back(row.indices[k]);
      sum += w;
    }
  std::sort(out.columns.begin(), out.columns.end());
  for (const auto column : out.columns)
    out.sums.push_back(std::exchange(dense[static_cast<std::size_t>(column)], 0));
}

void sum_all(int threads, const Frontiers& frontiers, const EntryWeight& weight,
             std::vector<SparseSum<std::int32_t>>& sums) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (std::size_t b = 0; b < sums.size(); ++b)
    sum_batch(frontiers.batches[b], frontiers.width, weight, sums[b]);
}

void sum_all_plainly(int threads, const Frontiers& frontiers, const EntryWeight& weight,
                     std::vector<std::vector<std::uint64_t>>& dense,
                     std::vector<SparseSum<std::int32_t>>& sums) {
#pragma omp parallel num_threads(threads)
  {
    auto& mine = dense[static_cast<std::size_t>(omp_get_thread_num())];
#pragma omp for schedule(dynamic, 1)
    for (std::size_t b = 0; b < sums.size(); ++b) sum_plainly(frontiers.batches[b], weight, mine, sums[b]);
  }
}

std::int64_t count_wrong(const std::vector<SparseSum<std::int32_t>>& sums,
                         const std::vector<SparseSum<std::int32_t>>& expected) {
  std::int64_t wrong = 0;
  for (std::size_t b = 0; b < sums.size(); ++b) {
    if (sums[b].columns != expected[b].columns)
      wrong += std::ssize(expected[b].columns) + 1;
    else
      for (std::size_t k = 0; k < sums[b].sums.size(); ++k) wrong += sums[b].sums[k] != expected[b].sums[k];
  }
  return wrong;
}

/// Places in the list of picks, row by row.
using Places = std::vector<Buffer<std::int32_t>>;

void select_all(int threads, const Frontiers& frontiers, Places& places) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (std::size_t b = 0; b < places.size(); ++b) {
    const auto& batch = frontiers.batches[b];
    places[b].clear();
    ColumnSelection<std::int32_t> chosen;
    chosen.choose(batch.columns);
    Buffer<std::int64_t> entries;
    for (const auto& row : batch.rows) {
      entries.clear();
      chosen.meet(row, places[b], entries);
    }
  }
}

std::int64_t count_wrong(const Frontiers& frontiers, const Places& places) {
  std::int64_t wrong = 0;
  std::vector<std::int32_t> place(static_cast<std::size_t>(frontiers.width), -1);
  for (std::size_t b = 0; b < places.size(); ++b) {
    const auto& batch = frontiers.batches[b];
    for (std::size_t c = 0; c < batch.columns.size(); ++c)
      place[static_cast<std::size_t>(batch.columns[c])] = static_cast<std::int32_t>(c);
    std::size_t at = 0;
    for (const auto& row : batch.rows)
      for (const auto column : row.columns())
        if (const auto c = place[static_cast<std::size_t>(column)]; c >= 0) {
          wrong += at >= places[b].size() || places[b][at] != c;
          ++at;
        }
    wrong += at != places[b].size();
    for (const auto column : batch.columns) place[static_cast<std::size_t>(column)] = -1;
  }
  return wrong;
}

/// The rows of each minibatch that draw for its layer `layer`, and what the layer picked
/// beyond them.
Frontiers frontiers_of(const char* name, const Csr<std::int32_t>& m,
                       const std::vector<Minibatch>& minibatches, std::size_t layer) {
  Frontiers all{name, m.columns, {}};
  for (const auto& minibatch : minibatches) {
    auto& batch = all.batches.emplace_back();
    const auto& block = minibatch.blocks[layer - 1];
    for (std::int64_t k = 0; k < block.columns; ++k) {
      const auto vertex = minibatch.vertices[static_cast<std::size_t>(k)];
      if (k < block.rows)
        batch.rows.push_back(row_view(m, vertex));
      else
        batch.columns.push_back(static_cast<std::int32_t>(vertex));
    }
  }
  return all;
}

void add_sums(std::vector<Comparison>& comparisons, const std::shared_ptr<Frontiers>& frontiers,
              const EntryWeight& weight) {
  const auto sums = std::make_shared<std::vector<SparseSum<std::int32_t>>>(frontiers->batches.size());
  const auto expected = std::make_shared<std::vector<SparseSum<std::int32_t>>>(frontiers->batches.size());
  const auto dense = std::make_shared<std::vector<std::vector<std::uint64_t>>>(
      thread_counts().size(), std::vector<std::uint64_t>(static_cast<std::size_t>(frontiers->width), 0));
  for (const int threads : thread_counts()) {
    sum_all_plainly(threads, *frontiers, weight, *dense, *expected);
    sum_all(threads, *frontiers, weight, *sums);
    double bytes = frontiers->entries() * (weight.squared ? 8 : 4);
    for (const auto& sum : *sums) bytes += 12 * static_cast<double>(sum.columns.size());
    const double gigabytes = 1e-9 * bytes;
    const auto wrong = count_wrong(*sums, *expected);
    const auto name = fmt::format("sum {} {}", weight.squared ? "squares" : "edges  ", frontiers->name);
    const auto ours = [=] { return seconds_of([&] { sum_all(threads, *frontiers, weight, *sums); }); };
    comparisons.push_back({fmt::format("{} / copy {} thr", name, threads), gigabytes, ours,
                           [=] { return copy_rate(threads); }, wrong, threads});
    if (threads > 1) continue;
    comparisons.push_back({fmt::format("{} / Gustavson {} thr", name, threads), gigabytes, ours,
                           [=] {
                             return gigabytes / seconds_of([&] {
                                      sum_all_plainly(threads, *frontiers, weight, *dense, *expected);
                                    });
                           },
                           wrong, threads});
  }
}

void add_columns(std::vector<Comparison>& comparisons, const std::shared_ptr<Frontiers>& frontiers) {
  const auto places = std::make_shared<Places>(frontiers->batches.size());
  for (const int threads : thread_counts()) {
    select_all(threads, *frontiers, *places);
    comparisons.push_back({fmt::format("columns {} / copy {} thr", frontiers->name, threads),
                           1e-9 * 4 * frontiers->entries(),
                           [=] { return seconds_of([&] { select_all(threads, *frontiers, *places); }); },
                           [=] { return copy_rate(threads); }, count_wrong(*frontiers, *places), threads});
  }
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto scale = take_scale(argc, argv, 20);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto m = normalize_rows(distribute(grid, make_rmat(scale), Topology::kReplicated), false, false);
  const FirstBatches batches(m.local, kBatchSize, kBatches);
  const auto sampler = make_sampler("ladies", m, {.fanout = {kPicks, kPicks, kPicks}});
  const auto minibatches = sampler->sample(Cpu{1}, batches.all(), kSeed, 1);

  std::vector<Comparison> comparisons;
  std::string sizes;
  const EntryWeight squares = {.squared = true, .shift = shift_for_sum(1, m.local.entries())};
  for (const std::size_t layer : {3, 1}) {
    const auto frontiers = std::make_shared<Frontiers>(
        frontiers_of(layer == 3 ? "seeds" : "last ", m.local, minibatches, layer));
    sizes += fmt::format("{}{}: {:.1f} M entries", layer == 3 ? "" : ", ", frontiers->name,
                         1e-6 * frontiers->entries());
    add_sums(comparisons, frontiers, squares);
    if (layer == 1) add_sums(comparisons, frontiers, EntryWeight{});
    add_columns(comparisons, frontiers);
  }
  const auto title =
      fmt::format("Sums and columns of rows, R-MAT scale {}, {} batches ({}); bound: memcpy, or a plain loop",
                  scale, kBatches, sizes);
  return compare(argc, argv, title, "GB/s", comparisons);
}
