// ranks: 2
// The push of gradient rows to their owners against a plain all-to-all-v. Runs on any number of
// ranks.
//
// H [n, f] lies spread over the ranks by block rows (c = 1); every rank has kBatches minibatches of
// kRows random rows each, 1/p of them its own, which are added at their owners in the order of
// minibatches.
//
// Derivation: a push delivers kBatches kRows f floats to every rank. A plain all_to_all_v that
// delivers as many values from and to the same ranks, its own piece included, is what cannot be
// spared. A push also puts the lists one after another, packs rows by owner, sends 12 bytes beside
// each row, sorts rows by (id, minibatch), and reads and writes a row of H for each: four more
// passes over the bytes, two of them at random. Rate and bound both count delivered bytes, summed
// over ranks, per second of the slowest rank.
//
// Verification: every element of H after one push, on every rank.
#include "espalier/comm/session.hpp"
#include "espalier/feature/row_store.hpp"
#include "espalier/graph/scramble.hpp"
#include "rates.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kVertices = 1 << 18, kBatches = 4, kRows = 1 << 14;

// Ids of a rank, minibatch after minibatch.
std::vector<std::int64_t> ids_of(int rank) {
  const Scramble scramble(kVertices, {.seed = 8, .row = static_cast<std::uint64_t>(rank)});
  std::vector<std::int64_t> ids;
  for (std::int64_t k = 0; k < kBatches * kRows; ++k) ids.push_back(scramble(k));
  return ids;
}

class PushedGradients {
 public:
  PushedGradients(const Grid& grid, std::int64_t f)
      : grid_(grid),
        partition_(block_partition(kVertices, grid.rows())),
        store_(grid, partition_, zeros(partition_.size(grid.row()), f)),
        ids_(ids_of(grid.row())) {
    for (std::int64_t m = 0; m < kBatches; ++m) {
      lists_.push_back(std::span<const std::int64_t>(ids_).subspan(static_cast<std::size_t>(m * kRows),
                                                                   static_cast<std::size_t>(kRows)));
      batches_.push_back(m * grid.rows() + grid.row());
      rows_.emplace_back(kRows, f);
      std::ranges::fill(rows_.back().data, 1.0f);
    }
    send_counts_.assign(static_cast<std::size_t>(grid.rows()), 0);
    for (const auto id : ids_) send_counts_[static_cast<std::size_t>(partition_.owner(id))] += f;
    receive_counts_ = grid.column_comm().exchange_counts(send_counts_, "bench");
    send_.assign(static_cast<std::size_t>(kBatches * kRows * f), 0.0f);
  }

  double bytes() const {
    return static_cast<double>(grid_.ranks() * kBatches * kRows * store_.width()) * sizeof(float);
  }
  double push_seconds() {
    return slowest([&] { push(); });
  }
  double exchange_seconds() {
    return slowest([&] {
      grid_.column_comm().all_to_all_v(std::span<const float>(send_), send_counts_, receive_counts_,
                                       received_, "bench");
    });
  }
  std::int64_t count_wrong() {
    push();
    std::vector<float> expected(static_cast<std::size_t>(partition_.size(grid_.row())), 0.0f);
    for (int rank = 0; rank < grid_.rows(); ++rank)
      for (const auto id : ids_of(rank))
        if (partition_.owner(id) == grid_.row())
          ++expected[static_cast<std::size_t>(id - partition_.begin(grid_.row()))];
    const auto& own = std::get<Matrix<float>>(store_.block());
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < own.rows; ++i)
      for (std::int64_t j = 0; j < own.columns; ++j)
        wrong += !(own(i, j) == expected[static_cast<std::size_t>(i)]);
    return grid_.world().all_reduce(wrong, Reduction::kSum, "bench");
  }

 private:
  static Matrix<float> zeros(std::int64_t rows, std::int64_t f) {
    Matrix<float> matrix(rows, f);
    std::ranges::fill(matrix.data, 0.0f);
    return matrix;
  }
  void push() { store_.push(Cpu{1}, lists_, batches_, rows_, Push::kAdd, "bench"); }
  template <class Work>
  double slowest(const Work& work) const {
    grid_.world().barrier();
    return grid_.world().all_reduce(seconds_of(work), Reduction::kMax, "bench");
  }

  const Grid& grid_;
  RowPartition partition_;
  RowStore store_;
  std::vector<std::int64_t> ids_, batches_, send_counts_, receive_counts_;
  std::vector<std::span<const std::int64_t>> lists_;
  std::vector<Matrix<float>> rows_;
  Buffer<float> send_, received_;
};

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  std::vector<Comparison> comparisons;
  for (const std::int64_t f : {64, 256}) {
    const auto one = std::make_shared<PushedGradients>(grid, f);
    const double gigabytes = 1e-9 * one->bytes();
    comparisons.push_back(
        {fmt::format("add f={:<4} {} ranks", f, grid.ranks()), gigabytes, [=] { return one->push_seconds(); },
         [=] { return gigabytes / one->exchange_seconds(); }, one->count_wrong(), grid.ranks()});
  }
  const auto title = fmt::format("Push, {} minibatches of {} rows per rank; bound: all_to_all_v of the rows",
                                 kBatches, kRows);
  return compare(argc, argv, title, "GB/s", comparisons, grid.world().rank() == 0);
}
