// ranks: 1 2 3 4
// Laws of a loader: it gives the minibatches of training, bit for bit, on every grid. Loaders and
// training of one job leave each other alone; memory that is lent to it is given back. (Items and
// their scales, rows and labels that stay, splits in order, and where a loop begins and stops:
// tests/python/loader_test.py.)
#include "espalier/job/batch_loader.hpp"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "espalier/job/sampling_on_gpu.hpp"
#include "open_job.hpp"

namespace espalier {
namespace {

using Batches = std::vector<std::shared_ptr<const LoadedBatch>>;

template <class T>
T over_ranks(T value, Reduction reduction) {
  return test_world().all_reduce(value, reduction, "test");
}

// Of each epoch, over ranks.
std::map<std::int64_t, std::uint64_t> digests_of(const Batches& batches, std::int64_t epochs) {
  std::map<std::int64_t, std::uint64_t> digests;
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    std::uint64_t mine = 0;
    for (const auto& batch : batches)
      if (batch->step.epoch == epoch) mine += digest_of(*batch);
    digests[epoch] = over_ranks(mine, Reduction::kSum);
  }
  return digests;
}

// What sample_epoch, which has no pipeline, draws.
std::uint64_t expected_digest(const Config& config, hdf5::WrittenBytes& graph, std::int64_t epoch) {
  const InMemory memory = {graph};
  const auto job = open_job(test_world(), config, JobKind::kSample, {}, {}, &memory);
  const VertexSource examples(job.file->read_split(Split::kTrain));
  std::uint64_t digest = 0;
  with_matrix(job, [&](const auto& space, const auto& matrix) {
    digest = sample_epoch(job, space, *make_job_sampler(job, space, matrix), examples, epoch).counts.digest;
  });
  return digest;
}

TEST(BatchLoader, GivesTheMinibatchesOfTraining) {
  auto graph = small_graph();
  for (const char* sampler : {"graphsage", "labor", "ladies", "subgraph"}) {
    const auto first = expected_digest(loader_config(1, sampler), graph, 1),
               second = expected_digest(loader_config(1, sampler), graph, 2);
    for (const int copies : divisors(test_world().size()))
      for (const std::int64_t ahead : {0, 1, 4}) {
        OpenJob open(loader_config(copies, sampler), graph);
        const auto loader = open.load({.ahead = ahead});
        const auto batches = all_of(*loader);
        const auto digests = digests_of(batches, 2);
        EXPECT_EQ(digests.at(1), first) << sampler << " " << copies << " " << ahead;
        EXPECT_EQ(digests.at(2), second) << sampler << " " << copies << " " << ahead;
        EXPECT_EQ(loader->next(), nullptr);
      }
  }
}

// Also where a thread samples the next window of one when the other is asked.
TEST(BatchLoader, SeveralAndTrainingLeaveEachOtherAlone) {
  auto graph = small_graph();
  const auto config = loader_config(1, "graphsage");
  const auto alone = OpenJob(config, graph).train();
  OpenJob open(config, graph);
  Trainer trainer(open.set().space(), open.set().lent());
  const auto one = open.load(), other = open.load({.split = "valid"});
  Batches of_one, of_other;
  while (!trainer.done()) {
    bool more = true;
    while (more) {
      open.queue.wait();
      more = trainer.step();
      trainer.rest();
      if (auto batch = one->next()) of_one.push_back(std::move(batch));
      if (auto batch = other->next()) of_other.push_back(std::move(batch));
    }
    open.queue.wait();
    trainer.end_epoch();
  }
  for (const auto& batch : all_of(*one)) of_one.push_back(batch);
  for (const auto& batch : all_of(*other)) of_other.push_back(batch);
  open.queue.wait();
  trainer.result();
  EXPECT_EQ(trainer.weights_digest(), alone);
  EXPECT_EQ(digests_of(of_one, 1).at(1), expected_digest(config, graph, 1));
  std::int64_t seeds = 0;
  for (const auto& batch : of_other) seeds += batch->minibatch.seeds();
  EXPECT_EQ(over_ranks(seeds, Reduction::kSum), open.job.graph.valid);
}

TEST(BatchLoader, WritesRowsToMemoryThatIsLentAndGivesItBack) {
  auto graph = small_graph();
  OpenJob open(loader_config(1, "graphsage"), graph);
  std::mutex mutex;
  std::map<void*, std::vector<float>> lent;
  const RowMemory memory = {[&](std::size_t bytes) -> void* {
                              const std::lock_guard lock(mutex);
                              std::vector<float> rows(bytes / sizeof(float));
                              auto* const at = rows.data();
                              lent.emplace(at, std::move(rows));
                              return at;
                            },
                            [&](void* at) {
                              const std::lock_guard lock(mutex);
                              lent.erase(at);
                            }};
  auto loader = open.load({.epochs = 1, .memory = memory}), own = open.load({.epochs = 1});
  auto batches = all_of(*loader);
  const auto expected = all_of(*own);
  ASSERT_EQ(batches.size(), expected.size());
  std::size_t with_rows = 0;
  for (std::size_t k = 0; k < batches.size(); ++k) {
    const auto &rows = batches[k]->tables[0], &others = expected[k]->tables[0];
    ASSERT_EQ(rows.rows, others.rows);
    if (rows.rows == 0) continue;
    ++with_rows;
    EXPECT_TRUE(lent.contains(const_cast<float*>(rows.data)));
    EXPECT_TRUE(std::equal(rows.data, rows.data + rows.rows * rows.columns, others.data));
  }
  EXPECT_EQ(lent.size(), with_rows);
  const auto of_one = batches[0]->tables[0].data;
  loader.reset();
  EXPECT_TRUE(lent.contains(const_cast<float*>(of_one))) << "as long as there are batches";
  batches.clear();
  EXPECT_TRUE(lent.empty());
  auto none =
      open.load({.epochs = 1, .memory = {[](std::size_t) -> void* { return nullptr; }, [](void*) {}}});
  EXPECT_THROW(none->next(), std::runtime_error);
}

TEST(BatchLoader, RefusesWhatItCannotGive) {
  auto graph = small_graph();
  OpenJob open(loader_config(1, "graphsage"), graph);
  EXPECT_THROW(open.load({.split = "all"}), UserError);
  EXPECT_THROW(open.load({.split = "test", .vertices = std::vector<std::int64_t>{1}}), UserError);
  EXPECT_THROW(open.load({.vertices = std::vector<std::int64_t>{300}}), UserError);
  EXPECT_THROW(open.load({.vertices = std::vector<std::int64_t>{7, 3, 7}}), UserError);
  if (test_world().size() > 1) {  // on all ranks
    EXPECT_THROW(open.load({.vertices = std::vector<std::int64_t>{test_world().rank()}}), UserError);
  }
  EXPECT_THROW(open.load({.fanout = {3, 3}}), UserError);
  EXPECT_THROW(open.load({.split = "test", .fanout = {0}}), UserError);
  EXPECT_EQ(std::ssize(all_of(*open.load({.vertices = std::vector<std::int64_t>{7, 3, 9}}))), 1);
}

}  // namespace
}  // namespace espalier
