// What an inference computes with, as an object: the matrix, rows of input and a trained network
// where the job computes; and the layers that it computes over all vertices.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/infer/layerwise_pass.hpp"
#include "espalier/infer/prediction_list.hpp"
#include "espalier/infer/row_file.hpp"
#include "espalier/job/job.hpp"
#include "espalier/job/job_on_gpu.hpp"
#include "espalier/job/kept_layers.hpp"
#include "espalier/job/named_vertices.hpp"
#include "espalier/job/trained_network.hpp"
#include "espalier/train/evaluator.hpp"
#include "espalier/train/links.hpp"
#include "espalier/train/network_tensors.hpp"
#include "espalier/train/on_host.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

/// How layers are computed.
struct LayerOptions {
  bool sampled = false;     ///< of each vertex a layer reads what sampler.* draws by train.seed,
                            ///< not all neighbours
  std::string resume = {};  ///< a folder that keeps finished layers, on CPUs; empty: none are kept
};

/// Throws UserError(kUsage) where the config has none of what the options ask for; before anything
/// is read.
void check_sampled(const Config& config);

/// The same of `resume`, which is asked when the job is open.
void check_resumed(const Job& job, const std::string& folder);

/// What a pass is given: all neighbours, or what training's sampler draws.
SamplerShape rows_to_read(const Job& job, const LayerOptions& options);

/// What the rows of hidden layers depend on (KeptLayers). `digest`: of the weights.
std::string made_of(const Job& job, const TrainedModel& model, const LayerOptions& options,
                    std::uint64_t digest);

/// Collective. The table of embeddings that the network was trained with, or null.
template <class Space>
std::unique_ptr<EmbeddingStoreOn<Space>> trained_embeddings(const Job& job, const TrainedModel& model,
                                                            const Space& space, const GridOn<Space>& grid) {
  auto store = make_embeddings(job, space, grid);
  if (store == nullptr) return store;
  note_activity("reading the embeddings");
  const auto& weights = model.weights;
  SavedTensors saved(weights.embeddings, model.path);
  const auto find = [&](const std::string& name, std::int64_t rows,
                        std::int64_t columns) -> const StateTensor& {
    if (weights.embeddings.empty() && !weights.no_embeddings.empty())
      input_error("{}: {}; put the one beside it that was written with it", model.path,
                  weights.no_embeddings);
    return saved.take(name, rows, columns);
  };
  agree(job.grid->world(), [&] { store->restore(space, find, /*with_state=*/false); });
  return store;
}

/// What an inference computes with on a space, and stays where it is; so must the job and the
/// model.
template <class Space>
class InferenceSetOn {
 public:
  virtual ~InferenceSetOn() = default;
  InferenceSetOn(const InferenceSetOn&) = delete;
  InferenceSetOn& operator=(const InferenceSetOn&) = delete;

  const Job& job() const { return job_; }
  const TrainedModel& model() const { return model_; }
  const LayerOptions& options() const { return options_; }
  const Space& space() const { return space_; }
  const Network<float, Space>& network() const { return network_.network; }
  /// Part r: the vertices whose rows rank r computes.
  const Ownership& shares() const { return pass_.shares(); }
  /// How many this rank computes.
  std::int64_t rows() const { return pass_.rows(); }
  /// Collective, before compute().
  std::uint64_t weights_digest() const {
    return espalier::weights_digest(job_.grid->world(), trained_weights(space_, network(), input_));
  }

  /// Collective, once: the memory of the input goes with it. The layers, as many as there are
  /// sinks: sinks[l - 1] takes the rows of layer l, or is null; the last is not. `check` may be
  /// empty; it is called on all ranks together when a chunk is done. Throws UserError: kUsage where
  /// rows cannot be spilled, or kept; kDiverged where a sink was given a number that is not finite.
  void compute(const std::vector<RowSinkOn<Space>*>& sinks, const std::function<void()>& check = {});

  /// Collective, when what was computed is written: kept layers go.
  void forget_kept() {
    if (kept_) kept_->remove();
  }

 protected:
  /// `sampler` is made over the matrix of `entries`, and they, `grid` and the `job` must stay.
  InferenceSetOn(const Job& job, const TrainedModel& model, const LayerOptions& options, const Space& space,
                 const GridOn<Space>& grid, std::unique_ptr<SamplerOn<Space>> sampler, EntriesOfRows entries,
                 InputStoresOn<Space> input)
      : job_(job),
        model_(model),
        options_(options),
        space_(space),
        network_(space, model.network),
        input_(std::move(input)),
        sampler_(std::move(sampler)),
        pass_(grid, *sampler_, job.owners.blocks, entries, pass_memory(job), kInferLabel) {
    if (options.sampled) pass_.draw_by(static_cast<std::uint64_t>(job.config.train.seed));
  }

 private:
  const Job& job_;
  const TrainedModel& model_;
  LayerOptions options_;
  const Space& space_;
  PlacedNetwork<Space> network_;
  InputStoresOn<Space> input_;
  std::unique_ptr<SamplerOn<Space>> sampler_;
  LayerwisePassOn<Space> pass_;
  std::unique_ptr<KeptLayers> kept_;
};

/// The matrix of an inference: a base of it, which is made before what reads it.
template <class Index, class Space>
struct MatrixOfInference {
  PlacedMatrix<Index, Space> placed;
};

/// The same for a width of indices.
template <class Index, class Space>
class InferenceSetOver final : MatrixOfInference<Index, Space>, public InferenceSetOn<Space> {
 public:
  /// Collective.
  InferenceSetOver(const Job& job, const TrainedModel& model, const LayerOptions& options, const Space& space,
                   DistCsr<Index> a, InputFeatures features, std::shared_ptr<const EdgeStore> edges)
      : MatrixOfInference<Index, Space>{{job, std::move(a)}},
        InferenceSetOn<Space>{job,
                              model,
                              options,
                              space,
                              this->placed.grid,
                              make_sampler(space, options.sampled ? job.config.sampler.kind : "graphsage",
                                           this->placed.matrix, rows_to_read(job, options)),
                              EntriesOfRows(this->placed.matrix),
                              place_input(job, this->placed.grid, std::move(features), std::move(edges),
                                          trained_embeddings(job, model, space, this->placed.grid))} {}
};

#ifdef ESPALIER_WITH_CUDA
using InferenceSet =
    std::variant<std::unique_ptr<InferenceSetOn<Cpu>>, std::unique_ptr<InferenceSetOn<Cuda>>>;
#else
using InferenceSet = std::variant<std::unique_ptr<InferenceSetOn<Cpu>>>;
#endif

/// Collective. Reads what an inference computes with, which must outlive it; when all was read,
/// read_more() may read what else is wanted of the graph, or refuse.
template <class Read>
InferenceSet open_inference(const Job& job, const TrainedModel& model, const LayerOptions& options,
                            Read read_more) {
  return with_index_type(job.graph.columns, [&](auto index) -> InferenceSet {
    using Index = decltype(index);
    auto a = read_model_matrix<Index>(job);
    auto features = read_job_features(job, model.weights.standardization);
    auto edges = read_job_edges(job);
    read_more();
    return where_it_computes(job, [&](const auto& space) -> InferenceSet {
      using Space = std::remove_cvref_t<decltype(space)>;
      auto set = std::make_unique<InferenceSetOver<Index, Space>>(job, model, options, space, std::move(a),
                                                                  std::move(features), std::move(edges));
      give_back_freed_memory();
      return set;
    });
  });
}

// ---- definitions ----

/// Layers that are kept: begins after those that are done.
void compute_and_keep(const Job& job, KeptLayers& kept, LayerwisePass& pass, InputStores&& input,
                      const Network<float>& network, std::vector<RowSink*> sinks,
                      const std::function<void()>& check);

template <class Space>
void InferenceSetOn<Space>::compute(const std::vector<RowSinkOn<Space>*>& sinks,
                                    const std::function<void()>& check) {
  if (!options_.resume.empty() && sinks.size() >= 2)
    kept_ =
        std::make_unique<KeptLayers>(job_, options_.resume, made_of(job_, model_, options_, weights_digest()),
                                     static_cast<int>(sinks.size()) - 1);
  note_activity("computing the layers");
  if constexpr (std::is_same_v<Space, Cpu>)
    if (kept_) return compute_and_keep(job_, *kept_, pass_, std::move(input_), network(), sinks, check);
  pass_.run(space_, network(), std::move(input_), sinks, [&] {
    note_progress();
    if (check) check();
    return true;
  });
}

// ---- what it answers ----
//
// What an inference answers: the rows of a layer in a file (infer/row_file.hpp), with what they
// predict and how well; scores of links.

struct RowsWanted {
  OutputFile output;
  int layer;                     ///< whose rows, from 1
  std::vector<RowTable> tables;  ///< row_tables()
  bool half = false;             ///< as float16
  bool predictions = false;      ///< those of the tables, too
  bool list = false;             ///< what is predicted for the target's, for PredictionList::write
  const Targets* targets = {};   ///< to evaluate by, or null
};

struct RowsWritten {
  std::optional<PredictionList> list;
  std::optional<Evaluation> found;
  std::int64_t bytes;  ///< that all ranks received
};

/// What the file will hold.
RowFileShape shape_of(const Job& job, const TrainedModel& model, const RowsWanted& wanted);

/// Those of the target, of which a list is.
const RowTable& table_of_target(const Job& job, const RowsWanted& wanted);

/// Attributes that say what made the file.
void describe_rows(ArchiveWriter& archive, const Job& job, const TrainedModel& model,
                   const RowsWanted& wanted, bool sampled, std::uint64_t digest,
                   const std::optional<Evaluation>& found);

/// Collective, once for a set. Computes the layers; the file is there afterwards. Throws UserError
/// as InferenceSetOn::compute and RowFile do.
template <class Space>
RowsWritten write_rows(InferenceSetOn<Space>& set, const RowsWanted& wanted) {
  const auto& job = set.job();
  const auto& model = set.model();
  const auto& world = job.grid->world();
  const auto& task_kind = task_kind_of(job.config.train.task);
  const auto digest = set.weights_digest();
  RowsWritten written = {};
  RowFile file(world, wanted.output, shape_of(job, model, wanted));
  const auto by_vertex = [&](auto take) { return RowsByVertexOn<Space>(set.shares(), world.rank(), take); };
  auto rows = by_vertex([&](auto vertex, const auto&values) { file.write_rows(vertex, values); }),
       predictions =
           by_vertex([&](auto vertex, const auto&logits) { file.write_predictions(vertex, logits); }),
       listing = by_vertex([&](auto vertex, const auto&logits) { written.list->add(vertex, logits); });

  const bool needs_logits = wanted.predictions || wanted.list || wanted.targets != nullptr;
  std::vector<SeveralSinksOn<Space>> layers(needs_logits ? model.layers() : wanted.layer);
  layers[wanted.layer - 1].add(rows);
  if (wanted.predictions) layers.back().add(predictions);
  if (wanted.list) {
    written.list.emplace(table_of_target(job, wanted), task_kind.several_labels);
    written.list->reserve(set.rows());
    layers.back().add(listing);
  }
  std::unique_ptr<TaskOn<Space>> task;
  std::unique_ptr<RowEvaluatorOn<Space>> evaluator;
  if (wanted.targets != nullptr) {
    task = make_task(set.space(), *job.grid, *wanted.targets, job.config.train);
    evaluator = task->evaluator();
    layers.back().add(*evaluator);  // the last of them: it may take the memory
  }
  std::vector<RowSinkOn<Space>*> sinks;
  for (auto& layer : layers) sinks.push_back(layer.or_null());
  set.compute(sinks, [&] { file.check(); });

  note_activity("finishing the file");
  const auto bytes = job.grid->traffic().of_stage(kInferLabel).bytes_received;
  if (evaluator) written.found = evaluator->finish(set.space(), set.network().task_tensors());
  file.commit([&](ArchiveWriter& archive) {
    describe_rows(archive, job, model, wanted, set.options().sampled, digest, written.found);
  });
  written.bytes = world.all_reduce(bytes, Reduction::kSum, "report");
  return written;
}

// Scores of links that are asked about (job/named_vertices.hpp), or the best tails of heads.

struct LinkAnswers {
  std::vector<LinkTriple> links;
  std::vector<float> scores;
  Buffer<std::uint8_t> known;  ///< 1: the file has the link
};

/// Collective, once for a set. The scores of links, which every rank has all of, the same on every
/// grid; with `top` the links of the so many best tails of each head (best_tails). Throws UserError
/// as InferenceSetOn::compute does, and kDiverged where a score is not finite.
template <class Space>
LinkAnswers answer_links(InferenceSetOn<Space>& set, const LinkTargets& targets,
                         std::vector<LinkTriple> links, std::int64_t top = 0) {
  const auto& job = set.job();
  const auto& network = set.network();
  KeptRowsOn<Space> last(set.rows(), network.output_width(network.stages()));
  std::vector<RowSinkOn<Space>*> sinks(static_cast<std::size_t>(network.stages()), nullptr);
  sinks.back() = &last;
  set.compute(sinks);

  note_activity("scoring links");
  Buffer<float> copy;
  const auto rows = last.release();
  const ConstMatrixView<float> own(rows.rows, rows.columns, rows_on_host(set.space(), rows, copy));
  const TensorsOnHost<Space> tensors(set.space(), network.task_tensors());
  const auto& train = job.config.train;
  LinkAnswers answers;
  if (top == 0) {
    answers.scores = score_links(job.cpu, *job.grid, targets, train, own, tensors.views(), links);
    answers.links = std::move(links);
  } else {
    const auto most = std::min(top, job.graph.nodes);
    const auto best = best_tails(job.cpu, *job.grid, targets, train, own, tensors.views(), links, most);
    for (std::size_t k = 0; k < best.size(); ++k) {
      const auto& of = links[k / static_cast<std::size_t>(most)];
      if (best[k].vertex < 0) continue;
      answers.links.push_back({of.head, best[k].vertex, of.relation});
      answers.scores.push_back(best[k].score);
    }
  }
  answers.known = links_of_file(*job.grid, targets).are_known(job.grid->world(), answers.links);
  return answers;
}

}  // namespace espalier
