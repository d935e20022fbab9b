// espalier.h: loaders and batches.
#include <algorithm>

#include "espalier/sample/link_examples.hpp"
#include "job_handle_on_gpu.hpp"
#include "told.hpp"

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
  return options;
}

// An array that is there and empty has a place, too.
template <class T>
const T* shown(const Buffer<T>& array) {
  static const T kNothing = {};
  return array.empty() ? &kNothing : array.data();
}

// Where rows of a block begin, from 0: its own list, or a copy.
const std::int64_t* row_begins(const BlockView<Cpu>& block, std::vector<Buffer<std::int64_t>>& copies) {
  if (block.indptr[0] == 0) return block.indptr;
  auto& copy = copies.emplace_back(block.indptr, block.indptr + block.rows + 1);
  for (auto& begin : copy) begin -= block.indptr[0];
  return copy.data();
}

espalier_block view_of(const BlockView<Cpu>& block, std::vector<Buffer<std::int64_t>>& copies) {
  const auto first = block.indptr[0];
  espalier_block view = {};
  view.rows = block.rows, view.columns = block.columns, view.entries = block.entries();
  view.indptr = row_begins(block, copies);
  view.indices = block.indices + first;
  static const std::uint8_t kNothing[8] = {};  // as shown() has it
  if (view.indices == nullptr) view.indices = reinterpret_cast<const std::int32_t*>(kNothing);
  if (block.has_values()) view.values = block.values.data() + first;
  if (block.has_relations()) view.relations = block.relations.data() + first;
  view.edge_count = block.edges.count, view.edge_width = block.edges.width;
  view.edge_entries = block.edges.entries, view.edge_rows = block.edges.rows;
  return view;
}

std::unique_ptr<espalier_batch> batch_of(std::shared_ptr<const LoadedBatch> item) {
  auto batch = std::make_unique<espalier_batch>();
  batch->item = std::move(item);
  const auto& minibatch = batch->item->minibatch;
  batch->indptr.reserve(minibatch.blocks.size());
  for (const auto& block : minibatch.blocks) batch->blocks.push_back(view_of(block, batch->indptr));
  for (const auto& rows : batch->item->tables)
    batch->tables.push_back({rows.rows, rows.columns, rows.data.data()});
  if (!minibatch.blocks.empty())
    for (const auto& run : minibatch.blocks[0].runs) {
      batch->run_begins.push_back(run.begin);
      batch->run_types.push_back(run.type);
    }
  if (!batch->run_begins.empty()) batch->run_begins.push_back(std::ssize(minibatch.vertices));
  return batch;
}

}  // namespace

int espalier_loader_open(espalier_job* job, const espalier_loader_options* given, espalier_loader** loader) {
  return answer(job, [&] {
    *loader = nullptr;
    const auto options = options_of(told(given));
    const auto& set = job->on_cpu();
    auto handle = std::make_unique<espalier_loader>();
    handle->job = job;
    handle->loader = open_loader(job->job, set, job->queue, options);
    *loader = job->loaders.emplace_back(std::move(handle)).get();
    return ESPALIER_OK;
  });
}

int espalier_loader_close(espalier_loader* loader) {
  if (loader == nullptr) return ESPALIER_OK;
  auto* const job = loader->job;
  return answer(nullptr, [&] {
    job->rest();
    std::erase_if(job->loaders, [&](const auto& of) { return of.get() == loader; });
    return ESPALIER_OK;
  });
}

int espalier_loader_facts_of(espalier_loader* loader, espalier_loader_facts* to) {
  return answer(loader->job, [&] {
    const auto& facts = loader->loader->facts();
    copy_told(to, {0, facts.epochs, facts.batches, facts.steps, facts.batches_per_step, facts.items});
    return ESPALIER_OK;
  });
}

int espalier_loader_seek(espalier_loader* loader, int64_t epoch, int64_t step) {
  return answer(loader->job, [&] {
    loader->loader->seek({epoch, step});
    return ESPALIER_OK;
  });
}

int espalier_loader_begin(espalier_loader* loader) {
  return answer(loader->job, [&] {
    if (loader->job->trainer) loader->job->trainer->rest();
    loader->loader->begin();
    return ESPALIER_OK;
  });
}

int espalier_loader_wait(espalier_loader* loader, double seconds, int32_t* ready) {
  return answer(loader->job, [&] {
    *ready = loader->loader->ready(seconds) ? 1 : 0;
    return ESPALIER_OK;
  });
}

int espalier_loader_next(espalier_loader* loader, espalier_batch** batch) {
  *batch = nullptr;
  return answer(loader->job, [&]() -> int {
    if (loader->job->trainer) loader->job->trainer->rest();
    auto item = loader->loader->next();
    if (!item) return ESPALIER_END;
    *batch = batch_of(std::move(item)).release();
    return ESPALIER_OK;
  });
}

int espalier_batch_look(const espalier_batch* batch, espalier_batch_view* to) {
  return answer(nullptr, [&] {
    const auto& item = *batch->item;
    espalier_batch_view view = {};
    view.epoch = item.step.epoch, view.step = item.step.step, view.batch = item.batch;
    view.ends_step = item.ends_step ? 1 : 0;
    view.scale = item.scale;
    view.layers = static_cast<std::int32_t>(batch->blocks.size());
    view.blocks = batch->blocks.data();
    view.seed_count = item.minibatch.seeds();
    view.vertex_count = std::ssize(item.minibatch.vertices);
    view.vertices = item.minibatch.vertices.data();
    view.table_count = std::ssize(batch->tables);
    view.tables = batch->tables.data();
    if (item.of_classes) view.classes = shown(item.classes);
    if (item.labels.columns > 0) {
      view.label_rows = shown(item.labels.data);
      view.label_columns = item.labels.columns;
    }
    if (item.of_links) {
      static const LinkBatch kNone = {};
      const auto& links = item.seeds.links() != nullptr ? *item.seeds.links() : kNone;
      view.link_count = links.links();
      view.negatives = item.negatives;
      view.heads = shown(links.heads), view.tails = shown(links.tails);
      view.link_relations = shown(links.relations);
      view.negative_heads = shown(links.negative_heads);
      view.negative_tails = shown(links.negative_tails);
    }
    if (!batch->run_types.empty()) {
      view.run_count = std::ssize(batch->run_types);
      view.run_begins = batch->run_begins.data();
      view.run_types = batch->run_types.data();
    }
    copy_told(to, view);
    return ESPALIER_OK;
  });
}

uint64_t espalier_batch_digest(const espalier_batch* batch) {
  if (batch->item->batch < 0) return 0;
  return sample_digest(batch->item->minibatch) + batch->item->minibatch.examples_digest;
}

void espalier_batch_free(espalier_batch* batch) {
  delete batch;
}
