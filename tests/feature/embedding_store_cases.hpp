// Embeddings for the tests of every space: what a loop over all minibatches, on the host, makes of
// rows and of the optimiser's state, beside an EmbeddingStore on a grid.
#pragma once

#include <cmath>
#include <numeric>

#include "dense/random_matrices.hpp"
#include "espalier/base/arrays.hpp"
#include "espalier/feature/embedding_store.hpp"
#include "row_store_cases.hpp"

namespace espalier {

/// Types "a" (5 rows), "b" (of features), "c" (41 rows): the numbers 0 .. 45 are of a and c.
inline Schema embedded_schema() {
  return Schema({{"a", 0, 5}, {"b", 5, 25}, {"c", 25, 66}}, {{"to", 0, 1}, {"of", 2, 1}});
}
inline InputTable embedded_table(std::int64_t width) {
  return {.width = width, .trainable = true, .held = HeldTypes(embedded_schema(), {true, false, true})};
}
inline constexpr std::int64_t kEmbedded = 46;

/// All rows, and the state that is kept for them.
struct LoopedEmbeddings {
  EmbeddingOptions options;
  Matrix<float> rows, first, second;
  std::vector<int> steps = std::vector<int>(kEmbedded);

  LoopedEmbeddings(std::int64_t width, const EmbeddingOptions& options_)
      : options(options_),
        rows(kEmbedded, width),
        first(filled_matrix(kEmbedded, width, 0.0f)),
        second(first) {
    for (std::int64_t row = 0; row < kEmbedded; ++row)
      for (std::int64_t j = 0; j < width; ++j) {
        const auto vertex = static_cast<std::uint64_t>(row < 5 ? row : row + 20);
        const auto word = random64({options.seed, Purpose::kInitialEmbeddings, 0, 0, 0, vertex},
                                   static_cast<std::uint64_t>(j));
        const double limit = 1 / std::sqrt(static_cast<double>(width));
        rows(row, j) = static_cast<float>(limit * (2 * to_unit_double(word) - 1));
      }
  }

  /// Batches ascend by their number.
  void update(float rate, const std::vector<PushedBatch>& batches) {
    auto sums = filled_matrix(kEmbedded, rows.columns, 0.0f);
    add_in_a_loop(batches, sums);
    std::vector<bool> read(kEmbedded);
    for (const auto& batch : batches)
      for (const auto id : batch.ids) read[static_cast<std::size_t>(id)] = true;
    for (std::int64_t row = 0; row < kEmbedded; ++row) {
      if (!read[static_cast<std::size_t>(row)]) continue;
      const int t = ++steps[static_cast<std::size_t>(row)];
      for (std::int64_t j = 0; j < rows.columns; ++j) step(rate, t, sums(row, j), row, j);
    }
  }

 private:
  void step(float rate, int t, float g, std::int64_t row, std::int64_t j) {
    auto &m = first(row, j), &v = second(row, j), &w = rows(row, j);
    const auto epsilon = static_cast<float>(options.epsilon());
    if (options.optimizer == "adagrad") {
      v = v + g * g;
      w = w - rate * g / (std::sqrt(v) + epsilon);
      return;
    }
    double power1 = 1, power2 = 1;
    for (int k = 0; k < t; ++k) power1 *= options.beta1, power2 *= options.beta2;
    const auto correction = static_cast<float>(std::sqrt(1 - power2) / (1 - power1));
    const auto b1 = static_cast<float>(options.beta1), b2 = static_cast<float>(options.beta2);
    m = b1 * m + static_cast<float>(1 - options.beta1) * g;
    v = b2 * v + static_cast<float>(1 - options.beta2) * (g * g);
    w = w - rate * correction * m / (std::sqrt(v) + epsilon);
  }
};

/// A store with the minibatches that this rank brings to it.
template <class Space>
class TestedEmbeddings {
 public:
  TestedEmbeddings(const Space& space, const GridOn<Space>& grid, Owned owned, std::int64_t width,
                   const EmbeddingOptions& options)
      : space_(space),
        grid_(grid),
        store(space, grid, ownership_of(owned, 66, grid.rows()), embedded_table(width), embedded_schema(),
              options) {}

  void update(double rate, const std::vector<PushedBatch>& batches) {
    const auto& world = grid_.host().world();
    std::vector<Array<Space, std::int64_t>> ids;
    std::vector<std::span<const std::int64_t>> lists;
    std::vector<std::int64_t> numbers;
    std::vector<Matrix<float, Space>> gradients;
    for (const auto& batch : of_rank(batches, world.rank(), world.size())) {
      ids.push_back(copy_to<std::int64_t>(space_, batch.ids));
      lists.emplace_back(ids.back().data(), batch.ids.size());
      numbers.push_back(batch.number);
      gradients.emplace_back(batch.rows.rows, batch.rows.columns);
      gradients.back().data = copy_to<float>(space_, batch.rows.data);
    }
    store.update(space_, rate, lists, numbers, gradients, "update");
  }

  /// Asks for all rows, backwards.
  void begin(PendingFetchOn<Space>& fetch, FetchMove move) {
    std::vector<std::int64_t> ids(kEmbedded);
    std::iota(ids.rbegin(), ids.rend(), std::int64_t{0});
    ids_ = copy_to<std::int64_t>(space_, ids);
    const std::vector<std::span<const std::int64_t>> lists = {{ids_.data(), ids_.size()}};
    store.rows().begin_counts(space_, lists, fetch, "fetch");
    store.rows().advance(space_, fetch, move, "fetch");
  }
  Matrix<float> finish(PendingFetchOn<Space>& fetch) {
    store.rows().advance(space_, fetch, FetchMove::kRows, "fetch");
    store.rows().correct(space_, fetch, "fetch");
    std::vector<Matrix<float, Space>> found;
    store.rows().finish_fetch(space_, fetch, found);
    const auto backwards = copy_from(space_, found[0].data);
    Matrix<float> rows(kEmbedded, found[0].columns);
    for (std::int64_t k = 0; k < kEmbedded; ++k)
      std::copy_n(backwards.begin() + k * rows.columns, rows.columns, rows.row(kEmbedded - 1 - k));
    return rows;
  }

 private:
  Space space_;
  const GridOn<Space>& grid_;
  Array<Space, std::int64_t> ids_;

 public:
  EmbeddingStoreOn<Space> store;
};

/// Some rounds of updates: rows are those of one loop, whenever the fetch of them began. Before an
/// update one fetch has made each of its moves, and one was there a step earlier. `look(store,
/// expected)` before each.
template <class Space, class Look>
void expect_updates(const Space& space, const GridOn<Space>& grid, Owned owned,
                    const EmbeddingOptions& options, std::uint64_t seed, const Look& look) {
  constexpr std::int64_t kWidth = 7;
  LoopedEmbeddings expected(kWidth, options);
  TestedEmbeddings<Space> tested(space, grid, owned, kWidth, options);
  for (std::uint64_t round = 0; round < 5; ++round) {
    SCOPED_TRACE(fmt::format("{} seed {} round {}", options.optimizer, seed, round));
    look(tested.store, expected);
    const auto batches = random_batches(seed + round, round == 2 ? 1 : 9, kEmbedded, kWidth);
    const double rate = round == 3 ? 0.001 : 0.01;
    std::vector<PendingFetchOn<Space>> fetches(3);
    for (std::size_t move = 0; move < 3; ++move) tested.begin(fetches[move], static_cast<FetchMove>(move));
    tested.update(rate, batches);
    expected.update(static_cast<float>(rate), batches);
    for (auto& fetch : fetches) EXPECT_EQ(tested.finish(fetch).data, expected.rows.data);
  }
}

/// All rows of the tensors that the ranks save, each its own, on every rank.
inline std::vector<StateTensor> whole_tensors(const Communicator& world,
                                              const std::vector<StateTensor>& tensors) {
  std::vector<StateTensor> whole;
  for (const auto& tensor : tensors) {
    auto values = std::make_shared<std::vector<double>>(static_cast<std::size_t>(tensor.size()));
    std::vector<std::int64_t> times(static_cast<std::size_t>(tensor.rows));
    for (const auto& rows : tensor.mine) {
      Buffer<float> some(static_cast<std::size_t>(rows.size() * tensor.columns));
      tensor.read(rows, some.data());
      std::ranges::copy(some, values->begin() + rows.begin * tensor.columns);
      for (auto row = rows.begin; row < rows.end; ++row) ++times[static_cast<std::size_t>(row)];
    }
    world.all_reduce(std::span<double>(*values), Reduction::kSum, "test");
    world.all_reduce(std::span<std::int64_t>(times), Reduction::kSum, "test");
    EXPECT_TRUE(std::ranges::all_of(times, [](auto n) { return n == 1; })) << tensor.name << ": rows once";
    whole.push_back(
        {tensor.name, tensor.rows, tensor.columns, {}, [values, tensor](RowRange rows, float* to) {
           for (auto k = rows.begin * tensor.columns; k < rows.end * tensor.columns; ++k)
             *to++ = static_cast<float>((*values)[static_cast<std::size_t>(k)]);
         }});
  }
  return whole;
}

/// Looks for a tensor as a checkpoint does.
inline EmbeddingStore::Find finder(const std::vector<StateTensor>& tensors) {
  return [&tensors](const std::string& name, std::int64_t rows, std::int64_t columns) -> const StateTensor& {
    const auto found = std::ranges::find(tensors, name, &StateTensor::name);
    EXPECT_TRUE(found != tensors.end() && found->rows == rows && found->columns == columns) << name;
    return *found;
  };
}

}  // namespace espalier
