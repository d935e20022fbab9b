#include "espalier/job/minibatch_folder.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "espalier/base/text.hpp"
#include "espalier/base/version.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/train/targets.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char *kIndex = "minibatches.json", *kPartBegin = "minibatches-", *kPartEnd = ".bin";

std::string part_name(std::int64_t rank) {
  return fmt::format("{}{:05}{}", kPartBegin, rank, kPartEnd);
}

bool is_part_name(const std::string& name) {
  std::int64_t rank = 0;
  const auto* const digits = name.data() + std::min(name.size(), std::string_view(kPartBegin).size());
  std::from_chars(digits, name.data() + name.size(), rank);
  return name == part_name(rank);
}

// Of a graph with types: what its ids and relations are of.
void add_types(const GraphInfo& graph, Json& json) {
  const auto& schema = graph.schema;
  for (std::size_t t = 0; t < schema.types().size(); ++t) {
    const auto& type = schema.types()[t];
    json["types"].push_back({{"name", type.name},
                             {"begin", type.begin},
                             {"end", type.end},
                             {"features", graph.types[t].features}});
  }
  for (int r = 0; r < std::ssize(schema.relations()); ++r) json["relations"].push_back(schema.full_name(r));
}

// What links of the folder are.
void add_links(const Job& job, Json& json) {
  json["negatives"] = job.config.train.negatives;
  json["link_relations"] = nullptr;
  if (!job.graph.links.names.empty()) json["link_relations"] = job.graph.links.names;
}

// All but the parts. Version 1 has no links.
Json describe(const Job& job, const RunReport& report, const JobLabels& labels) {
  const auto& sampler = job.config.sampler;
  const bool of_links = std::string_view(labels.kind()) == "links";
  Json json = {{"format", "espalier-minibatches"},
               {"version", of_links ? 2 : 1},
               {"espalier", kVersion},
               {"graph", job.config.graph.file},
               {"graph_digest", nullptr},
               {"nodes", job.graph.nodes},
               {"features", job.graph.features},
               {"classes", job.graph.classes},
               {"labels", labels.kind()},
               {"types", nullptr},
               {"relations", nullptr},
               {"sampler", sampler.kind},
               {"fanout", sampler.fanout},
               {"batch_size", sampler.batch_size},
               {"layers", job.config.model.layers},
               {"seed", job.config.train.seed},
               {"epochs", std::ssize(report.epochs)},
               {"batches", report.epochs.front().counts.batches},
               {"sample_digests", Json::array()},
               {"config", Json::parse(report.config_json)},
               {"parts", Json::array()}};
  if (const auto digest = job.graph.content.file) json["graph_digest"] = hex(*digest);
  if (of_links) add_links(job, json);
  if (job.graph.typed) add_types(job.graph, json);
  for (const auto& epoch : report.epochs) json["sample_digests"].push_back(hex(epoch.counts.digest));
  return json;
}

}  // namespace

JobLabels::JobLabels(const Job& job) {
  const auto& world = job.grid->world();
  const auto& task = task_kind_of(job.config.train.task);
  if (!task.of_labels || !job.graph.has_labels) {
    if (!task.of_labels) kind_ = task.name;
    examples_ = task.read_examples(world, *job.file, job.config, job.owners.groups.get());
    return;
  }
  targets_ = read_targets(*job.grid, *job.file, job.owners.blocks, job.config, job.owners.groups.get());
  kind_ = task.name;
  if (const auto* one = dynamic_cast<const ClassTargets*>(targets_.get())) {
    examples_ = std::make_unique<VertexSource>(TrainingVertices{one->train, one->train_labels});
    return;
  }
  for (std::int64_t k = 0; k < std::ssize(targets_->train); ++k)
    places_.push_back(static_cast<std::int32_t>(k));
  examples_ = std::make_unique<VertexSource>(TrainingVertices{targets_->train, places_});
}

SeedLabels JobLabels::of(const SeedBatch& batch) {
  if (targets_ == nullptr) return {.links = batch.links()};
  if (places_.empty()) return {.classes = batch.label_indices()};
  const auto& labels = dynamic_cast<const LabelTargets&>(*targets_).train_labels;
  several_.assign(batch.label_indices().size() * static_cast<std::size_t>(labels.columns), kUnknownLabel);
  for (std::size_t k = 0; k < batch.label_indices().size(); ++k)
    if (batch.label_indices()[k] >= 0)
      std::copy_n(labels.row(batch.label_indices()[k]), labels.columns,
                  several_.begin() + static_cast<std::ptrdiff_t>(k) * labels.columns);
  return {.several = several_, .columns = labels.columns};
}

MinibatchFolder::MinibatchFolder(const Communicator& world, const std::string& path,
                                 const std::string& output_dir, bool overwrite)
    : world_(world), folder_(path), part_name_(part_name(world.rank())) {
  agree(world, [&] {
    if (world.rank() != 0) return;
    std::error_code error;
    if (!fs::equivalent(folder_, output_dir, error)) lock_ = std::make_unique<OutputLock>(folder_, "--write");
    if (fs::exists(path_of(kIndex), error) && !overwrite)
      usage_error(
          "--write {} holds finished minibatches ({}); give --overwrite to replace them, or name another "
          "folder",
          folder_, kIndex);
  });
}

MinibatchFolder::~MinibatchFolder() {
  std::error_code error;
  if (part_) fs::remove(path_of(part_name_), error);
}

// By rank 0. The index first: what is left without it counts for nothing.
void MinibatchFolder::remove_earlier() const {
  std::error_code error;
  fs::remove(path_of(kIndex), error);
  if (error) usage_error("cannot remove {}: {}", path_of(kIndex), error.message());
  for (const auto& entry : fs::directory_iterator(folder_, error))
    if (is_part_name(entry.path().filename().string())) fs::remove(entry.path(), error);
}

void MinibatchFolder::begin() {
  agree(world_, [&] {
    if (world_.rank() == 0) remove_earlier();
  });
  attempt([&] { part_ = std::make_unique<Part>(path_of(part_name_)); });
  check();
}

// What fails is told by the next check(), for then all ranks listen.
void MinibatchFolder::attempt(const std::function<void()>& write) {
  if (!problem_.empty()) return;
  try {
    write();
  } catch (const UserError& error) {
    problem_ = error.what();
  }
}

// Collective. Where it fails no part stays, and none is there any more when the lock goes.
void MinibatchFolder::agree_or_remove(const std::function<void()>& work) {
  try {
    agree(world_, work);
  } catch (const UserError&) {
    std::error_code error;
    if (part_) fs::remove(path_of(part_name_), error);
    part_.reset();
    world_.barrier();
    throw;
  }
}

void MinibatchFolder::add(std::int64_t epoch, const Minibatch& minibatch, const SeedLabels& labels) {
  attempt([&] { part_->file.append(epoch, minibatch, labels); });
}

void MinibatchFolder::check() {
  agree_or_remove([&] {
    if (!problem_.empty())
      usage_error("cannot write {}: {}; nothing of --write {} is kept", path_of(part_name_), problem_,
                  folder_);
  });
}

// By rank 0. A folder that ranks see differently is not one.
void MinibatchFolder::check_parts(std::span<const std::int64_t> bytes) const {
  for (std::int64_t rank = 0; rank < std::ssize(bytes); ++rank) {
    std::error_code error;
    const auto path = path_of(part_name(rank));
    if (static_cast<std::int64_t>(fs::file_size(path, error)) != bytes[rank] || error)
      usage_error(
          "{}, which rank {} has written, is not there for rank 0: --write {} must be a folder that all "
          "ranks share",
          path, rank, folder_);
  }
}

void MinibatchFolder::commit(const Job& job, const RunReport& report, const JobLabels& labels) {
  attempt([&] { part_->file.finish(); });
  check();
  const auto records = world_.all_gather(part_->file.records(), "report"),
             bytes = world_.all_gather(part_->file.bytes(), "report");
  agree_or_remove([&] {
    if (world_.rank() != 0) return;
    check_parts(bytes);
    auto json = describe(job, report, labels);
    std::int64_t all = 0;
    for (std::int64_t rank = 0; rank < std::ssize(records); ++rank) {
      json["parts"].push_back(
          {{"file", part_name(rank)}, {"records", records[rank]}, {"bytes", bytes[rank]}});
      all += records[rank];
    }
    write_file(path_of(kIndex), json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    job.tell(log::Level::kInfo, "minibatches: {}, {} in {}", folder_, counted(all, "batch"),
             counted(std::ssize(records), "part"));
  });
  part_.reset();  // which stays
}

}  // namespace espalier
