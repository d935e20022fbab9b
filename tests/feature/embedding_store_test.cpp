// ranks: 1 2 3 4 6
// Laws of embeddings: rows are those that one loop over all minibatches, by their numbers, would
// have made of them, to the last bit, on every grid, in every copy and whoever owns which vertex;
// rows that no minibatch has read stay; a fetch gives the rows of the moment in which it ends,
// however early it began; a state that one grid gives another one goes on from; six steps of all
// rows are those of PyTorch's SparseAdam and Adagrad.
#include "espalier/feature/embedding_store.hpp"

#include <gtest/gtest.h>

#include "embedding_store_cases.hpp"
#include "mpi_test.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

const std::vector<EmbeddingOptions> kOptimizers = {{.optimizer = "adam", .seed = 3},
                                                   {.optimizer = "adagrad", .seed = 4}};

TEST(Embeddings, AreThoseOfOneLoop) {
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    for (const auto owned : kAllOwned)
      for (const auto& options : kOptimizers) {
        const auto look = [&](const EmbeddingStore& store, const LoopedEmbeddings& expected) {
          const auto block = store.rows().storage().rows().floats();
          EXPECT_EQ(Buffer<float>(block.data, block.row(block.rows)),
                    rows_of_part(expected.rows, store.rows().ownership(), grid.row()).data);
        };
        expect_updates(Cpu{2}, grid, owned, options, test_seed(11), look);
      }
  }
}

TEST(Embeddings, TheCasesTellOneOrderFromAnother) {
  auto batches = random_batches(7, 11, kEmbedded, 5);
  const auto sums = [&] {
    Matrix<float> rows = first_rows(kEmbedded, 5);
    add_in_a_loop(batches, rows);
    return rows.data;
  };
  const auto forward = sums();
  std::ranges::reverse(batches);
  EXPECT_NE(sums(), forward);
  std::ranges::reverse(batches);
  for (auto& batch : batches) {  // within a minibatch
    std::ranges::reverse(batch.ids);
    for (std::int64_t k = 0; k < batch.rows.rows / 2; ++k)
      std::swap_ranges(batch.rows.row(k), batch.rows.row(k) + 5, batch.rows.row(batch.rows.rows - 1 - k));
  }
  EXPECT_NE(sums(), forward);
}

TEST(Embeddings, AFetchOutlivesSeveralSteps) {
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    LoopedEmbeddings expected(5, kOptimizers[0]);
    TestedEmbeddings<Cpu> tested(Cpu{1}, grid, Owned::kAtRandom, 5, kOptimizers[0]);
    PendingFetch early, late;
    tested.begin(early, FetchMove::kRows);
    for (std::uint64_t step = 0; step < 3; ++step) {
      const auto batches = random_batches(step, 5, kEmbedded, 5);
      tested.update(0.1, batches);
      expected.update(0.1f, batches);
      if (step == 1) tested.begin(late, FetchMove::kRows);
    }
    EXPECT_EQ(tested.finish(early).data, expected.rows.data);
    EXPECT_EQ(tested.finish(late).data, expected.rows.data);
  }
}

// What is sent once more is what has changed: nothing where nothing has.
TEST(Embeddings, OnlyWhatHasChangedIsSentOnceMore) {
  const Grid grid(test_world(), 1);
  TestedEmbeddings<Cpu> tested(Cpu{1}, grid, Owned::kInRanges, 8, kOptimizers[0]);
  const auto received = [&](const std::vector<PushedBatch>& batches) {
    PendingFetch fetch;
    tested.begin(fetch, FetchMove::kRows);
    tested.update(0.1, batches);
    const auto before = test_world().traffic().of("fetch").bytes_received;
    tested.finish(fetch);
    return test_world().all_reduce(test_world().traffic().of("fetch").bytes_received - before,
                                   Reduction::kSum, "test");
  };
  const std::int64_t p = test_world().size(), counts = 8 * p * (p - 1);
  EXPECT_EQ(received({{0, {}, Matrix<float>(0, 8)}}), counts);
  // Two rows, for each rank that is not their owner: a number and 8 floats.
  EXPECT_EQ(received({{0, {7, 40}, filled_matrix(2, 8, 1.0f)}}), counts + 2 * (p - 1) * (4 + 8 * 4));
}

TEST(Embeddings, AnotherGridGoesOnFromTheState) {
  for (const auto& options : kOptimizers) {
    LoopedEmbeddings expected(6, options);
    const Grid first(test_world(), 1);
    TestedEmbeddings<Cpu> before(Cpu{1}, first, Owned::kAtRandom, 6, options);
    for (std::uint64_t step = 0; step < 3; ++step) {
      const auto batches = random_batches(step, 6, kEmbedded, 6);
      before.update(0.02, batches);
      expected.update(0.02f, batches);
    }
    const auto kept = before.store.kept_rows(Cpu{1});
    const auto rows_then = expected.rows.data;
    auto tensors = before.store.state(Cpu{1});
    std::ranges::move(before.store.state_of_kept(kept), std::back_inserter(tensors));
    const auto whole = whole_tensors(test_world(), tensors);
    const auto next = random_batches(17, 8, kEmbedded, 6);
    expected.update(0.03f, next);
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      TestedEmbeddings<Cpu> after(Cpu{1}, grid, Owned::kInRanges, 6,
                                  {.optimizer = options.optimizer, .seed = 99});
      after.store.restore(Cpu{1}, finder(whole));
      after.update(0.03, next);
      PendingFetch fetch;
      after.begin(fetch, FetchMove::kRows);
      EXPECT_EQ(after.finish(fetch).data, expected.rows.data) << options.optimizer << " c " << c;
      after.store.put_back(Cpu{1}, after.store.restore_kept(finder(whole)), "test");
      after.begin(fetch, FetchMove::kRows);
      EXPECT_EQ(after.finish(fetch).data, rows_then) << "what was kept";
    }
  }
}

// PyTorch counts the steps of all rows together: every row is read in every step.
TEST(Embeddings, AgreeWithPyTorch) {
  for (const auto& json : read_fixture("row_optimizers")) {
    SCOPED_TRACE(json.at("kind").get<std::string>());
    const auto initial = to_matrix<float>(json.at("initial"));
    const Grid grid(test_world(), test_world().size());
    const EmbeddingOptions options = {.optimizer = json.at("kind")};
    TestedEmbeddings<Cpu> tested(Cpu{1}, grid, Owned::kInRanges, initial.columns, options);
    ASSERT_EQ(initial.rows, kEmbedded);
    // Its rows, by way of a checkpoint.
    const auto from = [&](const std::string& name, std::int64_t begin, std::int64_t rows) {
      return StateTensor{name, rows, initial.columns, {}, [&initial, begin](RowRange range, float* to) {
                           std::copy_n(initial.row(begin + range.begin), range.size() * initial.columns, to);
                         }};
    };
    const std::vector<StateTensor> tensors = {from("weights/embedding.a", 0, 5),
                                              from("weights/embedding.c", 5, 41)};
    tested.store.restore(Cpu{1}, finder(tensors), /*with_state=*/false);
    for (const auto& step : json.at("steps")) {
      PushedBatch all;
      all.ids.resize(kEmbedded);
      std::iota(all.ids.begin(), all.ids.end(), std::int64_t{0});
      all.rows = to_matrix<float>(step.at("gradient"));
      tested.update(json.at("rate"), {all});
      PendingFetch fetch;
      tested.begin(fetch, FetchMove::kRows);
      const auto found = tested.finish(fetch), expected = to_matrix<float>(step.at("rows"));
      for (std::size_t k = 0; k < found.data.size(); ++k)
        ASSERT_NEAR(found.data[k], expected.data[k], 1e-6) << "number " << k;
    }
  }
}

}  // namespace
}  // namespace espalier
