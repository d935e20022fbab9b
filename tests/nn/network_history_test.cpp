// Laws of a network that reads some rows of its hidden layers from history: without hits it does
// what it does without history, bit for bit; rows that are as they would be computed change no
// logit; gradients are those of the loss as a function of weights, cached rows fixed, and with some
// rows computed by a draw they are unbiased; and the derivatives that the policy judges by are
// those by the rows.
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "espalier/history/prune.hpp"
#include "layer_shapes.hpp"
#include "network_case.hpp"

namespace espalier {
namespace {

JoinedRows<double> joined(std::span<const PrunedLayer> layers, std::span<const Matrix<double>> cached) {
  JoinedRows<double> rows;
  for (std::size_t l = 0; l < layers.size(); ++l)
    rows.layers.push_back(
        {layers[l].place, layers[l].computed.columns, &cached[l], layers[l].computed.positions});
  return rows;
}

/// A minibatch with some hits, and the rows that history has.
struct HistoryCase {
  NetworkCase<double> c;
  Buffer<std::int64_t> vertices;
  PrunedMinibatchOn<Cpu> pruned;
  std::vector<Matrix<double>> cached;
  Matrix<double> input;
  JoinedRows<double> rows;

  /// One of `one_in` vertices of each hidden layer hits; 0: none.
  HistoryCase(const NetworkShape& shape, std::uint64_t one_in)
      : c(shape, frontiers_of(shape, {120, 90, 60, 20}), 7), vertices(c.blocks[0].columns) {
    std::iota(vertices.begin(), vertices.end(), std::int64_t{1000});
    const Minibatch minibatch{3, vertices, c.blocks, nullptr};
    std::mt19937_64 random(5);
    std::vector<Buffer<std::uint8_t>> hits;
    for (int layer = 1; layer < shape.layers; ++layer) {
      auto& of_layer = hits.emplace_back(c.blocks[static_cast<std::size_t>(layer)].columns);
      for (auto& hit : of_layer) hit = one_in > 0 && random() % one_in == 0;
    }
    std::vector<std::span<const std::uint8_t>> spans;
    for (const auto& of_layer : hits) spans.emplace_back(of_layer.data(), of_layer.size());
    std::vector<Matrix<double>> kept(static_cast<std::size_t>(shape.layers));
    for (std::size_t l = 1; l < kept.size(); ++l) {
      kept[l] = random_matrix<double>(c.blocks[l].columns, shape.hidden, random);
      if (shape.activation == "relu")  // as it leaves them; but for 0, where it has no derivative
        for (auto& element : kept[l].data) element = std::abs(element);
    }
    take(prune(Cpu{1}, minibatch, spans), kept);
  }
  /// kept[l]: for each row of F[l] what history has.
  void take(PrunedMinibatchOn<Cpu> minibatch, const std::vector<Matrix<double>>& kept) {
    pruned = std::move(minibatch);
    cached.resize(kept.size());
    for (std::size_t l = 1; l < cached.size(); ++l)
      cached[l] = rows_at(kept[l], pruned.layers[l].cached.positions);
    input = rows_at(c.input, pruned.layers[0].computed.positions);
    rows = joined(pruned.layers, cached);
  }
  static Matrix<double> rows_at(const Matrix<double>& all, std::span<const std::int64_t> positions) {
    Matrix<double> some(std::ssize(positions), all.columns);
    for (std::int64_t k = 0; k < some.rows; ++k)
      std::copy_n(all.row(positions[static_cast<std::size_t>(k)]), all.columns, some.row(k));
    return some;
  }
  const Matrix<double>& logits() { return c.network.forward(Cpu{1}, pruned.blocks, input, c.pass, &rows); }
  double loss() {
    Matrix<double> unused;
    return softmax_cross_entropy<double>(Cpu{1}, logits(), c.labels, 1.0, unused);
  }
  std::vector<Matrix<double>> gradients() {
    Matrix<double> dlogits;
    std::vector<Matrix<double>> result;
    softmax_cross_entropy<double>(Cpu{1}, logits(), c.labels, 1.0, dlogits);
    c.network.backward(Cpu{1}, pruned.blocks, input, c.pass, dlogits, result);
    return result;
  }
};

std::vector<NetworkShape> history_shapes(const std::vector<double>& rates) {
  auto all = layer_shapes(rates);
  std::erase_if(all, [](const NetworkShape& s) {
    return s.layers < 2 || s.normalize == "batch" || s.jumping != "none" || !s.types.empty() ||
           s.edge_features > 0;
  });
  return all;
}

TEST(NetworkHistory, WithoutHitsNothingChanges) {
  for (const auto& shape : history_shapes({0})) {
    HistoryCase of(shape, 0);
    const auto loss = of.c.loss();
    const auto expected = of.c.gradients();
    EXPECT_EQ(of.loss(), loss) << in_words(shape);
    const auto gradients = of.gradients();
    for (std::size_t k = 0; k < expected.size(); ++k)
      EXPECT_LT(largest_difference(gradients[k], expected[k]), 1e-14) << in_words(shape) << " gradient " << k;
  }
}

// With all columns there masks are those without history, so dropout comes once: rows that history
// is given stand before it.
TEST(NetworkHistory, DropoutComesWhenRowsAreJoined) {
  for (const auto& shape : history_shapes({0.3})) {
    NetworkCase<double> c(shape, frontiers_of(shape, {120, 90, 60, 20}), 7);
    Buffer<std::int64_t> numbers(c.blocks[0].columns);
    std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
    std::vector<PrunedLayer> layers;
    for (const auto& block : c.blocks) {
      const auto all = std::span<const std::int64_t>(numbers).first(block.columns);
      layers.push_back({.place = all, .computed = {all, all, all}, .cached = {}, .in_order = true});
    }
    const std::vector<Matrix<double>> none(c.blocks.size(), Matrix<double>(0, shape.hidden));
    const auto rows = joined(layers, none);
    const auto expected = c.network.forward(Cpu{1}, c.blocks, c.input, c.pass);
    const auto gradients = c.gradients();
    const auto logits = c.network.forward(Cpu{1}, c.blocks, c.input, c.pass, &rows);
    EXPECT_LT(largest_difference(logits, expected), 1e-14) << in_words(shape);
    Matrix<double> dlogits;
    softmax_cross_entropy<double>(Cpu{1}, logits, c.labels, 1.0, dlogits);
    std::vector<Matrix<double>> found;
    c.network.backward(Cpu{1}, c.blocks, c.input, c.pass, dlogits, found);
    for (std::size_t k = 0; k < found.size(); ++k)
      EXPECT_LT(largest_difference(found[k], gradients[k]), 1e-13) << in_words(shape) << " gradient " << k;
  }
}

TEST(NetworkHistory, RowsAsTheyWouldBeComputedChangeNoLogit) {
  for (const auto& shape : history_shapes({0})) {
    HistoryCase of(shape, 3);
    const auto expected = of.c.network.forward(Cpu{1}, of.c.blocks, of.c.input, of.c.pass);
    std::int64_t hits = 0;
    for (std::size_t l = 1; l < of.cached.size(); ++l) {
      const auto& positions = of.pruned.layers[l].cached.positions;
      hits += std::ssize(positions);
      for (std::size_t k = 0; k < positions.size(); ++k)
        std::copy_n(of.c.network.computed_rows(static_cast<int>(l)).row(positions[k]), shape.hidden,
                    of.cached[l].row(static_cast<std::int64_t>(k)));
    }
    EXPECT_GT(hits, 5);
    EXPECT_LT(of.pruned.after.rows, of.pruned.before.rows);
    EXPECT_EQ(largest_difference(of.logits(), expected), 0) << in_words(shape);
  }
}

TEST(NetworkHistory, GradientsAreThoseOfTheLossWithKeptRowsFixed) {
  for (const auto& shape : history_shapes({0, 0.3})) {
    HistoryCase of(shape, 2);
    const auto gradients = of.gradients();
    const auto loss = [&] { return of.loss(); };
    for (std::size_t k = 0; k < gradients.size(); ++k)
      EXPECT_LT(relative_error(loss, of.c.network.parameters()[k].value, gradients[k]), 2e-6)
          << in_words(shape) << " " << of.c.network.parameters()[k].name;
    of.gradients();
    for (std::size_t l = 1; l < of.cached.size(); ++l) {
      const auto& all = of.c.network.needed_gradients(static_cast<int>(l));
      const auto& columns = of.pruned.layers[l].cached.columns;
      ASSERT_EQ(all.rows, of.pruned.layers[l].needed());
      Matrix<double> by_cached(std::ssize(columns), shape.hidden);
      for (std::int64_t k = 0; k < by_cached.rows; ++k)
        std::copy_n(all.row(columns[static_cast<std::size_t>(k)]), shape.hidden, by_cached.row(k));
      EXPECT_LT(relative_error(loss, of.cached[l], by_cached), 2e-6) << in_words(shape) << " layer " << l;
      of.gradients();
    }
  }
}

// Where cached rows are as they would be computed, all outcomes of the draws, each as likely as it
// is, have the gradients without history as their mean.
TEST(NetworkHistory, GradientsOfDrawnRowsAreUnbiased) {
  constexpr double kShare = 0.25;
  // Of each hidden layer that could be read: seven outcomes of eight have hits.
  constexpr int kRows = 3;
  for (const auto& shape : history_shapes({0})) {
    HistoryCase of(shape, 0);
    const auto expected = of.c.gradients();
    std::vector<Matrix<double>> mean;
    for (const auto& gradient : expected) mean.push_back(filled_matrix(gradient.rows, gradient.columns, 0.0));
    const auto layers = static_cast<std::size_t>(shape.layers);
    std::vector<Matrix<double>> exact(layers);
    of.c.network.forward(Cpu{1}, of.c.blocks, of.c.input, of.c.pass);
    for (std::size_t l = 1; l < layers; ++l) {
      const auto& rows = of.c.network.computed_rows(static_cast<int>(l));
      exact[l].resize(rows.rows, rows.columns);
      for (std::int64_t i = 0; i < rows.rows; ++i) std::copy_n(rows.row(i), rows.columns, exact[l].row(i));
    }
    const auto bits = kRows * (shape.layers - 1);
    for (int outcome = 0; outcome < 1 << bits; ++outcome) {
      std::vector<Buffer<std::uint8_t>> hits, drawn;
      for (std::size_t l = 1; l < layers; ++l) {
        const auto size = of.c.blocks[l - 1].rows;
        hits.emplace_back(size, 0);
        drawn.emplace_back(size, 0);
        for (int k = 0; k < kRows; ++k) {
          const auto at = k == 0 ? 0 : size - 3 * k;  // a seed, and rows that are sources only
          ((outcome >> (kRows * (l - 1) + k) & 1) != 0 ? drawn : hits).back()[at] = 1;
        }
      }
      std::vector<std::span<const std::uint8_t>> spans;
      for (const auto& of_layer : hits) spans.emplace_back(of_layer.data(), of_layer.size());
      of.take(prune(Cpu{1}, Minibatch{3, of.vertices, of.c.blocks, nullptr}, spans), exact);
      for (std::size_t l = 1; l < layers; ++l) of.rows.layers[l].drawn = drawn[l - 1].data();
      of.rows.weight = 1 / kShare;
      const auto chosen = std::popcount(static_cast<unsigned>(outcome));
      const double likely = std::pow(kShare, chosen) * std::pow(1 - kShare, bits - chosen);
      const auto found = of.gradients();
      for (std::size_t k = 0; k < mean.size(); ++k)
        for (std::size_t e = 0; e < mean[k].data.size(); ++e) mean[k].data[e] += likely * found[k].data[e];
    }
    for (std::size_t k = 0; k < mean.size(); ++k)
      EXPECT_LT(largest_difference(mean[k], expected[k]), 1e-12) << in_words(shape) << " gradient " << k;
  }
}

}  // namespace
}  // namespace espalier
