// SpMM forward, Y = B X, and transposed, dX = B^T dY, against the rate of a plain copy.
//
// B [rows, columns] has the shape of the block next to a minibatch's inputs: 5 picks per row, uniform
// columns, twice as many sources as destinations. All rows of X together are 134 to 537 MB, several times a
// cache.
//
// Derivation: an entry reads one row of the source, 4 f bytes, and its own column id and value, 8 bytes; a
// row of the result is written once, 4 f bytes, and has an 8-byte offset:
//
//     bytes = entries (4 f + 8) + result rows (4 f + 8)
//
// The bound moves these bytes at the rate (read + written) of a memcpy measured beside. Two things push the
// ratio from 1: rows arrive in random order, 4 f bytes at a time, so it falls with f; a cache that still
// holds a row spares reading it again (each row of X is read 2.5 times, of dY 5 times), and writing Y without
// streaming stores reads it first, which is not counted.
//
// Verification: bit for bit against two plain loops; the transposed one scatters instead of gathering. Both
// add a sum's terms in the order of B's entries.
#include <memory>
#include <random>
#include <thread>

#include "espalier/dense/spmm.hpp"
#include "espalier/sparse/transpose.hpp"
#include "rates.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kRows = 1 << 18, kColumns = 1 << 19, kPicks = 5, kWidest = 256;

Block make_block() {
  Block block;
  block.rows = kRows;
  block.columns = kColumns;
  std::minstd_rand random(7);
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t k = 0; k < kPicks; ++k) {
      block.indices.push_back(std::uniform_int_distribution<std::int32_t>(0, kColumns - 1)(random));
      block.values.push_back(1.0f / static_cast<float>(kPicks + k));
    }
    block.indptr.push_back(block.entries());
  }
  return block;
}

/// One buffer serves every width f; views of it are matrices [rows, f].
struct Data {
  Block block = make_block(), transposed = transpose(block);
  Buffer<float> source = Buffer<float>(kColumns * kWidest), result = Buffer<float>(kColumns * kWidest),
                expected = Buffer<float>(kColumns * kWidest);
  Data() {
    std::minstd_rand random(8);
    for (float& x : source) x = static_cast<float>(random() & 0xffff) * 0x1p-15f - 1.0f;
  }
};

struct Case {
  Data& data;
  std::int64_t f;
  bool transposed;
  int threads;

  const Block& matrix() const { return transposed ? data.transposed : data.block; }
  ConstMatrixView<float> x() const { return {matrix().columns, f, data.source.data()}; }
  MatrixView<float> y() const { return {matrix().rows, f, data.result.data()}; }
  double bytes() const { return static_cast<double>((matrix().entries() + matrix().rows) * (4 * f + 8)); }
  void run() const { spmm<float>(Cpu{threads}, matrix(), x(), y()); }

  std::int64_t count_wrong() const {
    const auto size = static_cast<std::size_t>(matrix().rows * f);
    std::fill_n(data.expected.begin(), size, 0.0f);
    for (std::int64_t i = 0; i < data.block.rows; ++i)
      for (std::int64_t e = data.block.row_begin(i); e < data.block.row_end(i); ++e) {
        const auto column = static_cast<std::int64_t>(data.block.indices[static_cast<std::size_t>(e)]);
        float* to = data.expected.data() + (transposed ? column : i) * f;
        const float* from = x().row(transposed ? i : column);
        for (std::int64_t j = 0; j < f; ++j)
          to[j] += data.block.values[static_cast<std::size_t>(e)] * from[j];
      }
    std::fill_n(data.result.begin(), size, -7.0f);
    run();
    std::int64_t wrong = 0;
    for (std::size_t e = 0; e < size; ++e) wrong += !(data.result[e] == data.expected[e]);
    return wrong;
  }
};

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier::bench;
  Data data;
  std::vector<Comparison> comparisons;
  for (const int threads : {1, 2}) {
    if (threads > static_cast<int>(std::thread::hardware_concurrency())) continue;
    const auto copy = std::make_shared<CopyRate>(threads);
    for (const bool transposed : {false, true})
      for (const std::int64_t f : {64, 128, 256}) {
        const Case one{data, f, transposed, threads};
        comparisons.push_back({fmt::format("{} f={:<4} {} thr", transposed ? "B^T dY" : "B X   ", f, threads),
                               1e-9 * one.bytes(), [=] { return seconds_of([&] { one.run(); }); },
                               [=] { return (*copy)(); }, one.count_wrong()});
      }
  }
  return compare(argc, argv, "SpMM; bound: memcpy, bytes read + written", "GB/s", comparisons);
}
