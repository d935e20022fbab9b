// Attention over the entries of a block (nn/edge_softmax.hpp) and the largest of gathered rows
// (dense/gather_max.hpp), forward and backward, against the rates of a copy and of exp.
//
//     attention_bench [--scale N]      scale of the R-MAT that the step's blocks are sampled from
//                                      (default 16)
//
// Blocks: layers 1 and 2 of a training step, GraphSAGE 15,10,5, 1024 seeds, on a symmetrised R-MAT
// (rmat.hpp) with about as many vertices as Debian has packages. Heads x width: 4 x 64 and 8 x 8; f
// is their product.
//
// Derivation: an edge is an entry or a row's own vertex, `heads` numbers each. With a column id of
// 4 bytes, an offset of 8, a position of 8:
//
//     edge_softmax            edges 8 heads + entries 4 + rows (4 heads + 8); edges heads exp
//     attend                  edges (4 f + 4 heads) + entries 4 + rows (4 f + 8)
//     edge_softmax_backward   edges (4 f + 12 heads) + entries 4 + rows (4 f + 8 heads + 8)
//     attend_backward         edges (4 f + 8 heads) + entries 12 + columns (4 f + 4 heads + 8)
//     gather_max              entries (4 f + 4) + rows (8 f + 8)
//     gather_max_backward     entries (8 f + 12) + columns (4 f + 8)
//
// The bound moves these bytes at the rate (read + written) of a memcpy measured beside; that of
// edge_softmax is the longer of its bytes and its exps, by a polynomial over an array in the cache
// that the compiler has made vectors of. What pushes the ratio from 1: rows in random order, 4 f
// bytes at a time; blocks that fit a cache gather faster than memcpy copies from memory; products
// and sums of a head's part (2 f flops an edge, 4 f in edge_softmax_backward's place) with
// few numbers for a vector where a head is 8 wide. With dropout edge_softmax draws a Philox block
// for eight weights, which is in no bound.
//
// Verification: against loops over a list of edges in double, to 1e-5 of a result's own size or
// of 1; gather_max and its gradient, bit for bit, entry after entry.
#include <cmath>
#include <memory>
#include <random>

#include "espalier/comm/session.hpp"
#include "espalier/dense/gather_max.hpp"
#include "espalier/nn/edge_softmax.hpp"
#include "espalier/sparse/transpose.hpp"
#include "rates.hpp"
#include "rmat.hpp"

namespace espalier::bench {
namespace {

/// exp for |x| < 87 by 2^n times a polynomial: what a vector unit can do for float32.
inline float exp_by_polynomial(float x) {
  const float shifted = x * 1.44269504f + 0x1.8p23f, n = shifted - 0x1.8p23f,
              r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  float sum = 1.38888889e-3f;
  for (const float c : {8.33333333e-3f, 4.16666667e-2f, 1.66666667e-1f, 0.5f, 1.0f, 1.0f}) sum = sum * r + c;
  const auto power = (static_cast<std::int32_t>(n) + 127) << 23;
  float scale;
  std::memcpy(&scale, &power, sizeof scale);
  return sum * scale;
}

/// 1e9 exps/s of all threads.
double exp_rate(int threads) {
  constexpr int kNumbers = 4096, kRounds = 2000;
  const double seconds = seconds_of([&] {
#pragma omp parallel num_threads(threads)
    {
      alignas(64) float numbers[kNumbers];
      for (int k = 0; k < kNumbers; ++k) numbers[k] = -1e-3f * static_cast<float>(k);
      for (int round = 0; round < kRounds; ++round) {
        for (float& x : numbers) x = -exp_by_polynomial(x);
        benchmark::DoNotOptimize(numbers);
      }
    }
  });
  return 1e-9 * kNumbers * kRounds * threads / seconds;
}

/// A block with all that attention is given and gives. Numbers of a list of edges: entry k of row
/// i, or its own vertex.
struct Attention {
  std::string name;
  Block block, transposed;
  Buffer<std::int32_t> positions;
  std::int64_t heads, width;
  double rate;
  RandomStream mask{7, Purpose::kAttention, 1, 0, 1, 0};
  Matrix<float> p, a_source, a_target, source, target, weights, z, dz, dweights, dtarget, dsource, dp;

  Attention(std::string name_, const Block& block_, std::int64_t heads_, std::int64_t width_, double rate_)
      : name(std::move(name_)),
        block(block_),
        heads(heads_),
        width(width_),
        rate(rate_),
        p(filled(block.columns, f(), 1)),
        a_source(filled(heads, width, 2)),
        a_target(filled(heads, width, 3)),
        source(block.columns, heads),
        target(block.rows, heads),
        z(block.rows, f()),
        dz(filled(block.rows, f(), 4)) {
    transpose(Cpu{1}, block, transposed, &positions);
    head_scores<float>(Cpu{1}, p, a_source, source);
    head_scores<float>(Cpu{1}, ConstMatrixView<float>(p).first_rows(block.rows), a_target, target);
    for (const auto& step :
         {&Attention::softmax, &Attention::sum, &Attention::softmax_backward, &Attention::sum_backward})
      (this->*step)(1);
  }

  static Matrix<float> filled(std::int64_t rows, std::int64_t columns, unsigned seed) {
    Matrix<float> m(rows, columns);
    std::minstd_rand random(seed);
    for (float& x : m.data) x = static_cast<float>(random() & 0xffff) * 0x1p-15f - 1.0f;
    return m;
  }

  std::int64_t f() const { return heads * width; }
  double edges() const { return static_cast<double>(block.entries() + block.rows); }
  double entries() const { return static_cast<double>(block.entries()); }
  double rows() const { return static_cast<double>(block.rows); }
  double columns() const { return static_cast<double>(block.columns); }
  // Bytes: of a number for each head, of a row of P.
  double of_head() const { return 4 * static_cast<double>(heads); }
  double of_row() const { return 4 * static_cast<double>(f()); }

  void softmax(int threads) {
    edge_softmax<float>(Cpu{threads}, block, source, target, nullptr, mask, rate, weights);
  }
  void sum(int threads) { attend<float>(Cpu{threads}, block, weights, rate, p, z); }
  void softmax_backward(int threads) {
    edge_softmax_backward<float>(Cpu{threads}, block, weights, rate, source, target, nullptr, p, dz, dweights,
                                 dtarget);
  }
  void sum_backward(int threads) {
    attend_backward<float>(Cpu{threads}, transposed, positions, weights, rate, dweights, dtarget, block, dz,
                           a_source, a_target, dsource, dp);
  }

  double softmax_bytes() const { return edges() * 2 * of_head() + entries() * 4 + rows() * (of_head() + 8); }
  double sum_bytes() const {
    return edges() * (of_row() + of_head()) + entries() * 4 + rows() * (of_row() + 8);
  }
  double softmax_backward_bytes() const {
    return edges() * (of_row() + 3 * of_head()) + entries() * 4 + rows() * (of_row() + 2 * of_head() + 8);
  }
  double sum_backward_bytes() const {
    return edges() * (of_row() + 2 * of_head()) + entries() * 12 + columns() * (of_row() + of_head() + 8);
  }

  /// visit(row, source, place of the weights) for every edge but entries (i, i).
  template <class Visit>
  void over_edges(std::int64_t i, const Visit& visit) const {
    for (std::int64_t e = block.row_begin(i); e < block.row_end(i); ++e)
      if (block.indices[static_cast<std::size_t>(e)] != i)
        visit(static_cast<std::int64_t>(block.indices[static_cast<std::size_t>(e)]), e + i);
    visit(i, block.row_end(i) + i);
  }
  std::int64_t count_wrong() const;
};

/// Elements that differ by more than 1e-5 of their own size, or of 1.
std::int64_t wrong_in(const Matrix<float>& found, const Matrix<double>& expected) {
  std::int64_t wrong = 0;
  for (std::size_t e = 0; e < expected.data.size(); ++e)
    wrong += !(std::abs(static_cast<double>(found.data[e]) - expected.data[e]) <=
               1e-5 * std::max(1.0, std::abs(expected.data[e])));
  return wrong;
}

Matrix<double> zeros(std::int64_t rows, std::int64_t columns) {
  Matrix<double> m(rows, columns);
  std::fill(m.data.begin(), m.data.end(), 0.0);
  return m;
}

std::int64_t Attention::count_wrong() const {
  auto w = zeros(weights.rows, heads), sums = zeros(block.rows, f()), dt = zeros(block.rows, heads),
       ds = zeros(block.columns, heads), to_p = zeros(block.columns, f());
  const auto at = [](const Matrix<float>& m, std::int64_t i, std::int64_t j) {
    return static_cast<double>(m(i, j));
  };
  std::int64_t wrong = 0;
  std::vector<double> by_weight;
  for (std::int64_t i = 0; i < block.rows; ++i)
    for (std::int64_t h = 0; h < heads; ++h) {
      double all = 0, mean = 0;
      over_edges(i, [&](std::int64_t j, std::int64_t place) {
        const double score = at(source, j, h) + at(target, i, h);
        all += w(place, h) = std::exp(score > 0 ? score : kLeakySlope * score);
      });
      by_weight.clear();
      over_edges(i, [&](std::int64_t j, std::int64_t place) {
        const double kept = std::signbit(weights(place, h)) ? 0 : 1 / (1 - rate);
        w(place, h) /= all;
        double product = 0;
        for (std::int64_t c = h * width; c < (h + 1) * width; ++c) {
          sums(i, c) += kept * w(place, h) * at(p, j, c);
          to_p(j, c) += kept * w(place, h) * at(dz, i, c);
          product += kept * at(p, j, c) * at(dz, i, c);
        }
        by_weight.push_back(product);
        mean += product * w(place, h);
        const double found = std::abs(at(weights, place, h));
        wrong += !(std::abs(found - w(place, h)) <= 1e-5 * w(place, h));
      });
      std::size_t k = 0;
      over_edges(i, [&](std::int64_t j, std::int64_t place) {
        const double score = at(source, j, h) + at(target, i, h);
        const double gradient = w(place, h) * (by_weight[k++] - mean) * (score > 0 ? 1 : kLeakySlope);
        ds(j, h) += gradient;
        dt(i, h) += gradient;
      });
    }
  for (std::int64_t j = 0; j < block.columns; ++j)
    for (std::int64_t c = 0; c < f(); ++c) {
      const std::int64_t h = c / width, in_head = c % width;
      to_p(j, c) += ds(j, h) * at(a_source, h, in_head);
      if (j < block.rows) to_p(j, c) += dt(j, h) * at(a_target, h, in_head);
    }
  return wrong + wrong_in(z, sums) + wrong_in(dtarget, dt) + wrong_in(dsource, ds) + wrong_in(dp, to_p);
}

/// The largest of the rows of the same X.
struct Largest {
  const Attention& of;
  Matrix<float> m, dx;
  Buffer<std::int32_t> winners;

  explicit Largest(const Attention& attention)
      : of(attention), m(of.block.rows, of.f()), dx(of.block.columns, of.f()) {
    forward(1);
    backward(1);
  }
  void forward(int threads) { gather_max<float>(Cpu{threads}, of.block, of.p, m, winners); }
  void backward(int threads) {
    gather_max_backward<float>(Cpu{threads}, of.transposed, of.positions, winners, of.dz, dx);
  }
  double forward_bytes() const {
    return of.entries() * (of.of_row() + 4) + of.rows() * (2 * of.of_row() + 8);
  }
  double backward_bytes() const {
    return of.entries() * (2 * of.of_row() + 12) + of.columns() * (of.of_row() + 8);
  }
  std::int64_t count_wrong() const {
    Matrix<float> most(m.rows, m.columns), gradient(dx.rows, dx.columns);
    std::fill(gradient.data.begin(), gradient.data.end(), 0.0f);
    for (std::int64_t i = 0; i < m.rows; ++i)
      for (std::int64_t c = 0; c < m.columns; ++c) {
        std::int64_t best = -1;
        for (const std::int32_t j : of.block.row_indices(i))
          if (best < 0 || of.p(j, c) > of.p(best, c)) best = j;
        most(i, c) = best < 0 ? 0 : of.p(best, c);
        if (best >= 0) gradient(best, c) += of.dz(i, c);
      }
    std::int64_t wrong = 0;
    for (std::size_t e = 0; e < most.data.size(); ++e) wrong += most.data[e] != m.data[e];
    for (std::size_t e = 0; e < gradient.data.size(); ++e) wrong += gradient.data[e] != dx.data[e];
    return wrong;
  }
};

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto scale = take_scale(argc, argv, 16);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto step = sample_step(make_rmat(scale), grid);
  std::vector<std::unique_ptr<Attention>> cases;
  std::vector<std::unique_ptr<Largest>> largest;
  std::vector<Comparison> comparisons;
  std::string shapes;
  for (const std::size_t layer : {1, 2}) {
    const Block block = copy_of(step.blocks[layer - 1]);
    shapes +=
        fmt::format("\n# layer {}: [{}, {}], {} entries", layer, block.rows, block.columns, block.entries());
    for (const auto& [heads, width, rate] :
         {std::tuple{4, 64, 0.0}, std::tuple{8, 8, 0.0}, std::tuple{8, 8, 0.6}}) {
      const auto name = fmt::format("layer {} {}x{}", layer, heads, width);
      auto* const c = cases.emplace_back(std::make_unique<Attention>(name, block, heads, width, rate)).get();
      const auto wrong = c->count_wrong();
      const auto compare_with = [&](const char* what, double bytes, auto* object, auto operation,
                                    std::int64_t count, double exps = 0) {
        for (const int threads : thread_counts())
          comparisons.push_back({fmt::format("{} {} {} thr", name, what, threads), 1e-9 * bytes,
                                 [=] { return seconds_of([&] { (object->*operation)(threads); }); },
                                 [=] {
                                   const double copies = 1e-9 * bytes / copy_rate(threads);
                                   const double powers = exps > 0 ? 1e-9 * exps / exp_rate(threads) : 0;
                                   return 1e-9 * bytes / std::max(copies, powers);
                                 },
                                 count, threads});
      };
      const double exps = c->edges() * heads;
      compare_with(rate > 0 ? "weights, p=.6" : "weights", c->softmax_bytes(), c, &Attention::softmax, wrong,
                   exps);
      if (rate > 0) continue;
      compare_with("attend", c->sum_bytes(), c, &Attention::sum, wrong);
      compare_with("weights back", c->softmax_backward_bytes(), c, &Attention::softmax_backward, wrong);
      compare_with("attend back", c->sum_backward_bytes(), c, &Attention::sum_backward, wrong);
      auto* const of = largest.emplace_back(std::make_unique<Largest>(*c)).get();
      const auto differ = of->count_wrong();
      compare_with("max", of->forward_bytes(), of, &Largest::forward, differ);
      compare_with("max back", of->backward_bytes(), of, &Largest::backward, differ);
    }
  }
  return compare(argc, argv, "attention; bound: memcpy, bytes read + written, or exp" + shapes, "GB/s",
                 comparisons);
}
