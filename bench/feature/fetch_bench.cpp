// ranks: 2
// The fetch of a minibatch's input rows against a plain all-to-all-v. Runs on any number of ranks.
//
// H [n, f] lies spread over the ranks by block rows (c = 1); every rank asks for kFetched distinct
// random rows, 1/p of them its own.
//
// Derivation: a fetch delivers kFetched f values of 4 bytes (float) or 2 (Half) to every rank. A
// plain all_to_all_v that delivers the same number of values from and to the same ranks, its own
// piece included, is what cannot be spared. The fetch also sends 4 bytes of id per row, gathers
// rows into the message, and copies them from the message to their places: two more passes over
// the bytes. Rate and bound both count delivered bytes, summed over ranks, per second of the
// slowest rank.
//
// Verification: every element of every fetched row, on every rank.
#include "espalier/comm/session.hpp"
#include "espalier/feature/row_store.hpp"
#include "espalier/graph/generate.hpp"
#include "rates.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kVertices = 1 << 18, kFetched = 1 << 16;

/// A multiple of 1/8 below 256, exact as Half too.
float feature(std::int64_t vertex, std::int64_t j) {
  return static_cast<float>((vertex * 31 + j * 7) % 2048) / 8.0f;
}
void put(float& to, float value) {
  to = value;
}
void put(Half& to, float value) {
  to = to_half(value);
}

template <class T>
class Fetch {
 public:
  Fetch(const Grid& grid, std::int64_t f)
      : grid_(grid), partition_(block_partition(kVertices, grid.rows())), store_(grid, partition_, block(f)) {
    const Scramble scramble(kVertices, {.seed = 7, .row = static_cast<std::uint64_t>(grid.row())});
    for (std::int64_t k = 0; k < kFetched; ++k) ids_.push_back(scramble(k));
    // The plain exchange: what I ask of rank r, and what r asks of me.
    receive_counts_.assign(static_cast<std::size_t>(grid.rows()), 0);
    for (const auto id : ids_) receive_counts_[static_cast<std::size_t>(partition_.owner(id))] += f;
    send_counts_ = grid.column_comm().exchange_counts(receive_counts_, "bench");
    send_.assign(
        static_cast<std::size_t>(std::accumulate(send_counts_.begin(), send_counts_.end(), std::int64_t{0})),
        T{});
  }

  double bytes() const {
    return static_cast<double>(grid_.ranks() * kFetched * store_.width()) * static_cast<double>(sizeof(T));
  }
  double fetch_seconds() {
    return slowest([&] { fetch(); });
  }
  double exchange_seconds() {
    return slowest([&] {
      grid_.column_comm().all_to_all_v(std::span<const T>(send_), send_counts_, receive_counts_, received_,
                                       "bench");
    });
  }
  std::int64_t count_wrong() {
    fetch();
    std::int64_t wrong = 0;
    for (std::int64_t k = 0; k < kFetched; ++k)
      for (std::int64_t j = 0; j < store_.width(); ++j)
        wrong += !(rows_[0](k, j) == feature(ids_[static_cast<std::size_t>(k)], j));
    return grid_.world().all_reduce(wrong, Reduction::kSum, "bench");
  }

 private:
  Matrix<T> block(std::int64_t f) const {
    Matrix<T> local(partition_.size(grid_.row()), f);
    for (std::int64_t i = 0; i < local.rows; ++i)
      for (std::int64_t j = 0; j < f; ++j) put(local(i, j), feature(partition_.begin(grid_.row()) + i, j));
    return local;
  }
  void fetch() {
    const std::span<const std::int64_t> list(ids_);
    store_.fetch(Cpu{1}, {&list, 1}, rows_, "bench");
  }
  template <class Work>
  double slowest(const Work& work) const {
    grid_.world().barrier();
    return grid_.world().all_reduce(seconds_of(work), Reduction::kMax, "bench");
  }

  const Grid& grid_;
  RowPartition partition_;
  RowStore store_;
  std::vector<std::int64_t> ids_, send_counts_, receive_counts_;
  std::vector<Matrix<float>> rows_;
  Buffer<T> send_, received_;
};

template <class T>
void add(std::vector<Comparison>& comparisons, const Grid& grid, std::int64_t f) {
  const auto one = std::make_shared<Fetch<T>>(grid, f);
  const double gigabytes = 1e-9 * one->bytes();
  comparisons.push_back(
      {fmt::format("{} f={:<4} {} ranks", sizeof(T) == 4 ? "float" : "half ", f, grid.ranks()), gigabytes,
       [=] { return one->fetch_seconds(); }, [=] { return gigabytes / one->exchange_seconds(); },
       one->count_wrong(), grid.ranks()});
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  std::vector<Comparison> comparisons;
  add<float>(comparisons, grid, 100);
  add<float>(comparisons, grid, 256);
  add<Half>(comparisons, grid, 256);
  const auto title =
      fmt::format("Feature fetch, {} rows per rank; bound: all_to_all_v of the same bytes", kFetched);
  return compare(argc, argv, title, "GB/s", comparisons, grid.world().rank() == 0);
}
