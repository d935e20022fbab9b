// A job behind the C interface: errors as codes, turns in its queue, what is said of it.
#include "job_handle_on_gpu.hpp"

#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "espalier/base/version.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

thread_local std::string last_error;

int fail(int code, const char* text) {
  last_error = text;
  return code;
}

}  // namespace

int answer(espalier_job* job, const std::function<int()>& work) {
  try {
    if (job != nullptr && !job->problem.empty())
      usage_error("the job has failed ({}); close it", job->problem);
    return work();
  } catch (const UserError& error) {
    return fail(static_cast<int>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    if (job != nullptr) job->problem = "out of memory";
    return fail(ESPALIER_MEMORY, "out of memory; use more ranks, or smaller batches");
  } catch (const std::exception& error) {
    if (job != nullptr) job->problem = error.what();
    return fail(ESPALIER_FAILED, error.what());
  }
}

int answer_in_turn(espalier_job* job, const std::function<int()>& work) {
  return answer(job, [&] { return job->queue.run(work); });
}

std::string describe_job(const espalier_job& of) {
  using Json = nlohmann::ordered_json;
  const auto& job = of.job;
  const auto& graph = job.graph;
  const auto& schema = graph.schema;
  const auto& task = task_kind_of(job.config.train.task);
  Json json = {{"espalier", kVersion},
               {"graph", job.config.graph.file},
               {"graph_digest", nullptr},
               {"nodes", graph.nodes},
               {"edges", graph.edges},
               {"features", graph.features},
               {"classes", graph.classes},
               {"labels", nullptr},
               {"outputs", task.outputs(graph, job.config)},
               {"task", task.name},
               {"train", graph.train},
               {"valid", graph.valid},
               {"test", graph.test},
               {"types", nullptr},
               {"relations", nullptr},
               {"tells_relations", sees_relations(job.config)},
               {"link_relations", nullptr},
               {"negatives", job.config.train.negatives},
               {"tables", Json::array()},
               {"layers", job.config.model.layers},
               {"seed", job.config.train.seed},
               {"epochs", job.config.train.epochs},
               {"batches_per_step", job.batches_per_step()},
               {"rank", of.world.rank()},
               {"ranks", of.world.size()},
               {"threads", job.cpu.threads},
               {"device", job.device.name()},
               {"gpu", nullptr},
               {"warnings", of.warnings},
               {"loads_ahead", of.queue.has_thread()},
               {"config", Json::parse(to_json(job.config))}};
  if (!task.of_labels || graph.has_labels) json["labels"] = task.name;
#ifdef ESPALIER_WITH_CUDA
  if (job.device.gpu) json["gpu"] = job.device.gpu->device();
#endif
  if (const auto digest = graph.content.file) json["graph_digest"] = hex(*digest);
  if (graph.typed) {
    for (const auto& type : schema.types())
      json["types"].push_back({{"name", type.name},
                               {"begin", type.begin},
                               {"end", type.end},
                               {"features", graph.types[json["types"].size()].features}});
    for (int r = 0; r < std::ssize(schema.relations()); ++r) json["relations"].push_back(schema.full_name(r));
  }
  if (!graph.links.names.empty()) json["link_relations"] = graph.links.names;
  for (const auto& table : tables_of(job)) {
    Json types = Json::array();
    for (int t = 0; t < std::ssize(schema.types()); ++t)
      if (table.held.holds_type(t)) types.push_back(t);
    json["tables"].push_back({{"columns", table.width}, {"types", types}});
  }
  return json.dump();
}

}  // namespace espalier

const char* espalier_error(void) {
  return espalier::last_error.c_str();
}

using namespace espalier;

espalier_job::espalier_job(Communicator ranks, const Config& config)
    : world(std::move(ranks)),
      beside(world.duplicate()),
      queue(threads_may_communicate()),
      job(queue.run([&] {
        return open_job(world, config, JobKind::kTrain, {},
                        {.listener = [this](log::Level level, std::string_view words) {
                          if (level >= log::Level::kWarning) warnings.emplace_back(words);
                        }});
      })) {}

void espalier_job::rest() {
  if (trainer) std::visit([](auto& of) { of->rest(); }, *trainer);
}

const TrainingSet& espalier_job::training() {
  rest();
  if (!set) set = open_training(job, [] {});
  return *set;
}

const AnyTrainer& espalier_job::network() {
  const auto& on = training();
  if (!trainer)
    std::visit(
        [&]<class Space>(const std::unique_ptr<TrainingSetOn<Space>>& of) {
          trainer = std::make_unique<TrainerOn<Space>>(of->space(), of->lent());
        },
        on);
  return *trainer;
}
