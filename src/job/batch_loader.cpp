#include "espalier/job/batch_loader.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "espalier/base/named.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/dense/paired_rows.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/sample/copy_minibatch.hpp"
#include "espalier/sample/link_examples.hpp"
#include "espalier/train/step_pipeline.hpp"
#include "espalier/train/targets.hpp"

namespace espalier {

namespace {

// Rows of batches that are done with, for the next ones.
class SpareRows {
 public:
  void put(std::vector<Matrix<float>> tables) {
    const std::lock_guard lock(mutex_);
    if (spare_.size() < kMost) spare_.push_back(std::move(tables));
  }
  // Of the next `count` minibatches, by table.
  void take(std::size_t count, InputMatrices<Cpu>& rows) {
    const std::lock_guard lock(mutex_);
    for (; count > 0 && !spare_.empty(); --count) {
      for (std::size_t k = 0; k < rows.size(); ++k) rows[k].push_back(std::move(spare_.back()[k]));
      spare_.pop_back();
    }
  }
  // The pool of a GPU keeps what was freed.
  void take(std::size_t, InputMatrices<Cuda>&) {}

 private:
  static constexpr std::size_t kMost = 64;
  std::mutex mutex_;
  std::vector<std::vector<Matrix<float>>> spare_;
};

// What is known of seeds by their label indices.
struct SeedLabels {
  bool classes = false;                        // are label indices classes?
  const Matrix<std::uint8_t>* rows = nullptr;  // or places of these
};

// Vertices in order, and what is known of them.
struct Listed {
  Buffer<std::int64_t> vertices;
  Buffer<std::int32_t> label_indices;
  Matrix<std::uint8_t> label_rows;
};

Split split_named(const std::string& name) {
  constexpr Named<Split> kSplits[] = {
      {"train", Split::kTrain}, {"valid", Split::kValid}, {"test", Split::kTest}};
  return entry_named(kSplits, name, "split =").value;
}

// Collective.
Listed list_split(const Job& job, const Targets& targets, Split split) {
  Listed listed;
  listed.vertices = job.file->read_split(split);
  const auto gather = [&](const auto& evaluated, std::int64_t width) {
    return gather_split(*job.grid, targets, split, listed.vertices, evaluated, width);
  };
  if (const auto* one = dynamic_cast<const ClassTargets*>(&targets))
    listed.label_indices = gather(one->evaluated_labels, 1);
  if (const auto* several = dynamic_cast<const LabelTargets*>(&targets)) {
    listed.label_rows.rows = std::ssize(listed.vertices);
    listed.label_rows.columns = targets.outputs;
    listed.label_rows.data = gather(several->evaluated_labels.data, targets.outputs);
    for (std::int64_t k = 0; k < listed.label_rows.rows; ++k)
      listed.label_indices.push_back(static_cast<std::int32_t>(k));
  }
  return listed;
}

// Collective. Ranks that were told other things would wait for each other.
void check_same(const Job& job, const LoaderOptions& options) {
  const auto& world = job.grid->world();
  auto said = fmt::format("{} [{}] {} {} {} {}", options.split, fmt::join(options.fanout, ", "),
                          options.batch_size, options.epochs, options.ahead, options.vertices.has_value());
  if (options.vertices)
    said.append(reinterpret_cast<const char*>(options.vertices->data()),
                options.vertices->size() * sizeof(std::int64_t));
  const auto of_first = world.broadcast_text(said, 0, "setup");
  agree(world, [&] {
    if (said != of_first) usage_error("rank {} was asked for another loader than rank 0", world.rank());
  });
}

void check_options(const Job& job, const LoaderOptions& options) {
  const auto& config = job.config;
  if (config.history.kind != "none")
    usage_error("history.kind = \"{}\" wants the network of `train`: a loader cannot fill it; write \"none\"",
                config.history.kind);
  if (config.model.embedding > 0)
    usage_error("model.embedding = {}: rows that are trained want the network of `train`; leave it out",
                config.model.embedding);
  const bool listed = !options.split.empty() || options.vertices;
  if (!options.split.empty() && options.vertices)
    usage_error("a loader is of a split or of vertices, not of both");
  if (!options.split.empty() && !task_kind_of(config.train.task).of_labels)
    usage_error("split = \"{}\": links have no split of vertices; name vertices", options.split);
  if (options.vertices) {
    auto sorted = *options.vertices;
    std::ranges::sort(sorted);
    for (const auto v : sorted)
      if (v < 0 || v >= job.graph.nodes)
        usage_error("vertex {}: the graph has vertices 0 to {}", v, job.graph.nodes - 1);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      usage_error("vertex {} is named twice; a loader gives each once", *twice);
  }
  if (options.batch_size < 0 || options.epochs < 0 || options.ahead < -1)
    usage_error("batch_size and epochs are 0 or more, ahead -1 or more");
  for (const auto fanout : options.fanout)
    if (fanout < -1 || fanout == 0) usage_error("fanout {}: 1 or more, or -1: whole rows", fanout);
  const bool whole =
      !options.fanout.empty() && std::ranges::all_of(options.fanout, [](auto f) { return f == -1; });
  const auto& kind = sampler_kind_of(config.sampler.kind);
  if (listed && kind.induces && !whole)
    usage_error("sampler.kind = \"{}\" draws sets of all vertices; give a fanout of -1 in each layer",
                kind.name);
  if (!listed && !options.fanout.empty())
    usage_error("fanout: batches of training have the config's, sampler.fanout");
  if (!listed && options.batch_size > 0)
    usage_error("batch_size: batches of training have the config's, sampler.batch_size");
}

// What a loader of vertices draws.
SamplerShape shape_of(const Job& job, const LoaderOptions& options, bool whole) {
  auto shape = sampler_shape(job.config, job.graph, job.grid->ranks());
  if (options.fanout.empty()) return shape;
  const auto layers = options.fanout.size();
  if (whole) {
    shape = whole_rows_shape(shape, "sample");
    if (!shape.relation_fanout.empty()) shape.relation_fanout.resize(layers, shape.relation_fanout[0]);
  } else if (!shape.relation_fanout.empty()) {
    shape.relation_fanout =
        relation_fanouts(job.config.sampler.relation_fanout, options.fanout, job.graph.schema);
  }
  shape.fanout = options.fanout;
  return shape;
}

// What a minibatch points to where its blocks begin at 0.
struct FromZero {
  std::shared_ptr<const void> memory;
  std::shared_ptr<const EdgesOn<Cpu>> edges;
  std::deque<Buffer<std::int64_t>> row_begins;
};

Minibatch from_zero(Minibatch minibatch, const std::shared_ptr<const EdgesOn<Cpu>>& edges) {
  const auto memory = std::make_shared<FromZero>(FromZero{minibatch.memory, edges, {}});
  for (auto& block : minibatch.blocks) {
    const auto first = block.indptr[0];
    if (first == 0) continue;
    auto& begins = memory->row_begins.emplace_back(block.rows + 1);
    copy_from_zero(Cpu{}, block.indptr, block.rows + 1, begins.data());
    block.indptr = begins.data();
    block.indices += first;
    block.values = block.values + first;
    block.relations = block.relations + first;
  }
  minibatch.memory = memory;
  return minibatch;
}

template <class To, class Space>
class LoaderOver final : public BatchLoaderOn<To> {
 public:
  // Collective.
  LoaderOver(const Job& job, const TrainingSetOn<Space>& set, WorkQueue& queue, const LoaderOptions& options)
      : job_(job),
        lent_(set.lent()),
        space_(space_of(job, set.space())),
        queue_(queue),
        listed_(!options.split.empty() || options.vertices),
        memory_(options.memory),
        ahead_(options.ahead >= 0 ? options.ahead : job.config.run.prefetch_steps),
        clock_(space_, timers_) {
    if (!queue.has_thread()) ahead_ = 0;
    auto source = listed_ ? list(set, options) : steps_of(lent_);
    if (!listed_) note_labels(set.targets());
    source.epochs = options.epochs > 0 ? options.epochs : listed_ ? 1 : job.config.train.epochs;
    source.prefetched = ahead_ > 0 ? 1 : 0;
    layers_ = options.fanout.empty() ? std::max<std::int64_t>(1, job.config.model.layers)
                                     : std::ssize(options.fanout);
    source_.emplace(source);
    pipeline_.emplace(space_, *source_, hooks_, clock_);
    const auto plan = plan_of_epoch(*source_, 1);
    const auto S = std::min(source.shape.batches_per_step, std::max<std::int64_t>(1, plan.batches()));
    of_step_ = count_batches(S, job.grid->ranks());
    facts_ = {source.epochs, plan.batches(), plan.steps(), source.shape.batches_per_step,
              plan.steps() * of_step_};
  }
  ~LoaderOver() override {
    queue_.wait();
    pipeline_->leave();
  }

  const LoaderFacts& facts() const override { return facts_; }

  void seek(const Cursor& to) override {
    if (to.epoch < 1 || to.epoch > facts_.epochs + 1 || to.step < 0 || to.step > facts_.steps)
      usage_error("seek: epoch {} and step {} of {} epochs of {} steps; epochs count from 1, steps from 0",
                  to.epoch, to.step, facts_.epochs, facts_.steps);
    queue_.wait();
    asked_.clear();
    pipeline_->leave();
    entered_ = false;
    drawn_ = begun_ = to.step == facts_.steps ? Cursor{to.epoch + 1, 0} : to;
    current_.clear();
    wishes_to_stop_ = stops_ = stopped_ = false;
  }

  void begin() override {
    if (!current_.empty()) return;
    while (std::ssize(asked_) < 1 + ahead_ && begun_.epoch <= facts_.epochs && facts_.steps > 0) {
      auto step = std::make_shared<Items>();
      asked_.push_back({step, queue_.add([this, step] { *step = draw_step(); })});
      if (++begun_.step == facts_.steps) begun_ = {begun_.epoch + 1, 0};
    }
  }

  bool ready(double seconds) override {
    if (!current_.empty() || asked_.empty()) return true;
    return asked_.front().done.wait_for(std::chrono::duration<double>(seconds)) !=
           std::future_status::timeout;
  }

  void stop() override { wishes_to_stop_ = true; }
  bool stopped() const override { return stopped_; }

  std::shared_ptr<const LoadedBatchOn<To>> next() override {
    begin();
    if (current_.empty()) {
      if (asked_.empty()) return nullptr;
      const auto front = std::move(asked_.front());
      asked_.pop_front();
      front.done.get();
      current_ = std::move(*front.items);
      stopped_ = current_.empty();
      if (stopped_) return nullptr;
    }
    auto item = std::move(current_.front());
    current_.pop_front();
    return item;
  }

 private:
  using Item = LoadedBatchOn<To>;
  using Items = std::deque<std::shared_ptr<const Item>>;
  struct Asked {
    std::shared_ptr<Items> items;
    std::shared_future<void> done;
  };

  // One core, but where the config says more: the others are whose batches these are.
  static Cpu space_of(const Job& job, const Cpu& cpu) {
    return {job.asked.run.threads.is_auto() ? 1 : cpu.threads};
  }
  static Cuda space_of(const Job&, const Cuda& cuda) { return cuda; }

  // Collective. Vertices in order, by a sampler of their own.
  StepSourceOn<Space> list(const TrainingSetOn<Space>& set, const LoaderOptions& options) {
    if (options.vertices)
      list_.vertices.assign(options.vertices->begin(), options.vertices->end());
    else
      list_ = list_split(job_, set.targets(), split_named(options.split));
    labels_.classes = !options.vertices && dynamic_cast<const ClassTargets*>(&set.targets()) != nullptr;
    if (list_.label_rows.columns > 0) labels_.rows = &list_.label_rows;
    const bool whole =
        !options.fanout.empty() && std::ranges::all_of(options.fanout, [](auto f) { return f == -1; });
    sampler_ =
        set.make_sampler(whole ? "graphsage" : job_.config.sampler.kind, shape_of(job_, options, whole));
    in_order_.emplace(TrainingVertices{list_.vertices, list_.label_indices});
    const auto ranks = job_.grid->ranks();
    return {
        .grid = lent_.grid,
        .sampler = *sampler_,
        .input = lent_.input,
        .examples = *in_order_,
        .shape = {.batch_size = options.batch_size > 0 ? options.batch_size : job_.config.sampler.batch_size,
                  .batches_per_step = ranks,
                  .ranks = ranks,
                  .seed = static_cast<std::uint64_t>(job_.config.train.seed)},
        .bulk = ranks,
        .caches = caches_of(lent_),
        .ahead = lent_.ahead};
  }

  void note_labels(const Targets& targets) {
    labels_.classes = dynamic_cast<const ClassTargets*>(&targets) != nullptr;
    if (const auto* several = dynamic_cast<const LabelTargets*>(&targets))
      labels_.rows = &several->train_labels;
  }

  // By the queue. The items of the step after the one before; none where ranks stop.
  Items draw_step() {
    const auto& world = job_.grid->world();
    if (!stops_ && world.size() > 1)
      stops_ = world.all_reduce(wishes_to_stop_ ? 1 : 0, Reduction::kMax, "stop") != 0;
    if (stops_ || (world.size() == 1 && wishes_to_stop_)) return {};
    if (!entered_) pipeline_->enter(drawn_);
    entered_ = true;
    const auto& plan = pipeline_->plan();
    const auto begin = plan.step_begin(drawn_.step), end = plan.step_end(drawn_.step);
    InputMatrices<Space> rows(lent_.input.tables());
    spare_->take(plan.kept_by(world.rank(), begin, end).size(), rows);
    const auto edges = std::make_shared<EdgesOn<Space>>();
    auto step = pipeline_->next(rows, *edges);
    const double weight = listed_ ? static_cast<double>(plan.examples().count_seeds(begin, end))
                                  : lent_.task.weight(plan, begin, end);
    std::vector<std::shared_ptr<Item>> items;
    for (std::size_t m = 0; m < step.minibatches.size(); ++m) {
      const auto item = new_item();
      auto& minibatch = step.minibatches[m];
      if (!minibatch.blocks.empty())
        item->runs.assign(minibatch.blocks[0].runs.begin(), minibatch.blocks[0].runs.end());
      if constexpr (std::is_same_v<Space, Cpu>)
        item->minibatch = from_zero(std::move(minibatch), edges);
      else
        item->minibatch = copy_minibatch<To>(space_, minibatch);
      item->batch = item->minibatch.number;
      for (std::size_t k = 0; k < rows.size(); ++k) add_rows(*item, given(dense(k, std::move(rows[k][m]))));
      const auto seeds = plan.batch(item->batch);
      add_labels(*item, seeds.label_indices());
      if (const auto* const links = seeds.links()) add_links(*item, *links);
      plan.examples().release(item->batch);
      items.push_back(item);
    }
    while (std::ssize(items) < of_step_) items.push_back(empty_item());
    for (const auto& item : items) {
      item->step = drawn_;
      item->of_classes = labels_.classes;
      item->of_links = !listed_ && !task_kind_of(job_.config.train.task).of_labels;
      item->negatives = job_.config.train.negatives;
      item->ends_step = item == items.back();
      item->scale = weight > 0 ? job_.grid->ranks() / weight : 0;
      if constexpr (std::is_same_v<To, Cuda>) item->made = std::make_shared<MadeOnGpu>(space_);
    }
    if (++drawn_.step == facts_.steps) {
      drawn_ = {drawn_.epoch + 1, 0};
      entered_ = false;
    }
    return {items.begin(), items.end()};
  }

  // Rows of a table as they are multiplied: pairs become the rows that they stand for.
  Matrix<float, Space> dense(std::size_t table, Matrix<float, Space> rows) const {
    if (tables_[table].pairs == 0) return rows;
    Matrix<float, Space> whole;
    widen_rows(space_, PairedRows<float, Space>{rows, tables_[table].width}, whole);
    return whole;
  }

  Matrix<float, To> given(Matrix<float, Space> rows) const {
    if constexpr (std::is_same_v<Space, To>) {
      return rows;
    } else {
      Matrix<float, To> copy;
      copy.rows = rows.rows, copy.columns = rows.columns;
      copy.data = copy_from(space_, rows.data);
      return copy;
    }
  }

  // Rows of a table, where they are or in memory of the user's.
  void add_rows(Item& item, Matrix<float, To> rows) const {
    if constexpr (std::is_same_v<To, Cpu>)
      if (memory_.allocate && !rows.data.empty()) {
        const auto bytes = rows.data.size() * sizeof(float);
        auto* const lent = static_cast<float*>(memory_.allocate(bytes));
        if (lent == nullptr) throw std::runtime_error("no memory is lent to a loader for rows of features");
        item.lent.emplace_back(lent, memory_.release);
        std::ranges::copy(rows.data, lent);
        item.tables.emplace_back(rows.rows, rows.columns, lent);
        return;
      }
    const auto& own = item.rows.emplace_back(std::move(rows));
    item.tables.emplace_back(own);
  }

  // A copy of what the host has.
  template <class T>
  Array<To, T> given(std::span<const T> values) const {
    if constexpr (std::is_same_v<To, Cuda>)
      return copy_to(space_, values);
    else
      return {values.begin(), values.end()};
  }

  std::shared_ptr<Item> new_item() const {
    return {new Item, [spare = spare_](Item* item) { take_back(item, *spare); }};
  }

  // Rows go back to the spare ones.
  static void take_back(LoadedBatchOn<Cpu>* item, SpareRows& spare) {
    if (std::is_same_v<Space, Cpu> && !item->rows.empty()) spare.put(std::move(item->rows));
    delete item;
  }

  // Of any thread, which frees behind those who read.
  static void take_back(LoadedBatchOn<Cuda>* item, SpareRows&) {
    const auto made = item->made;
    if (!made) {
      delete item;  // it is not given to anyone
      return;
    }
    try {
      const CudaGuest here(made->gpu);
      made->arrays.wait_for_readers(made->gpu);
      delete item;
    } catch (const std::exception&) {
      // The process ends: the driver has gone, and the memory with it.
    }
  }

  std::shared_ptr<Item> empty_item() const {
    static constexpr std::int64_t kNoRows[] = {0};
    static constexpr float kNoValues[] = {0};
    static constexpr std::uint8_t kNoRelations[] = {0};
    const auto item = new_item();
    const auto begins =
        std::make_shared<const Array<To, std::int64_t>>(given(std::span<const std::int64_t>(kNoRows)));
    item->minibatch.memory = begins;
    item->minibatch.blocks.assign(
        static_cast<std::size_t>(layers_),
        BlockView<To>(0, 0, 0, begins->data(), nullptr, Beside<const float>{true, std::span(kNoValues)},
                      {sees_relations(job_.config), std::span(kNoRelations)}));
    for (std::size_t k = 0; k < lent_.input.tables(); ++k)
      item->tables.emplace_back(0, tables_[k].width, nullptr);
    if (labels_.rows != nullptr) item->labels.columns = labels_.rows->columns;
    return item;
  }

  void add_labels(Item& item, std::span<const std::int32_t> indices) const {
    if (labels_.classes) item.classes = given(indices);
    if (labels_.rows == nullptr) return;
    const auto& all = *labels_.rows;
    item.labels.rows = std::ssize(indices);
    item.labels.columns = all.columns;
    Buffer<std::uint8_t> labels(indices.size() * static_cast<std::size_t>(all.columns), kUnknownLabel);
    for (std::size_t k = 0; k < indices.size(); ++k)
      if (indices[k] >= 0) std::copy_n(all.row(indices[k]), all.columns, labels.data() + k * all.columns);
    item.labels.data = given(std::span<const std::uint8_t>(labels));
  }

  void add_links(Item& item, const LinkBatch& links) const {
    const auto place = [&](const Buffer<std::int32_t>& ends) {
      return given(std::span<const std::int32_t>(ends));
    };
    item.links = {place(links.heads), place(links.tails), place(links.relations), place(links.negative_heads),
                  place(links.negative_tails)};
  }

  const Job& job_;
  TrainingJobOn<Space> lent_;
  std::vector<InputTable> tables_ = tables_of(job_);
  Space space_;
  WorkQueue& queue_;
  bool listed_;  // vertices in order, not batches of training
  RowMemory memory_;
  std::int64_t ahead_;  // steps
  Listed list_;
  std::optional<VerticesInOrder> in_order_;
  SeedLabels labels_;
  std::unique_ptr<SamplerOn<Space>> sampler_;  // of what is listed
  StageTimers timers_;
  StageClock<Space> clock_;
  StepHooksOn<Space> hooks_;  // none
  std::optional<StepSourceOn<Space>> source_;
  std::optional<StepPipelineOn<Space>> pipeline_;
  LoaderFacts facts_;
  std::int64_t of_step_ = 1;  // items of a rank
  std::int64_t layers_ = 1;
  std::shared_ptr<SpareRows> spare_ = std::make_shared<SpareRows>();
  // The queue's: the next to be drawn.
  Cursor drawn_;
  bool entered_ = false, stops_ = false;
  std::atomic<bool> wishes_to_stop_ = false;
  // The caller's: the next to be asked for, what was asked for, what is left of a step.
  Cursor begun_;
  bool stopped_ = false;
  std::deque<Asked> asked_;
  Items current_;
};

}  // namespace

std::uint64_t digest_of(const LoadedBatchOn<Cpu>& batch) {
  if (batch.batch < 0) return 0;
  return sample_digest(batch.minibatch) + batch.minibatch.examples_digest;
}

template <class To, class Space>
std::unique_ptr<BatchLoaderOn<To>> open_loader(const Job& job, const TrainingSetOn<Space>& training,
                                               WorkQueue& queue, const LoaderOptions& options) {
  queue.wait();
  check_same(job, options);
  check_options(job, options);
  return std::make_unique<LoaderOver<To, Space>>(job, training, queue, options);
}

template std::unique_ptr<BatchLoader> open_loader<Cpu>(const Job&, const TrainingSetOn<Cpu>&, WorkQueue&,
                                                       const LoaderOptions&);

#ifdef ESPALIER_WITH_CUDA

std::uint64_t digest_of(const LoadedBatchOn<Cuda>& batch) {
  if (batch.batch < 0) return 0;
  const CudaGuest here(batch.made->gpu);
  batch.made->arrays.wait_for_arrays(batch.made->gpu);
  return sample_digests(batch.made->gpu, std::span(&batch.minibatch, 1)) + batch.minibatch.examples_digest;
}

template std::unique_ptr<BatchLoaderOn<Cuda>> open_loader<Cuda>(const Job&, const TrainingSetOn<Cuda>&,
                                                                WorkQueue&, const LoaderOptions&);
template std::unique_ptr<BatchLoader> open_loader<Cpu>(const Job&, const TrainingSetOn<Cuda>&, WorkQueue&,
                                                       const LoaderOptions&);

#endif

}  // namespace espalier
