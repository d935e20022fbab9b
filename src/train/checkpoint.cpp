#include "espalier/train/checkpoint.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/archive.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

constexpr ArchiveFormat kFormat = {.name = "espalier-checkpoint",
                                   .noun = "checkpoint",
                                   .version = 2,
                                   .earlier =
                                       ": its run drew other random numbers; begin anew (run.restart = "
                                       "\"never\"), or infer from its weights.h5"};

// The attributes that all have, by one list for both directions.
template <class Archive, class State>
void visit_attributes(Archive&& archive, State& c) {
  archive("epoch", c.state.cursor.epoch);
  archive("step", c.state.cursor.step);
  archive("ranks", c.ranks);
  archive("seed", c.seed);
  archive("optimizer_steps", c.state.optimizer_steps);
  archive("best_epoch", c.state.best_epoch);
  archive("best_metric", c.state.best_metric);
  archive("evaluations_without_gain", c.state.evaluations_without_gain);
  archive("sample_digest", c.state.counts.digest);
  archive("batches", c.state.counts.batches);
  archive("sampled_edges", c.state.counts.sampled_edges);
  archive("input_rows", c.state.counts.input_rows);
  archive("groups", c.groups);
}

constexpr const char *kConfusion = "test_confusion",  // counts as a list of JSON, row after row
    *kTestVertices = "test_vertices", *kEpochs = "history";

std::string test_name(const std::string& metric) {
  return "test_" + metric;
}

}  // namespace

void write_checkpoint(const Communicator& world, const Checkpoint& checkpoint, const std::string& path) {
  const auto& state = checkpoint.state;
  write_sealed(world, kFormat, path, state.tensors, [&](ArchiveWriter& archive) {
    write_trained_on(archive, checkpoint);
    visit_attributes(archive, checkpoint);
    for (const auto& [name, count] : state.counters) archive(name, count);
    if (state.test) {
      for (const auto& score : state.test->scores) archive(test_name(score.name), score.value);
      archive(kTestVertices, state.test->vertices);
      archive(kConfusion, nlohmann::json(state.confusion).dump());
    }
    archive(kEpochs, epochs_to_json(checkpoint.epochs));
    archive.numbers("/losses", {std::ssize(state.losses)}, state.losses);
  });
}

namespace {

// Not collective.
Checkpoint read_whole_file(const std::string& path) {
  const ArchiveReader archive(kFormat, path);
  Checkpoint checkpoint{read_trained_on(archive), {}, {}};
  auto& state = checkpoint.state;
  std::set<std::string> taken = {"version"};
  const auto read = [&](const std::string& name, auto& value) {
    taken.insert(name);
    archive(name, value);
  };
  visit_attributes(read, checkpoint);
  // The test split, by the metrics of its task; one that is new, or that not every evaluation has,
  // may be missing.
  for (const auto* task : task_kinds()) {
    if (!archive.has(test_name(task->metrics.front().name))) continue;
    auto& test = state.test.emplace();
    for (const auto& metric : task->metrics)
      if (archive.has(test_name(metric.name)))
        read(test_name(metric.name), test.scores.emplace_back(metric.name, 0.0).value);
    read(kTestVertices, test.vertices);
  }
  for (const auto& name : hdf5::attribute_names(archive.file()))
    if (std::int64_t count = 0;
        !taken.contains(name) && hdf5::read_integer_attribute(archive.file(), name.c_str(), count))
      state.counters[name] = count;
  if (state.test)
    archive.understand(kConfusion, [&](const std::string& text) {
      state.confusion = nlohmann::json::parse(text).get<std::vector<std::int64_t>>();
    });
  archive.understand(kEpochs, [&](const std::string& text) { checkpoint.epochs = epochs_from_json(text); });
  for (const auto& name : hdf5::dataset_names(archive.file()))
    if (name != "losses" && !name.starts_with("features/") && !is_of_columns(name))
      state.tensors.push_back(archive.tensor(name));
  state.losses = archive.array<double>("/losses", {-1});
  return checkpoint;
}

}  // namespace

Checkpoint read_checkpoint(const Communicator& world, const std::string& path) {
  check_seal(world, kFormat, path);
  Checkpoint checkpoint;
  agree(world, [&] { checkpoint = read_whole_file(path); });
  return checkpoint;
}

}  // namespace espalier
