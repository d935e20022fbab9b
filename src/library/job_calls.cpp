// espalier.h: of the process, of a job, of its network.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "espalier/base/text.hpp"
#include "espalier/base/version.hpp"
#include "espalier/comm/owners.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/train/on_host.hpp"
#include "job_handle_on_gpu.hpp"

using namespace espalier;

namespace {

std::optional<int> handle_of(const espalier_open_options& options) {
  if (options.has_communicator == 0) return {};
  return options.communicator;
}

// MPI's handles mean something to the library that gave them alone.
void check_mpi(const espalier_open_options& options) {
  if (options.mpi_library == nullptr || !mpi_is_running()) return;
  const auto ours = mpi_library();
  if (ours != options.mpi_library)
    usage_error("the communicator is of another MPI library ({}) than libespalier.so was linked with ({})",
                std::string_view(options.mpi_library).substr(0, 60), std::string_view(ours).substr(0, 60));
}

// Collective. As a command reads it: by rank 0, for all.
Config read_config(const Communicator& world, const espalier_open_options& options) {
  const int configs = (options.config_path != nullptr) + (options.config_text != nullptr);
  if (configs == 2 || (configs == 0 && options.key_count == 0))
    usage_error("a job is opened of a config's path or of its text, and of keys{}", "");
  const std::string source = options.config_path != nullptr ? options.config_path : "the config";
  std::string text = options.config_text != nullptr ? options.config_text : "";
  if (options.config_path != nullptr) {
    agree(world, [&] {
      if (world.rank() == 0) text = read_input_text(source, "config file");
    });
    text = world.broadcast_text(text, 0, "setup");
  }
  const std::vector<std::string> keys(options.keys, options.keys + options.key_count);
  // What ranks do not agree on is an error of all of them.
  std::string given = text;
  for (const auto& key : keys) given += '\0' + key;
  const auto of_first = world.broadcast_text(given, 0, "setup");
  agree(world, [&] {
    if (given != of_first) usage_error("rank {} was given another config than rank 0", world.rank());
  });
  Config config;
  agree(world, [&] { config = parse_config(text, source, keys); });
  check_job(Moment::kConfig, {.world = world, .config = config, .source = source});
  if (config.graph.file.empty()) usage_error("{}: graph.file is missing", source);
  return config;
}

// Of an empty split there is none.
double metric_of(const Metrics& metrics, const Config& config) {
  if (metrics.vertices == 0) return std::nan("");
  return metrics.find(espalier::metric_of(config.train).name).value_or(std::nan(""));
}

void tell(espalier_epoch* to, const espalier_epoch& epoch) {
  if (to != nullptr) copy_told(to, epoch);
}

}  // namespace

const char* espalier_version(void) {
  return kVersion;
}

int espalier_world(int* rank, int* ranks) {
  return answer(nullptr, [&] {
    if (!mpi_is_running()) join_session({});
    *rank = failure_context().rank, *ranks = failure_context().ranks;
    return ESPALIER_OK;
  });
}

int espalier_is_launched(void) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return 1;
  return mpi_is_running() ? 1 : 0;
}

void espalier_abort(int code, const char* message) {
  fail_job(static_cast<ExitCode>(code), message);
}

int espalier_open(const espalier_open_options* given, espalier_job** job) {
  return answer(nullptr, [&] {
    const auto options = told(given);
    *job = nullptr;
    check_mpi(options);
    auto world = join_session(handle_of(options));
    check_mpi(options);
    const auto config = read_config(world, options);
    *job = new espalier_job(std::move(world), config);
    return ESPALIER_OK;
  });
}

int espalier_close(espalier_job* job) {
  if (job == nullptr) return ESPALIER_OK;
  return answer(nullptr, [&] {
    std::unique_ptr<espalier_job> handle(job);
    return handle->queue.run([&] {
      handle->rest();
      handle->loaders.clear();
      handle->trainer.reset();
      handle->set.reset();
      return ESPALIER_OK;
    });
  });
}

const char* espalier_describe(espalier_job* job) {
  const auto describe = [&] {
    job->about = describe_job(*job);
    return ESPALIER_OK;
  };
  return answer(job, describe) == ESPALIER_OK ? job->about.c_str() : nullptr;
}

int espalier_sum(espalier_job* job, double* values, int64_t count) {
  return answer(job, [&] {
    job->beside.all_reduce(std::span(values, static_cast<std::size_t>(count)), Reduction::kSum, "sum");
    return ESPALIER_OK;
  });
}

namespace {

// Calls use(trainer) with that of the job, in its turn.
template <class Use>
int with_trainer(espalier_job* job, const Use& use) {
  return answer_in_turn(job, [&] {
    job->rest();
    return std::visit([&](auto& trainer) -> int { return use(*trainer); }, job->network());
  });
}

espalier_epoch metrics_of(const espalier_job& job, const Metrics* train, const Metrics* valid,
                          const Metrics* test) {
  const auto metric = [&](const Metrics* of) {
    return of == nullptr ? std::nan("") : metric_of(*of, job.job.config);
  };
  espalier_epoch epoch = {};
  epoch.loss = std::nan("");
  epoch.train = metric(train), epoch.valid = metric(valid), epoch.test = metric(test);
  return epoch;
}

}  // namespace

int espalier_train_step(espalier_job* job, int32_t* more) {
  return with_trainer(job, [&](auto& trainer) {
    *more = 0;
    if (job->trained || trainer.done()) return ESPALIER_END;
    *more = trainer.step() ? 1 : 0;
    return ESPALIER_OK;
  });
}

int espalier_train_epoch(espalier_job* job, espalier_epoch* to) {
  return with_trainer(job, [&](auto& trainer) {
    if (job->trained || trainer.done()) return ESPALIER_END;
    while (trainer.step()) continue;
    const auto report = trainer.end_epoch();
    auto epoch = metrics_of(*job, report.train ? &*report.train : nullptr,
                            report.valid ? &*report.valid : nullptr, nullptr);
    epoch.epoch = report.epoch;
    epoch.loss = report.loss.value_or(std::nan(""));
    epoch.best_epoch = trainer.best_epoch();
    epoch.digest = report.counts.digest;
    tell(to, epoch);
    return ESPALIER_OK;
  });
}

int espalier_train_end(espalier_job* job) {
  return with_trainer(job, [&](auto& trainer) {
    trainer.result();
    job->trained = true;
    return ESPALIER_OK;
  });
}

int espalier_evaluate(espalier_job* job, espalier_epoch* to) {
  return with_trainer(job, [&](auto& trainer) {
    const auto found = trainer.evaluate_now();
    auto epoch = metrics_of(*job, &found.train, &found.valid, &found.test);
    epoch.epoch = trainer.cursor().epoch;
    epoch.best_epoch = trainer.best_epoch();
    tell(to, epoch);
    return ESPALIER_OK;
  });
}

int espalier_infer(espalier_job* job, const int64_t* vertices, int64_t count, float* outputs) {
  return with_trainer(job, [&]<class Space>(TrainerOn<Space>& trainer) {
    const auto& set = *std::get<std::unique_ptr<TrainingSetOn<Space>>>(job->training());
    const auto lent = set.lent();
    const auto& world = job->world;
    const std::span ids(vertices, static_cast<std::size_t>(count));
    agree(world, [&] {
      for (const auto v : ids)
        if (v < 0 || v >= job->job.graph.nodes)
          usage_error("vertex {}: the graph has vertices 0 to {}", v, job->job.graph.nodes - 1);
    });
    const auto& shares = lent.evaluator.shares();
    const auto width = lent.task.outputs();
    KeptRowsOn<Space> kept(shares.size(world.rank()), width);
    lent.evaluator.infer(set.space(), trainer.network(), kept);
    const auto computed = kept.release();
    Buffer<float> copy;
    const float* const rows = rows_on_host(set.space(), computed, copy);
    const auto found = answers_of_owners<float>(
        world, ids, [&](std::int64_t v) { return shares.owner(v); },
        [&](std::int64_t v, float* to) { std::copy_n(rows + shares.local(v) * width, width, to); }, "infer",
        width);
    std::ranges::copy(found, outputs);
    return ESPALIER_OK;
  });
}

namespace {

// Calls use(space, name, matrix) with the tensor at a place, in the job's turn; ESPALIER_END:
// there is none.
template <class Use>
int with_tensor(espalier_job* job, int64_t place, const Use& use) {
  return answer_in_turn(job, [&]() -> int {
    if (!job->trainer) job->rest();
    const auto find = [&]<class Space>(const std::unique_ptr<TrainerOn<Space>>& trainer) -> int {
      const auto& set = *std::get<std::unique_ptr<TrainingSetOn<Space>>>(*job->set);
      bool found = false;
      visit_trained(trainer->network(), [&](const std::string& name, Matrix<float, Space>& tensor) {
        if (place-- != 0) return;
        use(set.space(), name, tensor);
        found = true;
      });
      return found ? ESPALIER_OK : ESPALIER_END;
    };
    return std::visit(find, job->network());
  });
}

int with_named_tensor(int code, int64_t place) {
  if (code != ESPALIER_END) return code;
  return answer(nullptr, [&]() -> int { usage_error("there is no tensor {}", place); });
}

}  // namespace

int espalier_tensor_at(espalier_job* job, int64_t place, espalier_tensor* to) {
  static thread_local std::string kept;
  espalier_tensor tensor = {};
  std::string name;
  const int code = with_tensor(job, place, [&](const auto&, const std::string& of, const auto& matrix) {
    name = of;
    tensor.rows = matrix.rows, tensor.columns = matrix.columns;
  });
  if (code != ESPALIER_OK) return code;
  return answer(nullptr, [&] {
    kept = name;
    tensor.name = kept.c_str();
    copy_told(to, tensor);
    return ESPALIER_OK;
  });
}

int espalier_tensor_read(espalier_job* job, int64_t place, float* values) {
  return with_named_tensor(with_tensor(job, place,
                                       [&](const auto& space, const std::string&, const auto& of) {
                                         copy_from(space, of.data.data(), std::ssize(of.data), values);
                                       }),
                           place);
}

int espalier_tensor_write(espalier_job* job, int64_t place, const float* values) {
  return with_named_tensor(with_tensor(job, place,
                                       [&](const auto& space, const std::string&, auto& of) {
                                         copy_to(space, values, std::ssize(of.data), of.data.data());
                                       }),
                           place);
}
