// SpMM forward, Y = B X, and transposed, dX = B^T dY, against the rate of a plain copy.
//
//     spmm_bench [--scale N]      scale of the R-MAT that the step's blocks are sampled from
//                                 (default 18)
//
// Blocks B [rows, columns]:
//     random    has the shape of the block next to a minibatch's inputs, 5 picks per row, uniform
//               columns, twice as many sources as destinations; all rows of X together are 134 to
//               537 MB, several times a cache
//     layer 1   and 2 of a training step: GraphSAGE 15,10,5, 1024 seeds, on a symmetrised R-MAT
//               (rmat.hpp), whose hubs are drawn again and again; with 128 input features and
//               256 hidden ones
//
// Derivation: an entry reads one row of the source, 4 f bytes, and its own column id and value, 8
// bytes; a row of the result is written once, 4 f bytes, and has an 8-byte offset:
//
//     bytes = entries (4 f + 8) + result rows (4 f + 8)
//
// The bound moves these bytes at the rate (read + written) of a memcpy measured beside. Two
// things push the ratio from 1: rows arrive in random order, 4 f bytes at a time, so it falls
// with f; a cache that still holds a row spares reading it again, and writing Y without streaming
// stores reads it first, which is not counted. A cache as large as X would read every row that is
// named once:
//
//     fewest bytes = entries 8 + distinct columns 4 f + result rows (4 f + 8)
//
// The lines above the table say which share of `bytes` these are: ratio * share is what such a
// cache would give.
//
// Verification: bit for bit against two plain loops; the transposed one scatters instead of
// gathering. Both add a sum's terms in the order of B's entries.
#include <memory>
#include <random>

#include "espalier/comm/session.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/sparse/transpose.hpp"
#include "rates.hpp"
#include "rmat.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kRows = 1 << 18, kColumns = 1 << 19, kPicks = 5, kWidest = 256;

Block make_random_block() {
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

struct NamedBlock {
  std::string name;
  Block block, transposed;
  std::vector<std::int64_t> widths;

  NamedBlock(std::string name_, Block block_, std::vector<std::int64_t> widths_)
      : name(std::move(name_)),
        block(std::move(block_)),
        transposed(transpose(block)),
        widths(std::move(widths_)) {}
};

/// One buffer serves every block and width f; views of it are matrices [rows, f].
struct Data {
  Buffer<float> source, result, expected;
  explicit Data(std::size_t size) : source(size), result(size), expected(size) {
    std::minstd_rand random(8);
    for (float& x : source) x = static_cast<float>(random() & 0xffff) * 0x1p-15f - 1.0f;
  }
};

struct Case {
  Data& data;
  const NamedBlock& of;
  std::int64_t f;
  bool transposed;
  int threads;

  const Block& matrix() const { return transposed ? of.transposed : of.block; }
  ConstMatrixView<float> x() const { return {matrix().columns, f, data.source.data()}; }
  MatrixView<float> y() const { return {matrix().rows, f, data.result.data()}; }
  double bytes() const { return static_cast<double>((matrix().entries() + matrix().rows) * (4 * f + 8)); }
  double fewest_bytes() const {
    const Block& other = transposed ? of.block : of.transposed;
    std::int64_t distinct = 0;
    for (std::int64_t j = 0; j < other.rows; ++j) distinct += other.row_size(j) > 0;
    return static_cast<double>(matrix().entries() * 8 + distinct * 4 * f + matrix().rows * (4 * f + 8));
  }
  void run() const { spmm<float>(Cpu{threads}, matrix(), x(), y()); }

  std::int64_t count_wrong() const {
    const auto size = static_cast<std::size_t>(matrix().rows * f);
    std::fill_n(data.expected.begin(), size, 0.0f);
    for (std::int64_t i = 0; i < of.block.rows; ++i)
      for (std::int64_t e = of.block.row_begin(i); e < of.block.row_end(i); ++e) {
        const auto column = static_cast<std::int64_t>(of.block.indices[static_cast<std::size_t>(e)]);
        float* to = data.expected.data() + (transposed ? column : i) * f;
        const float* from = x().row(transposed ? i : column);
        for (std::int64_t j = 0; j < f; ++j) to[j] += of.block.values[static_cast<std::size_t>(e)] * from[j];
      }
    std::fill_n(data.result.begin(), size, -7.0f);
    run();
    std::int64_t wrong = 0;
    for (std::size_t e = 0; e < size; ++e) wrong += !(data.result[e] == data.expected[e]);
    return wrong;
  }
};

std::vector<NamedBlock> make_blocks(std::int64_t scale, const Grid& grid) {
  std::vector<NamedBlock> blocks;
  blocks.emplace_back("random ", make_random_block(), std::vector<std::int64_t>{64, 128, 256});
  const auto step = sample_step(make_rmat(scale), grid);
  for (const std::size_t layer : {1, 2})
    blocks.emplace_back(fmt::format("layer {}", layer), copy_of(step.blocks[layer - 1]),
                        std::vector<std::int64_t>{layer == 1 ? 128 : 256});
  return blocks;
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto scale = take_scale(argc, argv, 18);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto blocks = make_blocks(scale, grid);
  Data data(static_cast<std::size_t>(kColumns * kWidest));
  std::vector<Comparison> comparisons;
  std::string shapes;
  for (const auto& block : blocks) {
    for (const bool transposed : {false, true})
      for (const auto f : block.widths) {
        for (const int threads : thread_counts()) {
          const Case one{data, block, f, transposed, threads};
          comparisons.push_back(
              {fmt::format("{} {} f={:<3} {} thr", block.name, transposed ? "B^T dY" : "B X   ", f, threads),
               1e-9 * one.bytes(), [=] { return seconds_of([&] { one.run(); }); },
               [=] { return copy_rate(threads); }, one.count_wrong(), threads});
        }
      }
    const auto f = block.widths.back();
    const Case forward{data, block, f, false, 1}, backward{data, block, f, true, 1};
    shapes +=
        fmt::format("\n# {}: [{}, {}], {} entries; fewest bytes / bytes at f={}: {:.2f}, transposed {:.2f}",
                    block.name, block.block.rows, block.block.columns, block.block.entries(), f,
                    forward.fewest_bytes() / forward.bytes(), backward.fewest_bytes() / backward.bytes());
  }
  return compare(argc, argv, "SpMM; bound: memcpy, bytes read + written" + shapes, "GB/s", comparisons);
}
