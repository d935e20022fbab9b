#include "job.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "espalier/base/log.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/sample/epoch_sampler.hpp"

namespace espalier {

namespace {

void refuse(bool asked, const char* key, const std::string& value, const char* instead) {
  if (asked) usage_error("{} = {} is not available in this version; {}", key, value, instead);
}

// Keys of the design whose feature this version lacks: refused, never ignored.
void refuse_unavailable(const Config& c) {
  refuse(c.sampler.kind != "graphsage", "sampler.kind", c.sampler.kind, "use graphsage");
  refuse(c.grid.schedule != "auto" && c.grid.schedule != "pull", "grid.schedule", c.grid.schedule,
         "use pull or auto");
  refuse(c.model.kind == "gat", "model.kind", c.model.kind, "use sage or gcn");
  refuse(c.run.device == "cuda", "run.device", c.run.device,
         "this program was built for the CPU: use cpu or auto");
  refuse(c.train.precision != "fp32", "train.precision", c.train.precision, "the CPU computes in fp32");
  refuse(c.run.overlap, "run.overlap", "true", "use false");
  refuse(c.run.checkpoint_every > 0, "run.checkpoint_every", std::to_string(c.run.checkpoint_every), "use 0");
  refuse(c.run.checkpoint_minutes > 0, "run.checkpoint_minutes", fmt::format("{}", c.run.checkpoint_minutes),
         "use 0");
  refuse(c.run.restart != "auto" && c.run.restart != "never", "run.restart", c.run.restart,
         "use auto or never");
  refuse(c.run.max_minutes > 0, "run.max_minutes", fmt::format("{}", c.run.max_minutes), "use 0");
  refuse(c.run.stall_minutes > 0, "run.stall_minutes", fmt::format("{}", c.run.stall_minutes), "use 0");
}

std::int64_t physical_memory() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE));
}

std::int64_t topology_bytes(const GraphInfo& info, bool with_values) {
  const std::int64_t index = info.nodes < (std::int64_t{1} << 31) ? 4 : 8;
  return info.edges * (index + (with_values ? 4 : 0)) + 8 * info.nodes;
}

// What one rank holds of graph and features with c copies.
std::int64_t resident_bytes(const Job& job, std::int64_t ranks, std::int64_t replication) {
  const auto& info = job.file->info();
  const std::int64_t topology = topology_bytes(info, info.weighted || job.config.model.kind == "gcn");
  const std::int64_t features = info.nodes * info.features * (info.half_features ? 2 : 4);
  const bool replicated = job.config.grid.topology == "replicated";
  return (replicated ? topology : topology * replication / ranks) + features * replication / ranks;
}

// The most copies that leave half of the memory to samples and activations.
std::int64_t automatic_replication(const Job& job, std::int64_t ranks) {
  std::int64_t best = 1;
  for (std::int64_t c = 1; c <= ranks; ++c)
    if (ranks % c == 0 && resident_bytes(job, ranks, c) <= job.memory_limit / 2) best = c;
  return best;
}

void make_output_folder(const Communicator& world, const Config& config) {
  agree(world, [&] {
    if (world.rank() != 0) return;
    std::error_code error;
    std::filesystem::create_directories(config.output.dir, error);
    if (error) usage_error("cannot make the folder output.dir = {}: {}", config.output.dir, error.message());
    write_file(config.output.dir + "/config.toml", to_toml(config));
  });
}

}  // namespace

Config load_job_config(const Communicator& world, const JobArguments& arguments) {
  std::string text;
  agree(world, [&] {
    if (world.rank() != 0) return;
    std::ifstream file(arguments.config);
    std::stringstream content;
    if (std::filesystem::is_directory(arguments.config) || !file || !(content << file.rdbuf()))
      usage_error("cannot read the config file {}", arguments.config);
    text = content.str();
  });
  text = world.broadcast_text(text, 0, "setup");
  auto config = parse_config(text, arguments.config, arguments.overrides);
  refuse_unavailable(config);
  if (config.graph.file.empty() && !arguments.dry_run)
    usage_error("{}: graph.file is missing; name a file that `espalier import` or `espalier generate` wrote",
                arguments.config);
  return config;
}

Job open_job(const Communicator& world, const Config& config) {
  Job job;
  job.config = config;
  const auto node = place_on_node(world);
  job.cpu.threads =
      static_cast<int>(config.run.threads.value.value_or(std::max(1, node.cores / node.sharers)));
  job.memory_limit = config.run.memory_limit == "auto"
                         ? physical_memory() / node.ranks
                         : parse_bytes(config.run.memory_limit, "run.memory_limit");
  job.memory_limit = world.all_reduce(job.memory_limit, Reduction::kMin, "setup");
  job.batches_per_step = config.train.batches_per_step.value.value_or(world.size());

  job.file = std::make_unique<GraphFile>(world, config.graph.file);
  const auto replication = config.grid.replication.value.value_or(automatic_replication(job, world.size()));
  job.grid =
      std::make_unique<Grid>(world, static_cast<int>(std::clamp<std::int64_t>(replication, 0, 1 << 30)));
  const auto needed = resident_bytes(job, world.size(), replication);
  if (needed > job.memory_limit)
    memory_error(
        "graph and features take {:.2f} GiB per rank, but run.memory_limit leaves {:.2f} GiB; use more "
        "ranks, a smaller "
        "grid.replication ({}) or grid.topology = \"partitioned\"",
        static_cast<double>(needed) / 0x1p30, static_cast<double>(job.memory_limit) / 0x1p30, replication);
  make_output_folder(world, config);
  return job;
}

SamplerShape sampler_shape(const Config& config) {
  return {.fanout = config.sampler.fanout,
          .weighted = config.sampler.weighted,
          .aggregation = config.model.kind == "gcn" ? Aggregation::kMatrix : Aggregation::kMean};
}

std::int64_t resolve_bulk(const Job& job, std::int64_t batches) {
  if (job.config.sampler.bulk.value) return *job.config.sampler.bulk.value;
  const auto& info = job.file->info();
  return automatic_bulk(sampler_shape(job.config), job.config.sampler.batch_size, batches, job.grid->ranks(),
                        info.nodes, info.edges, job.memory_limit / 4);
}

RunReport start_report(const Job& job, const char* command) {
  RunReport report;
  report.command = command;
  report.config_json = to_json(job.config);
  report.ranks = job.grid->ranks();
  report.replication = job.grid->replication();
  report.threads = job.cpu.threads;
  report.graph = job.file->info();
  return report;
}

std::string output_path(const Job& job, const char* name) {
  return job.config.output.dir + "/" + name;
}

void append_metrics(const Job& job, const EpochReport& epoch) {
  agree(job.grid->world(), [&] {
    if (job.grid->world().rank() != 0) return;
    const bool first = epoch.epoch == 1;
    std::ofstream file(output_path(job, "metrics.csv"), first ? std::ios::trunc : std::ios::app);
    file << (first ? metrics_header(epoch) : "") << metrics_line(epoch) << std::flush;
    if (!file)
      usage_error("cannot write {}: check output.dir and the free space there",
                  output_path(job, "metrics.csv"));
  });
}

void write_report(const Job& job, const RunReport& report) {
  agree(job.grid->world(), [&] {
    if (job.grid->world().rank() == 0) write_file(output_path(job, "report.json"), to_json(report));
  });
}

}  // namespace espalier
