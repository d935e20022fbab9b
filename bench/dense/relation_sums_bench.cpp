// Relation sums, forward and their two gradients, against the sparse product of the same block.
//
// The block has the shape of a layer of a typed minibatch: rows of 1 to 6 relations of 22, 1 to 5
// picks of each, columns uniform; X [columns, 128] is 67 MB, larger than a cache; 8 bases, and
// 1.
//
// Derivation: the product of block and X gathers one row of X for each entry, which every one of
// these operations must do too (the gradient by X gathers rows of what dM gives to the sums, with
// one base of dM). So its rate, entries per second, is the bound. What keeps the ratio from 1, with
// s sums s_vr: forward combines each with B coefficients, 2 s B f flop, and writes B rows of M
// where the product writes one; the gradients read as many of dM and do the same flop; the gradient
// by X also writes s rows of f before they are gathered.
//
// Verification: against plain loops in double, within what float32 rounds.
#include <random>

#include "espalier/comm/session.hpp"
#include "espalier/dense/relation_sums.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/sparse/transpose.hpp"
#include "rates.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kRows = 1 << 15, kColumns = 1 << 17, kRelations = 22, kWidth = 128;

struct RelatedBlock {
  Block block, transposed;
  Buffer<std::uint8_t> relations;
  Buffer<std::int32_t> positions;

  RelatedBlock() {
    std::minstd_rand random(7);
    const auto below = [&](int end) { return std::uniform_int_distribution<int>(0, end - 1)(random); };
    block.rows = kRows;
    block.columns = kColumns;
    for (std::int64_t v = 0; v < kRows; ++v) {
      const int most = 1 + below(6);
      for (int k = 0, relation = below(4); k < most; ++k, relation += 1 + below(3))
        for (int left = 1 + below(5); left > 0; --left) {
          block.indices.push_back(below(kColumns));
          block.values.push_back(0.25f);
          relations.push_back(static_cast<std::uint8_t>(relation));
        }
      block.indptr.push_back(block.entries());
    }
    transpose(Cpu{1}, block, transposed, &positions);
  }
  BlockView<> view() const {
    BlockView<> view = block;
    view.relations = Beside<const std::uint8_t>(relations);
    return view;
  }
};

/// The block, and room for all that is multiplied with it and comes out.
struct Case {
  const RelatedBlock& of;
  std::int64_t bases;
  Matrix<float> a, x, dm, m, dx, da, product, gradients;
  Buffer<std::int32_t> numbers;
  Block transposed;  ///< a copy: its indices are replaced

  Case(const RelatedBlock& of_, std::int64_t bases_)
      : of(of_),
        bases(bases_),
        a(kRelations, bases),
        x(kColumns, kWidth),
        dm(kRows, bases * kWidth),
        m(kRows, bases * kWidth),
        dx(kColumns, kWidth),
        da(kRelations, bases),
        product(kRows, kWidth),
        transposed(of.transposed) {
    std::minstd_rand random(8);
    for (auto* matrix : {&a, &x, &dm})
      for (float& number : matrix->data) number = static_cast<float>(random() & 0xffff) * 0x1p-15f - 1.0f;
  }
  void sums(int threads) { relation_sums<float>(Cpu{threads}, of.view(), a, x, m); }
  void by_input(int threads) {
    std::ranges::copy(of.transposed.indices, transposed.indices.begin());
    relation_sums_input_gradient<float>(Cpu{threads}, of.view(), transposed, of.positions, a, dm,
                                        {gradients, numbers}, dx);
  }
  void by_coefficients(int threads) {
    relation_sums_coefficient_gradient<float>(Cpu{threads}, of.view(), x, dm, da);
  }
  void multiply(int threads) { spmm<float>(Cpu{threads}, of.block, x, product); }
  void multiply_transposed(int threads) {
    spmm<float>(Cpu{threads}, of.transposed, ConstMatrixView<float>(dm.rows, kWidth, dm.data.data()), dx);
  }
};

/// `exact` and the sum of its terms' sizes: how many elements are further off than
/// rounding explains.
struct Loops {
  Buffer<double> exact, sizes;

  explicit Loops(std::size_t size) : exact(size, 0.0), sizes(size, 0.0) {}
  void add(std::int64_t at, double term) {
    exact[at] += term;
    sizes[at] += std::abs(term);
  }
  std::int64_t wrong(const Matrix<float>& result, double terms) const {
    std::int64_t wrong = 0;
    for (std::size_t e = 0; e < exact.size(); ++e)
      wrong += !(std::abs(result.data[e] - exact[e]) <= terms * 0x1p-24 * sizes[e]);
    return wrong;
  }
};

/// Of the three operations.
std::array<std::int64_t, 3> count_wrong(Case& c) {
  c.sums(2), c.by_input(2), c.by_coefficients(2);
  Loops m(c.m.data.size()), dx(c.dx.data.size()), da(c.da.data.size());
  for (std::int64_t v = 0; v < kRows; ++v)
    for (auto e = c.of.block.row_begin(v); e < c.of.block.row_end(v); ++e) {
      const auto u = c.of.block.indices[e], relation = std::int32_t{c.of.relations[e]};
      const double value = c.of.block.values[e];
      for (std::int64_t b = 0; b < c.bases; ++b)
        for (std::int64_t k = 0; k < kWidth; ++k) {
          const auto at = (v * c.bases + b) * kWidth + k;
          m.add(at, value * c.a(relation, b) * c.x(u, k));
          dx.add(u * kWidth + k, value * c.a(relation, b) * c.dm.data[at]);
          da.add(relation * c.bases + b, value * c.x(u, k) * c.dm.data[at]);
        }
    }
  return {m.wrong(c.m, 64), dx.wrong(c.dx, 512), da.wrong(c.da, 4096)};
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const Session session(&argc, &argv);
  const RelatedBlock block;
  std::vector<std::unique_ptr<Case>> cases;
  std::vector<Comparison> comparisons;
  for (const std::int64_t bases : {1, 8}) {
    auto& one = *cases.emplace_back(std::make_unique<Case>(block, bases));
    const auto wrong = count_wrong(one);
    const double entries = 1e-9 * static_cast<double>(block.block.entries());
    const auto add = [&](const char* name, std::int64_t errors, auto operation, auto bound) {
      for (const int threads : thread_counts())
        comparisons.push_back({fmt::format("{:<17} B={} {} thr", name, bases, threads), entries,
                               [=] { return seconds_of([=] { operation(threads); }); },
                               [=] { return entries / seconds_of([=] { bound(threads); }); }, errors,
                               threads});
    };
    const auto product = [&one](int threads) { one.multiply(threads); };
    const auto transposed = [&one](int threads) { one.multiply_transposed(threads); };
    add(
        "forward", wrong[0], [&one](int threads) { one.sums(threads); }, product);
    add(
        "gradient by X", wrong[1], [&one](int threads) { one.by_input(threads); }, transposed);
    add(
        "gradient by a", wrong[2], [&one](int threads) { one.by_coefficients(threads); }, product);
  }
  return compare(argc, argv,
                 fmt::format("relation sums; bound: SpMM of the block, or of its transpose\n# [{}, {}], {} "
                             "entries, f {}",
                             kRows, kColumns, block.block.entries(), kWidth),
                 "Gentry/s", comparisons);
}
