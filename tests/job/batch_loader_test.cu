// Laws of a loader on GPUs: its items are those of the CPU, bit for bit, in the GPU's memory or
// brought to the host; they stay while others are made, and when the loader and the job have gone;
// whoever frees them, and wherever, what still reads them reads what they were.
// ranks: 1 3
#define ESPALIER_WITH_CUDA  // for what is not a kernel
#include "espalier/job/batch_loader.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "cuda_test.hpp"
#include "open_job.hpp"

namespace espalier {
namespace {

// All of an item, in memory of the host.
struct Read {
  std::int64_t batch;
  double scale;
  std::vector<Buffer<std::int64_t>> integers;
  std::vector<Buffer<float>> numbers;
  std::uint64_t digest;
  bool operator==(const Read&) const = default;
};

template <class Space>
Read read(const Space& space, const LoadedBatchOn<Space>& item) {
  Read all = {item.batch, item.scale, {}, {}, digest_of(item)};
  const auto take = [&]<class T>(const T* from, std::size_t count) {
    Buffer<T> values(count);
    copy_from(space, from, static_cast<std::int64_t>(count), values.data());
    if constexpr (std::is_same_v<T, float>)
      all.numbers.push_back(values);
    else
      all.integers.emplace_back(values.begin(), values.end());
  };
  take(item.minibatch.vertices.data(), item.minibatch.vertices.size());
  for (const auto& block : item.minibatch.blocks) {
    const auto entries = static_cast<std::size_t>(block.entries());
    all.integers.push_back({block.rows, block.columns, block.entries()});
    take(block.indptr, static_cast<std::size_t>(block.rows) + 1);
    EXPECT_EQ(all.integers.back().front(), 0);
    EXPECT_EQ(all.integers.back().back(), block.entries());
    take(block.indices, entries);
    all.integers.push_back({block.has_values(), block.has_relations(), block.edges.count});
    if (block.has_values()) take(block.values.data(), entries);
    if (block.has_relations()) take(block.relations.data(), entries);
    take(block.edges.entries, static_cast<std::size_t>(block.edges.count));
    take(block.edges.rows, static_cast<std::size_t>(block.edges.count * block.edges.width));
  }
  for (const auto& rows : item.tables) {
    all.integers.push_back({rows.rows, rows.columns});
    take(rows.data, static_cast<std::size_t>(rows.rows * rows.columns));
  }
  take(item.classes.data(), item.classes.size());
  for (const auto* ends : {&item.links.heads, &item.links.tails, &item.links.relations,
                           &item.links.negative_heads, &item.links.negative_tails})
    take(ends->data(), ends->size());
  return all;
}

// Of whoever is not of the library.
Read read(const LoadedBatchOn<Cuda>& item) {
  const auto& made = *item.made;
  const CudaGuest here(made.gpu);
  item.made->arrays.let_read(made.gpu.stream());
  return read(made.gpu, item);
}
Read read(const LoadedBatch& item) {
  return read(Cpu{1}, item);
}

template <class Items>
std::vector<Read> read_all(const Items& items) {
  std::vector<Read> all;
  for (const auto& item : items) all.push_back(read(*item));
  return all;
}

class LoaderOnGpu : public CudaTest {};

TEST_F(LoaderOnGpu, GivesTheItemsOfTheCpu) {
  auto graph = small_graph();
  struct Case {
    const char* sampler;
    std::string more;
    std::int64_t copies;
  };
  for (const auto& [sampler, more, copies] :
       {Case{"graphsage", "train.seed=3", 1}, Case{"labor", "run.cache_memory=1MB", 1},
        Case{"ladies", "train.seed=4", 1}, Case{"graphsage", "train.seed=5", test_world().size()}}) {
    SCOPED_TRACE(std::string(sampler) + " " + more);
    std::vector<Read> expected;
    {
      OpenJob open(loader_config(copies, sampler, more), graph);
      expected = read_all(all_of(*open.load()));
    }
    ASSERT_FALSE(expected.empty());
    OpenJobOn<Cuda> open(loader_config(copies, sampler, more, "cuda"), graph);
    auto on_gpu = open.load();
    EXPECT_EQ(read_all(all_of(*on_gpu)), expected);
    open.queue.run([&] { on_gpu->seek({1, 0}); });
    EXPECT_EQ(read(*on_gpu->next()), expected[0]);
    auto on_host = open.load<Cpu>();
    EXPECT_EQ(read_all(all_of(*on_host)), expected);
    open.queue.run([&] { on_gpu.reset(), on_host.reset(); });
  }
}

TEST_F(LoaderOnGpu, ItemsOutliveTheJobAndGoByAnyThread) {
  auto graph = small_graph();
  std::vector<std::shared_ptr<const LoadedBatchOn<Cuda>>> kept;
  std::vector<Read> given;
  {
    OpenJobOn<Cuda> open(loader_config(1, "graphsage", "train.seed=3", "cuda"), graph);
    auto loader = open.load();
    while (auto item = loader->next()) {
      if (given.size() % 3 == 2) std::thread([gone = std::move(item)]() mutable { gone.reset(); }).join();
      if (item) kept.push_back(item);
      given.push_back(item ? read(*item) : Read{});
    }
    open.queue.run([&] { loader.reset(); });
  }
  std::erase_if(given, [](const Read& of) { return of.integers.empty(); });
  ASSERT_EQ(kept.size(), given.size());
  // Another job, of another thread, which draws over what was freed.
  OpenJobOn<Cuda> open(loader_config(1, "graphsage", "train.seed=5", "cuda"), graph);
  auto loader = open.load({.epochs = 1});
  all_of(*loader);
  for (std::size_t k = 0; k < kept.size(); ++k) EXPECT_EQ(read(*kept[k]), given[k]);
  std::thread([gone = std::move(kept)]() mutable { gone.clear(); }).join();
  open.queue.run([&] { loader.reset(); });
}

// A thread of somebody's own, whose stream waits for nothing but what it is told.
class Reader {
 public:
  explicit Reader(const Cuda& gpu) : gpu_(gpu) {
    queue_.run([&] { const CudaGuest once(gpu_); });
  }
  // Does not wait; `to` stays.
  void begin(const LoadedBatchOn<Cuda>& item) {
    queue_.run([&] {
      item.made->arrays.let_read(gpu_.stream());
      copy(gpu_, item.rows[0].data, copies_.emplace_back());
      const auto& block = item.minibatch.blocks.back();
      copy_bytes_on_device(gpu_, block.indices, indices_.emplace_back(block.entries()).data(),
                           static_cast<std::size_t>(block.entries()) * sizeof(std::int32_t));
    });
  }
  std::vector<Buffer<float>> found() {
    return queue_.run([&] {
      std::vector<Buffer<float>> rows;
      for (const auto& copied : copies_) rows.push_back(download(gpu_, copied));
      copies_.clear(), indices_.clear();
      return rows;
    });
  }

 private:
  Cuda gpu_;
  WorkQueue queue_{true};
  std::vector<DeviceArray<float>> copies_;
  std::vector<DeviceArray<std::int32_t>> indices_;
};

TEST_F(LoaderOnGpu, MemoryWaitsForStreamsThatReadIt) {
  auto graph = small_graph();
  std::vector<Buffer<float>> expected;
  OpenJob on_cpu(loader_config(1, "graphsage"), graph);
  for (const auto& item : all_of(*on_cpu.load({.epochs = 1})))
    if (item->batch >= 0) expected.push_back(item->rows[0].data);
  OpenJobOn<Cuda> open(loader_config(1, "graphsage", "train.seed=3", "cuda"), graph);
  Reader reader(*open.job.device.gpu);
  auto loader = open.load({.epochs = 1});
  while (auto item = loader->next()) {
    if (item->batch >= 0) reader.begin(*item);
    item.reset();  // here, while the other thread's stream has yet to read
  }
  EXPECT_EQ(reader.found(), expected);
  open.queue.run([&] { loader.reset(); });
}

TEST_F(LoaderOnGpu, TwoJobsHaveThreadsAndStreamsOfTheirOwn) {
  auto graph = small_graph();
  const auto config = loader_config(1, "graphsage", "train.seed=3", "cuda"),
             other = loader_config(1, "labor", "train.seed=4", "cuda");
  const auto first = OpenJobOn<Cuda>(config, graph).train(), second = OpenJobOn<Cuda>(other, graph).train();
  OpenJobOn<Cuda> one(config, graph), two(other, graph);
  EXPECT_EQ(two.train(), second);
  EXPECT_EQ(one.train(), first);
}

TEST_F(LoaderOnGpu, LeavesTrainingAlone) {
  auto graph = small_graph();
  const auto config = loader_config(1, "graphsage", "run.overlap=true", "cuda");
  const auto alone = OpenJobOn<Cuda>(config, graph).train();
  OpenJobOn<Cuda> open(config, graph);
  auto loader = open.load();
  std::vector<std::shared_ptr<const LoadedBatchOn<Cuda>>> items;
  auto trainer = open.queue.run(
      [&] { return std::make_unique<TrainerOn<Cuda>>(open.set().space(), open.set().lent()); });
  while (!trainer->done()) {
    bool more = true;
    while (more) {
      more = open.queue.run([&] {
        const bool found = trainer->step();
        trainer->rest();
        return found;
      });
      if (auto item = loader->next()) items.push_back(std::move(item));
    }
    open.queue.run([&] { trainer->end_epoch(); });
  }
  const auto digest = open.queue.run([&] {
    trainer->result();
    return trainer->weights_digest();
  });
  EXPECT_EQ(digest, alone);
  OpenJob on_cpu(loader_config(1, "graphsage", "run.overlap=true"), graph);
  auto expected = read_all(all_of(*on_cpu.load()));
  expected.resize(items.size());
  EXPECT_EQ(read_all(items), expected);
  items.clear();
  open.queue.run([&] { trainer.reset(), loader.reset(); });
}

}  // namespace
}  // namespace espalier
