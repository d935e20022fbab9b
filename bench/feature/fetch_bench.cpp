// The fetch of a minibatch's input rows against the copies that it cannot spare. Runs on any number
// of ranks.
//
// H [n, f] lies spread over the ranks by block rows (c = 1); every rank asks for kFetched distinct
// random rows, 1/p of them its own.
//
// Derivation: a fetch delivers kFetched f values of 4 bytes (float) or 2 (Half) to every rank. The
// rows that another rank wants lie scattered among the owner's: they are copied into a message,
// once; an all_to_all_v moves the message, without the rank's own piece; and each row that arrived,
// or is the rank's own, is copied to its place in the list, as float32. The bound does these three
// for as many bytes, and nothing else: memcpy of the bytes that others want, the exchange, memcpy
// of all bytes that are delivered (of Half as read, half of what is written). It knows no row: the
// fetch copies them one by one, from random places, and groups and sends 4 bytes of id for each.
// Rate and bound both count delivered bytes, summed over ranks, per second of the slowest rank.
//
// None of the copies can go. Rows are gathered from where they are stored straight into the
// message. To receive straight into place a list would have to be in the owners' order: F[0] is,
// hop by hop, but its seeds are not, so an owner's piece falls into several runs, for which MPI
// unpacks what arrived, a copy again. Ranks of a node that share memory read rows where they lie
// (graph.features_on = "node"), with one copy.
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
    // The plain exchange: what I ask of rank r, and what r asks of me; of myself nothing.
    receive_counts_.assign(static_cast<std::size_t>(grid.rows()), 0);
    for (const auto id : ids_) receive_counts_[static_cast<std::size_t>(partition_.owner(id))] += f;
    receive_counts_[static_cast<std::size_t>(grid.row())] = 0;
    send_counts_ = grid.column_comm().exchange_counts(receive_counts_, "bench");
    const auto sent = std::accumulate(send_counts_.begin(), send_counts_.end(), std::int64_t{0});
    send_.assign(static_cast<std::size_t>(sent), T{});
    plain_.assign(static_cast<std::size_t>(kFetched * f), T{});
    placed_.assign(static_cast<std::size_t>(kFetched * f), T{});
  }

  double bytes() const {
    return static_cast<double>(grid_.ranks() * kFetched * store_.width()) * static_cast<double>(sizeof(T));
  }
  double fetch_seconds() {
    return slowest([&] { fetch(); });
  }
  double copies_seconds() {
    return slowest([&] {
      std::ranges::copy(std::span(plain_).first(send_.size()), send_.begin());
      grid_.column_comm().all_to_all_v(std::span<const T>(send_), send_counts_, receive_counts_, received_,
                                       "bench");
      std::ranges::copy(plain_, placed_.begin());
      benchmark::DoNotOptimize(placed_.data());
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
  Buffer<T> send_, received_, plain_, placed_;
};

template <class T>
void add(std::vector<Comparison>& comparisons, const Grid& grid, std::int64_t f) {
  const auto one = std::make_shared<Fetch<T>>(grid, f);
  const double gigabytes = 1e-9 * one->bytes();
  comparisons.push_back(
      {fmt::format("{} f={:<4} {} ranks", sizeof(T) == 4 ? "float" : "half ", f, grid.ranks()), gigabytes,
       [=] { return one->fetch_seconds(); }, [=] { return gigabytes / one->copies_seconds(); },
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
  const auto title = fmt::format(
      "Feature fetch, {} rows per rank; bound: copies and all_to_all_v of the same bytes", kFetched);
  return compare(argc, argv, title, "GB/s", comparisons, grid.world().rank() == 0);
}
