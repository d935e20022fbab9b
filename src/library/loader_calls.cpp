// espalier.h: loaders and batches.
#include <algorithm>

#include "job_handle_on_gpu.hpp"

using namespace espalier;

namespace {

LoaderOptions options_of(const espalier_loader_options& given) {
  LoaderOptions options;
  if (given.split != nullptr) options.split = given.split;
  if (given.vertices != nullptr)
    options.vertices.emplace(given.vertices, given.vertices + given.vertex_count);
  if (given.fanout != nullptr) options.fanout.assign(given.fanout, given.fanout + given.fanout_count);
  options.batch_size = given.batch_size;
  options.epochs = given.epochs;
  options.ahead = given.ahead;
  if (given.allocate != nullptr)
    options.memory = {[given](std::size_t bytes) { return given.allocate(given.context, bytes); },
                      [given](void* memory) { given.release(given.context, memory); }};
  if ((given.allocate == nullptr) != (given.release == nullptr))
    usage_error("allocate and release are given together{}", "");
  return options;
}

// An array that is there and empty has a place, too.
template <class T>
const T* shown(const T* array) {
  static const T kNothing = {};
  return array == nullptr ? &kNothing : array;
}

template <class Space>
espalier_block view_of(const BlockView<Space>& block) {
  espalier_block view = {};
  view.rows = block.rows, view.columns = block.columns, view.entries = block.entries();
  view.indptr = block.indptr;
  view.indices = shown(block.indices);
  if (block.has_values()) view.values = block.values.data();
  if (block.has_relations()) view.relations = block.relations.data();
  view.edge_count = block.edges.count, view.edge_width = block.edges.width;
  view.edge_entries = block.edges.entries, view.edge_rows = block.edges.rows;
  return view;
}

template <class Space>
std::unique_ptr<espalier_batch> batch_of(std::shared_ptr<const LoadedBatchOn<Space>> item) {
  auto batch = std::make_unique<espalier_batch>();
  for (const auto& block : item->minibatch.blocks) batch->blocks.push_back(view_of(block));
  for (const auto& rows : item->tables) batch->tables.push_back({rows.rows, rows.columns, rows.data});
  for (const auto& run : item->runs) {
    batch->run_begins.push_back(run.begin);
    batch->run_types.push_back(run.type);
  }
  if (!batch->run_begins.empty()) batch->run_begins.push_back(std::ssize(item->minibatch.vertices));
  batch->item = std::move(item);
  return batch;
}

template <class Space>
espalier_batch_view view_of(const espalier_batch& batch, const LoadedBatchOn<Space>& item) {
  espalier_batch_view view = {};
  view.epoch = item.step.epoch, view.step = item.step.step, view.batch = item.batch;
  view.ends_step = item.ends_step ? 1 : 0;
  view.on_gpu = std::is_same_v<Space, Cuda> ? 1 : 0;
  view.scale = item.scale;
  view.layers = static_cast<std::int32_t>(batch.blocks.size());
  view.blocks = batch.blocks.data();
  view.seed_count = item.minibatch.seeds();
  view.vertex_count = std::ssize(item.minibatch.vertices);
  view.vertices = item.minibatch.vertices.data();
  view.table_count = std::ssize(batch.tables);
  view.tables = batch.tables.data();
  if (item.of_classes) view.classes = shown(item.classes.data());
  if (item.labels.columns > 0) {
    view.label_rows = shown(item.labels.data.data());
    view.label_columns = item.labels.columns;
  }
  if (item.of_links) {
    const auto& links = item.links;
    view.link_count = std::ssize(links.heads);
    view.negatives = item.negatives;
    view.heads = shown(links.heads.data()), view.tails = shown(links.tails.data());
    view.link_relations = shown(links.relations.data());
    view.negative_heads = shown(links.negative_heads.data());
    view.negative_tails = shown(links.negative_tails.data());
  }
  if (!batch.run_types.empty()) {
    view.run_count = std::ssize(batch.run_types);
    view.run_begins = batch.run_begins.data();
    view.run_types = batch.run_types.data();
  }
  return view;
}

// A trainer lets go of the thread that samples ahead first.
void begin_loader(espalier_loader& loader) {
  auto* const job = loader.job;
  if (job->trainer) job->queue.add([job] { job->rest(); });
  std::visit([](const auto& of) { of->begin(); }, loader.loader);
}

}  // namespace

int espalier_loader_open(espalier_job* job, const espalier_loader_options* given, espalier_loader** loader) {
  return answer_in_turn(job, [&] {
    *loader = nullptr;
    const auto asked = told(given);
    const auto options = options_of(asked);
    auto handle = std::make_unique<espalier_loader>();
    handle->job = job;
    std::visit(
        [&]<class Space>(const std::unique_ptr<TrainingSetOn<Space>>& set) {
          if (asked.on_host != 0)
            handle->loader = open_loader<Cpu>(job->job, *set, job->queue, options);
          else
            handle->loader = open_loader<Space>(job->job, *set, job->queue, options);
        },
        job->training());
    *loader = job->loaders.emplace_back(std::move(handle)).get();
    return ESPALIER_OK;
  });
}

int espalier_loader_close(espalier_loader* loader) {
  if (loader == nullptr) return ESPALIER_OK;
  auto* const job = loader->job;
  return answer(nullptr, [&] {
    return job->queue.run([&] {
      job->rest();
      std::erase_if(job->loaders, [&](const auto& of) { return of.get() == loader; });
      return ESPALIER_OK;
    });
  });
}

int espalier_loader_facts_of(espalier_loader* loader, espalier_loader_facts* to) {
  return answer(loader->job, [&] {
    const auto& facts = std::visit([](const auto& of) { return of->facts(); }, loader->loader);
    copy_told(to, {0, facts.epochs, facts.batches, facts.steps, facts.batches_per_step, facts.items});
    return ESPALIER_OK;
  });
}

int espalier_loader_seek(espalier_loader* loader, int64_t epoch, int64_t step) {
  return answer_in_turn(loader->job, [&] {
    std::visit([&](const auto& of) { of->seek({epoch, step}); }, loader->loader);
    return ESPALIER_OK;
  });
}

void espalier_loader_stop(espalier_loader* loader) {
  std::visit([](const auto& of) { of->stop(); }, loader->loader);
}

int espalier_loader_begin(espalier_loader* loader) {
  return answer(loader->job, [&] {
    begin_loader(*loader);
    return ESPALIER_OK;
  });
}

int espalier_loader_wait(espalier_loader* loader, double seconds, int32_t* ready) {
  return answer(loader->job, [&] {
    const bool is = std::visit([&](const auto& of) { return of->ready(seconds); }, loader->loader);
    *ready = is ? 1 : 0;
    return ESPALIER_OK;
  });
}

int espalier_loader_next(espalier_loader* loader, espalier_batch** batch) {
  *batch = nullptr;
  return answer(loader->job, [&]() -> int {
    begin_loader(*loader);
    return std::visit(
        [&](const auto& of) -> int {
          auto item = of->next();
          if (!item) return of->stopped() ? ESPALIER_STOPPED : ESPALIER_END;
          *batch = batch_of(std::move(item)).release();
          return ESPALIER_OK;
        },
        loader->loader);
  });
}

int espalier_batch_look(const espalier_batch* batch, espalier_batch_view* to) {
  return answer(nullptr, [&] {
    const auto view = std::visit([&](const auto& item) { return view_of(*batch, *item); }, batch->item);
    copy_told(to, view);
    return ESPALIER_OK;
  });
}

uint64_t espalier_batch_digest(const espalier_batch* batch) {
  std::uint64_t digest = 0;
  answer(nullptr, [&] {
    digest = std::visit([](const auto& item) { return digest_of(*item); }, batch->item);
    return ESPALIER_OK;
  });
  return digest;
}

int espalier_batch_wait(const espalier_batch* batch, void* stream) {
  return answer(nullptr, [&] {
    std::visit(
        [&]<class Space>(const std::shared_ptr<const LoadedBatchOn<Space>>& item) {
          if constexpr (std::is_same_v<Space, Cuda>) {
            const CudaGuest here(item->made->gpu);  // whose default stream a null one is
            item->made->arrays.let_read(static_cast<CUstream_st*>(stream));
          }
        },
        batch->item);
    return ESPALIER_OK;
  });
}

void espalier_batch_free(espalier_batch* batch) {
  delete batch;
}
