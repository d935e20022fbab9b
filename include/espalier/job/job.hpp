// A job, opened of a config and a communicator: grid, graph, and the numbers that "auto" stands
// for; what it reads; and its config, from a file and the command line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/base/cores.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/grid.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/infer/layerwise_pass.hpp"
#include "espalier/job/device.hpp"
#include "espalier/job/job_check.hpp"
#include "espalier/nn/network_shape.hpp"
#include "espalier/partition/partition_methods.hpp"
#include "espalier/plan/model_matrix.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/sample/sampler.hpp"
#include "espalier/train/report.hpp"

namespace espalier {

/// Who owns which vertex.
struct VertexOwners {
  Ownership blocks;                           ///< a part for each block row
  std::optional<VertexPartitionInfo> order;   ///< what they were cut from, with graph.order
  std::optional<EdgeCut> cut;                 ///< which block row has which entry, with graph.cut
  std::shared_ptr<const BatchGroups> groups;  ///< of training examples, with local batches
};

/// What a command does beyond what its kind and config say.
struct OfCommand {
  bool evaluates = false;       ///< an inference that reads labels, or links, to evaluate by
  bool answers = false;         ///< an inference that is asked about links
  bool lists = false;           ///< an inference that keeps what it predicts, for a list
  log::Listener listener = {};  ///< who is told, by rank 0, what people should know of the job
};

struct Job {
  Config asked;   ///< as the file and the command line say
  Config config;  ///< resolved: threads and replication are numbers; so are bulk and
                  ///< batches_per_step, but in kInfer
  JobKind kind = JobKind::kTrain;
  OfCommand command;
  bool begins_anew = false;  ///< kTrain: checkpoints of an earlier run in output.dir go
  Cpu cpu;
  Threads threads;  ///< of cpu, and who says so
  Device device;
  std::int64_t memory_limit = 0;    ///< bytes of host memory per rank
  std::string spill;                ///< where rows of hidden layers go; empty: they stay in memory
  bool samples_ahead = false;       ///< are two windows of minibatches in memory?
  std::unique_ptr<GraphFile> file;  ///< open until RunOutput::start
  GraphInfo graph;
  bool verified = false;            ///< was what was read checked against digests in the file?
                                    ///< Known from RunOutput::start on
  Standardization standardization;  ///< of the features, once they were read
  std::unique_ptr<Grid> grid;
  VertexOwners owners;
  bool sees_no_neighbours = false;      ///< kTrain: does no message reach a training vertex?
  std::vector<std::int64_t> by_degree;  ///< vertices, with run.cache_memory (rows_by_degree)
  std::unique_ptr<Grid> sampling_grid;  ///< a second one for the thread that samples ahead
                                        ///< (run.overlap), or null

  /// To the listener of rank 0.
  template <class... Args>
  void tell(log::Level level, fmt::format_string<Args...> format, Args&&... args) const {
    if (grid->world().rank() == 0) log::tell(command.listener, level, format, std::forward<Args>(args)...);
  }

  /// The grid of the matrix and the samplers over it.
  const Grid& matrix_grid() const { return sampling_grid ? *sampling_grid : *grid; }
  std::int64_t bulk() const { return *config.sampler.bulk.value; }
  std::int64_t batches_per_step() const { return *config.train.batches_per_step.value; }
};

/// How a job looks at its graph.
GraphView view_of(const Config& config);

/// Collective. graph.cut, with one. Throws as read_edge_parts_info and check_cut do.
std::optional<EdgeCut> read_job_cut(const Communicator& world, const Config& config, const GraphFile& file);

/// Collective. graph.order, with one. Throws as read_order and check_order do.
std::optional<Order> read_job_order(const Communicator& world, const Config& config, const GraphFile& file);

/// Collective. Fills in who owns what on a grid with so many block rows, by the order or in ranges,
/// and the groups of local batches.
void own_vertices(const Communicator& world, VertexOwners& owners, const std::optional<Order>& order,
                  const GraphFile& file, const Config& config, int rows);

/// What the network reads of the graph, and in which tables it lies.
InputShape input_of(const Job& job);
std::vector<InputTable> tables_of(const Job& job);

/// Is the matrix that of all relations, beside each other?
bool sees_relations(const Config& config);

/// What a job reads where it lies in each rank's memory, not in files.
struct InMemory {
  hdf5::WrittenBytes& graph;
  const Order* order = nullptr;  ///< null: the config's
};

/// What an earlier run says to a job that reads its weights, or goes on from its checkpoint.
struct EarlierRun {
  std::string path = {};                     ///< of the file
  std::optional<std::int64_t> classes = {};  ///< of the network; the graph may name fewer, or none
  // What counts where the config does not say:
  std::string target = {};        ///< graph.target
  AutoInt batches_per_step = {};  ///< train.batches_per_step: another number of ranks goes on with
                                  ///< the same steps
};

/// Collective. Opens the graph, resolves what "auto" stands for, and checks the job (check_job):
/// all that the config comes to is settled here. Writes nothing. `memory`: null where the config's
/// files are meant.
Job open_job(const Communicator& world, const Config& asked, JobKind kind, const EarlierRun& earlier = {},
             const OfCommand& command = {}, const InMemory* memory = nullptr);

/// The matrix of the job (model_matrix). Collective.
template <class Index>
DistCsr<Index> read_model_matrix(const Grid& grid, const GraphFile& file, const Ownership& rows,
                                 const Config& config, const EdgeCut* cut = nullptr) {
  note_activity("reading the edges");
  return model_matrix(cut != nullptr && grid.rows() > 1 ? read_cut_csr<Index>(grid, file, rows, *cut)
                                                        : read_dist_csr<Index>(grid, file, rows),
                      config);
}
template <class Index>
DistCsr<Index> read_model_matrix(const Job& job) {
  const InterleavedPages interleaved(job.cpu.threads);
  const bool replicated = job.config.grid.replicates();
  auto a = read_model_matrix<Index>(job.matrix_grid(), *job.file,
                                    replicated ? block_partition(job.graph.nodes, 1) : job.owners.blocks,
                                    job.config, job.owners.cut ? &*job.owners.cut : nullptr);
  if (job.owners.cut) check_cut(job.owners.cut->info, *job.file, job.config.graph.cut);
  if (job.owners.order) check_order(*job.owners.order, *job.file, job.config.graph.order);
  for (const auto& [name, bytes] : topology_arrays(a))
    job.tell(log::Level::kDebug,
             "topology  {:<22}{:>14} bytes over the ranks of a process column, {:.2f} an entry", name, bytes,
             static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(job.graph.edges, 1)));
  return a;
}

/// "ladies (debiased) fanout 512,512".
std::string sampler_in_words(const Config& config);

std::vector<std::string> names_of(const std::vector<Schedule>& schedules);

/// The parts of a report that are known before the first epoch.
RunReport start_report(const Job& job, const char* command, const std::vector<Schedule>& schedules);

/// Collective. The peaks of memory, of the host and of the GPU.
void measure_peak_memory(const Job& job, RunReport& report);

/// What decides how much memory the job takes on so many ranks (memory.hpp).
JobSize size_of(const Job& job, std::int64_t ranks);

/// What exact evaluation, or an inference, may hold.
PassMemory pass_memory(const Job& job);

/// Do ranks of a node read each other's features?
bool shares_features(const Job& job);
/// With GPUs: does the block of the matrix, or of the features, go to the memory of the GPU?
/// Otherwise kernels read it in pinned memory of the host.
bool topology_on_device(const Job& job);
/// Collective. The tables of features, as graph.feature_norm and graph.features_on say;
/// `standard`: as for read_features.
InputFeatures read_job_features(const Job& job, const Standardization& standard = {});

/// Collective. Features of edges, where the network reads them, or null.
std::shared_ptr<const EdgeStore> read_job_edges(const Job& job);

/// The table of embeddings as it begins, or null. Not collective.
template <class Space>
std::unique_ptr<EmbeddingStoreOn<Space>> make_embeddings(const Job& job, const Space& space,
                                                         const GridOn<Space>& grid) {
  const auto tables = tables_of(job);
  if (tables.empty() || !tables.back().trainable) return nullptr;
  const InterleavedPages interleaved(job.cpu.threads);
  const auto& train = job.config.train;
  return std::make_unique<EmbeddingStoreOn<Space>>(
      space, grid, job.owners.blocks, tables.back(), job.graph.schema,
      EmbeddingOptions{.optimizer = train.embedding_optimizer,
                       .seed = static_cast<std::uint64_t>(train.seed)});
}

// The config of a job, from its file and the command line.

/// Collective. Rank 0 reads the config file; every rank gets the same config. Refuses what this
/// program cannot do (check_job, Moment::kConfig), and, unless a graph is not needed, one that
/// names none. `overrides`: "section.key=value", which win over the file.
Config load_job_config(const Communicator& world, const std::string& path,
                       const std::vector<std::string>& overrides, bool needs_graph = true);

}  // namespace espalier
