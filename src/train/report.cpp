#include "espalier/train/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "espalier/base/output_file.hpp"
#include "espalier/base/process.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/version.hpp"

namespace espalier {

using Json = nlohmann::ordered_json;

namespace {

bool communicates(const std::string& stage) {
  return stage == "sample" || stage == "fetch" || stage == "reduce" || stage == "evaluate";
}

StageSeconds over_ranks(const Communicator& comm, double seconds) {
  return {comm.all_reduce(seconds, Reduction::kMin, "report"),
          comm.all_reduce(seconds, Reduction::kSum, "report") / comm.size(),
          comm.all_reduce(seconds, Reduction::kMax, "report")};
}

Json metrics_json(const Metrics& metrics) {
  Json json = Json::object();
  for (const auto& [name, value] : metrics.scores)
    if (!std::isnan(value)) json[name] = value;
  return json;
}

void add_types(const GraphInfo& graph, Json& json) {
  for (std::size_t t = 0; t < graph.types.size(); ++t) {
    const auto& type = graph.schema.types()[t];
    json["types"].push_back(
        {{"name", type.name}, {"nodes", type.size()}, {"features", graph.types[t].features}});
  }
  if (graph.target >= 0) json["target"] = graph.schema.types()[graph.target].name;
}

// The last key of a report, a line for each row.
std::string confusion_rows(std::span<const std::int64_t> counts) {
  const auto classes = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(counts.size()))));
  std::string rows;
  for (std::size_t k = 0; k < counts.size(); ++k)
    rows += (k % classes != 0 ? ", " : k > 0 ? "],\n    [" : "\n    [") + std::to_string(counts[k]);
  return fmt::format("[{}]\n  ]", rows);
}

Json volume_json(const StageVolume& volume) {
  Json json = {{"total", volume.total},
               {"max_rank", volume.max_rank},
               {"messages", volume.messages},
               {"rounds", volume.rounds}};
  if (volume.predicted > 0) {
    json["predicted"] = std::llround(volume.predicted);
    json["predicted_messages"] = std::llround(volume.predicted_messages);
  }
  return json;
}

StageVolume over_ranks(const Communicator& comm, const Volume& mine) {
  return {comm.all_reduce(mine.messages, Reduction::kSum, "report"),
          comm.all_reduce(mine.bytes_received, Reduction::kSum, "report"),
          comm.all_reduce(mine.bytes_received, Reduction::kMax, "report"),
          comm.all_reduce(mine.predicted_messages, Reduction::kSum, "report"),
          comm.all_reduce(mine.predicted_bytes, Reduction::kSum, "report"),
          comm.all_reduce(mine.rounds, Reduction::kMax, "report")};
}

// The labels with a step of a minibatch stage that any rank has booked, the same on every rank.
std::set<std::string> step_labels(const Communicator& comm, const Traffic& traffic) {
  std::string mine;
  for (const auto& [label, volume] : traffic.all())
    if (label.find('/') != std::string::npos && !label.starts_with("evaluate/")) mine += label + "\n";
  const auto everyones = comm.all_gather_v(std::span<const char>(mine), "report");
  std::istringstream lines(std::string(everyones.begin(), everyones.end()));
  std::set<std::string> labels;
  for (std::string label; std::getline(lines, label);) labels.insert(label);
  return labels;
}

Json work_balance_json(const WorkBalance& work_balance) {
  return {{"local_input_rows", work_balance.local_share()},
          {"sampled_edges_max_over_mean", work_balance.edges},
          {"remote_rows_max_over_mean", work_balance.remote},
          {"remote_rows", work_balance.remote_rows},
          {"input_rows", work_balance.input_rows}};
}

Json evenness_json(const Evenness& of) {
  return {{"total", of.total}, {"max_over_mean", of.over_mean}, {"max_over_min", of.over_least}};
}
Evenness evenness_from(const Json& json) {
  return {json.at("total"), json.at("max_over_mean"), json.at("max_over_min")};
}
Json served_json(const ServedBalance& served) {
  return {{"rows", evenness_json(served.rows)},
          {"entries", evenness_json(served.entries)},
          {"picks", evenness_json(served.picks)}};
}

// Collective. Of a number of every rank.
Evenness evenness_of(const Communicator& comm, std::int64_t mine) {
  const auto sum = comm.all_reduce(mine, Reduction::kSum, "report"),
             most = comm.all_reduce(mine, Reduction::kMax, "report"),
             least = comm.all_reduce(mine, Reduction::kMin, "report");
  const auto largest = static_cast<double>(most);
  return {sum, sum == 0 ? 1 : largest * comm.size() / static_cast<double>(sum),
          sum == 0     ? 1
          : least == 0 ? 0
                       : largest / static_cast<double>(least)};
}

// Into a group of an epoch for each hook of a step.
void add_counters(const EpochReport& epoch, Json& json) {
  for (const auto& counter : epoch.counters.all())
    if (const auto value = epoch.counters.find(counter.group, counter.name))
      json[counter.group][counter.name] = *value;
  for (const auto& remark : epoch.remarks) json[remark.group][remark.name] = Json::parse(remark.json);
}

// Of an epoch in a checkpoint: what is a group of none of its other keys.
void take_counters(const Json& json, EpochReport& epoch) {
  const std::set<std::string> others = {"train", "valid", "seconds", "bytes", "steps", "dealing", "served"};
  for (const auto& [group, values] : json.items()) {
    if (!values.is_object() || others.contains(group)) continue;
    for (const auto& [name, value] : values.items())
      if (value.is_number_integer())
        epoch.counters.declare({group, name, OverRanks::kSum, value});
      else
        epoch.remarks.push_back({group, name, value.dump()});
  }
}

WorkBalance work_balance_from(const Json& json) {
  return {json.at("input_rows"), json.at("remote_rows"), json.at("sampled_edges_max_over_mean"),
          json.at("remote_rows_max_over_mean")};
}

Json epoch_json(const EpochReport& epoch) {
  Json json = {{"epoch", epoch.epoch}};
  if (epoch.resumed_step > 0) json["resumed_step"] = epoch.resumed_step;
  if (epoch.loss) json["loss"] = *epoch.loss;
  if (epoch.train) json["train"] = metrics_json(*epoch.train);
  if (epoch.valid) json["valid"] = metrics_json(*epoch.valid);
  json["sample_digest"] = hex(epoch.counts.digest);
  json["seconds"]["total"] = epoch.seconds.at("total").max;
  for (const auto* stage : kStageNames)
    if (epoch.seconds.contains(stage)) json["seconds"][stage] = epoch.seconds.at(stage).max;
  for (const auto* stage : kStageNames)
    if (epoch.bytes.contains(stage)) json["bytes"][stage] = volume_json(epoch.bytes.at(stage));
  for (const auto& [label, volume] : epoch.steps) json["steps"][label] = volume_json(volume);
  json["batches"] = epoch.counts.batches;
  json["sampled_edges"] = epoch.counts.sampled_edges;
  json["input_rows"] = epoch.counts.input_rows;
  if (epoch.work_balance) json["dealing"] = work_balance_json(*epoch.work_balance);
  if (epoch.served) json["served"] = served_json(*epoch.served);
  add_counters(epoch, json);
  return json;
}

}  // namespace

void finish_epoch_report(const Grid& grid, const StageTimers& timers, std::span<const char* const> stages,
                         EpochReport& report) {
  const auto& world = grid.world();
  const auto traffic = grid.traffic();  // a copy, before the reductions of the report itself
  // Evaluation stands beside the training part of the epoch: the total holds both.
  report.seconds["total"] = over_ranks(world, timers.seconds("total") + timers.seconds("evaluate"));
  for (const std::string stage : stages) {
    const auto path = stage == "evaluate" ? stage : "total/" + stage;
    report.seconds[stage] = over_ranks(world, timers.seconds(path));
    if (!communicates(stage)) continue;
    report.bytes[stage] = over_ranks(world, traffic.of_stage(stage));
    // A rank evaluates the rows it holds: the model's even spread does not hold for them.
    if (stage == "evaluate") report.bytes[stage].predicted = 0;
  }
  for (const auto& label : step_labels(world, traffic))
    report.steps[label] = over_ranks(world, traffic.of(label));
  const auto served = traffic.served("sample");
  const auto rows = evenness_of(world, served.rows);
  if (rows.total > 0)
    report.served = {rows, evenness_of(world, served.entries), evenness_of(world, served.picks)};
}

std::optional<std::int64_t> total(std::span<const EpochReport> epochs, std::string_view group,
                                  std::string_view name) {
  std::optional<std::int64_t> sum;
  for (const auto& epoch : epochs) {
    if (!epoch.counters.has(group)) continue;
    const auto count = epoch.counters.find(group, name);
    if (!count) return {};
    sum = sum.value_or(0) + *count;
  }
  return sum;
}

WorkBalance work_balance_of(const Communicator& comm, std::int64_t edges, std::int64_t input_rows,
                            std::int64_t remote_rows) {
  std::array<std::int64_t, 3> sums = {edges, input_rows, remote_rows};
  std::array<std::int64_t, 2> most = {edges, remote_rows};
  comm.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "report");
  comm.all_reduce(std::span<std::int64_t>(most), Reduction::kMax, "report");
  const auto over_mean = [&](std::int64_t largest, std::int64_t sum) {
    return sum == 0 ? 1.0 : static_cast<double>(largest) * comm.size() / static_cast<double>(sum);
  };
  return {sums[1], sums[2], over_mean(most[0], sums[0]), over_mean(most[1], sums[2])};
}

void measure_peak_memory(const Communicator& comm, RunReport& report) {
  const auto peak = process_memory("VmHWM");
  report.peak_memory_max = comm.all_reduce(peak, Reduction::kMax, "report");
  report.peak_memory_sum = comm.all_reduce(peak, Reduction::kSum, "report");
}

std::string to_json(const RunReport& report) {
  Json json = {{"espalier", kVersion},
               {"command", report.command},
               {"config", Json::parse(report.config_json)},
               {"ranks", report.ranks},
               {"replication", report.replication},
               {"threads", report.threads},
               {"device", report.device},
               {"schedules", report.schedules}};
  json["graph"] = {{"nodes", report.graph.nodes},
                   {"edges", report.graph.edges},
                   {"features", report.graph.features},
                   {"classes", report.graph.classes},
                   {"verified", report.verified}};
  if (const auto split = report.graph.split_name(); !split.empty()) json["graph"]["split"] = split;
  if (report.graph.typed) add_types(report.graph, json["graph"]);
  if (report.graph.content.file) json["graph"]["digest"] = hex(*report.graph.content.file);
  for (const auto& [name, digest] : report.graph.content.datasets)
    json["graph"]["digests"][name] = hex(digest);
  json["epochs"] = Json::array();
  for (const auto& epoch : report.epochs) json["epochs"].push_back(epoch_json(epoch));
  if (report.train) json["train"] = metrics_json(*report.train);
  if (report.test) json["test"] = metrics_json(*report.test);
  if (report.best_epoch > 0) json["best_epoch"] = report.best_epoch;
  if (const auto& diverged = report.diverged) {
    json["diverged"] = {{"what", diverged->what}, {"epoch", diverged->epoch}};
    if (diverged->step > 0) json["diverged"]["step"] = diverged->step;
    json["diverged"]["message"] = diverged->words;
  }
  if (!report.weights_digest.empty()) json["weights_digest"] = report.weights_digest;
  if (report.restart)
    json["restart"] = {{"checkpoint", report.restart->checkpoint},
                       {"epoch", report.restart->epoch},
                       {"step", report.restart->step},
                       {"ranks", report.restart->ranks}};
  if (report.checkpoints > 0)
    json["checkpoints"] = {{"saved", report.checkpoints}, {"seconds", report.checkpoint_seconds}};
  json["peak_memory_bytes"] = {{"max", report.peak_memory_max}, {"sum", report.peak_memory_sum}};
  if (report.device == "cuda")
    json["peak_device_memory_bytes"] = {{"max", report.peak_device_memory_max},
                                        {"sum", report.peak_device_memory_sum}};
  auto text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  if (!report.confusion.empty())
    text.replace(text.rfind("\n}"), std::string::npos,
                 fmt::format(",\n  \"confusion\": {}\n}}", confusion_rows(report.confusion)));
  return text + "\n";
}

bool is_of_whole_training(const std::string& text) {
  const auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.value("command", Json()) == "train" && !json.contains("diverged");
}

// ---- the epochs in a checkpoint: as in the report, and what the report leaves out ----

namespace {

StageVolume volume_from(const Json& json) {
  return {json.at("messages"),           json.at("total"),     json.at("max_rank"),
          json.at("predicted_messages"), json.at("predicted"), json.value("rounds", std::int64_t{0})};
}

Json whole_volume(const StageVolume& volume) {
  return {{"messages", volume.messages},   {"total", volume.total},
          {"max_rank", volume.max_rank},   {"predicted_messages", volume.predicted_messages},
          {"predicted", volume.predicted}, {"rounds", volume.rounds}};
}

std::map<std::string, StageVolume> volumes_from(const Json& json) {
  std::map<std::string, StageVolume> volumes;
  for (const auto& [label, volume] : json.items()) volumes[label] = volume_from(volume);
  return volumes;
}

// Of a split, and how many vertices were evaluated; epochs of earlier versions have no "train".
std::optional<Metrics> metrics_from(const Json& json, const char* split, const char* evaluated) {
  if (!json.contains(split)) return {};
  Metrics metrics{{}, json.at(evaluated)};
  for (const auto& [name, value] : json.at(split).items()) metrics.scores.push_back({name, value});
  return metrics;
}

EpochReport epoch_from(const Json& json) {
  EpochReport epoch;
  epoch.epoch = json.at("epoch");
  epoch.resumed_step = json.value("resumed_step", std::int64_t{0});
  if (json.contains("loss")) epoch.loss = json.at("loss").get<double>();
  epoch.train = metrics_from(json, "train", "judged_to_train");
  epoch.valid = metrics_from(json, "valid", "judged");
  epoch.counts = {std::stoull(json.at("sample_digest").get<std::string>(), nullptr, 16), json.at("batches"),
                  json.at("sampled_edges"), json.at("input_rows")};
  for (const auto& [stage, seconds] : json.at("seconds").items())
    epoch.seconds[stage] = {seconds.at(0), seconds.at(1), seconds.at(2)};
  epoch.bytes = volumes_from(json.at("bytes"));
  epoch.steps = volumes_from(json.at("steps"));
  if (json.contains("dealing")) epoch.work_balance = work_balance_from(json.at("dealing"));
  if (const auto served = json.find("served"); served != json.end())
    epoch.served = {evenness_from(served->at("rows")), evenness_from(served->at("entries")),
                    evenness_from(served->at("picks"))};
  take_counters(json, epoch);
  return epoch;
}

}  // namespace

std::string epochs_to_json(std::span<const EpochReport> epochs) {
  Json list = Json::array();
  for (const auto& epoch : epochs) {
    auto json = epoch_json(epoch);
    if (epoch.train) json["judged_to_train"] = epoch.train->vertices;
    if (epoch.valid) json["judged"] = epoch.valid->vertices;
    json["seconds"] = json["bytes"] = json["steps"] = Json::object();
    for (const auto& [stage, seconds] : epoch.seconds)
      json["seconds"][stage] = {seconds.min, seconds.mean, seconds.max};
    for (const auto& [stage, volume] : epoch.bytes) json["bytes"][stage] = whole_volume(volume);
    for (const auto& [label, volume] : epoch.steps) json["steps"][label] = whole_volume(volume);
    list.push_back(std::move(json));
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<EpochReport> epochs_from_json(const std::string& text) {
  try {
    std::vector<EpochReport> epochs;
    for (const auto& json : Json::parse(text)) epochs.push_back(epoch_from(json));
    return epochs;
  } catch (const std::exception& error) {
    input_error("the list of epochs cannot be read: {}", error.what());
  }
}

std::string metrics_header(const EpochReport& report, std::span<const MetricKind> metrics) {
  std::string line = "epoch,loss";
  for (const auto& metric : metrics) line += fmt::format(",valid_{}", metric.name);
  line += ",sample_digest,batches,sampled_edges,input_rows,seconds_total";
  for (const auto* stage : kStageNames)
    if (report.seconds.contains(stage)) line += fmt::format(",seconds_{}", stage);
  for (const auto* stage : kStageNames)
    if (report.bytes.contains(stage)) line += fmt::format(",bytes_{}", stage);
  if (report.loss)
    for (const auto& metric : metrics) line += fmt::format(",train_{}", metric.name);
  return line + "\n";
}

std::string metrics_line(const EpochReport& report, std::span<const MetricKind> metrics) {
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  const auto scores_of = [&](const std::optional<Metrics>& split) {
    std::string fields;
    for (const auto& metric : metrics)
      fields += "," + number(split ? split->find(metric.name) : std::nullopt);
    return fields;
  };
  std::string line =
      fmt::format("{},{}{},{},{},{},{},{:.6f}", report.epoch, number(report.loss), scores_of(report.valid),
                  hex(report.counts.digest), report.counts.batches, report.counts.sampled_edges,
                  report.counts.input_rows, report.seconds.at("total").max);
  for (const auto* stage : kStageNames)
    if (report.seconds.contains(stage)) line += fmt::format(",{:.6f}", report.seconds.at(stage).max);
  for (const auto* stage : kStageNames)
    if (report.bytes.contains(stage)) line += fmt::format(",{}", report.bytes.at(stage).total);
  return line + (report.loss ? scores_of(report.train) : "") + "\n";
}

std::string stage_table(const std::vector<EpochReport>& epochs) {
  std::map<std::string, StageSeconds> sums;
  for (const auto& epoch : epochs)
    for (const auto& [stage, seconds] : epoch.seconds) {
      auto& sum = sums[stage];
      sum = {sum.min + seconds.min, sum.mean + seconds.mean, sum.max + seconds.max};
    }
  std::string table =
      fmt::format("{:<12}{:>10}{:>10}{:>10}{:>8}\n", "stage", "min s", "mean s", "max s", "%");
  const double whole = std::max(sums["total"].mean, 1e-12);
  const auto line = [&](const std::string& stage) {
    const auto& sum = sums[stage];
    table += fmt::format("{:<12}{:>10.3f}{:>10.3f}{:>10.3f}{:>8.1f}\n", stage, sum.min, sum.mean, sum.max,
                         100 * sum.mean / whole);
  };
  for (const auto* stage : kStageNames)
    if (sums.contains(stage)) line(stage);
  line("total");
  return table;
}

std::string work_balance_line(const std::vector<EpochReport>& epochs) {
  WorkBalance all{0, 0, 0, 0};
  double count = 0;
  for (const auto& epoch : epochs)
    if (const auto& work_balance = epoch.work_balance) {
      all.input_rows += work_balance->input_rows;
      all.remote_rows += work_balance->remote_rows;
      all.edges += work_balance->edges;
      all.remote += work_balance->remote;
      ++count;
    }
  if (count == 0) return {};
  return fmt::format(
      "dealt: {:.1f} % of the input rows are local; most of a rank over the mean: sampled edges {:.2f}, "
      "remote rows {:.2f}\n",
      100 * all.local_share(), all.edges / count, all.remote / count);
}

std::string volume_table(const std::vector<EpochReport>& epochs, int ranks) {
  std::map<std::string, StageVolume> sums;
  const auto add = [&](const std::string& label, const StageVolume& volume) {
    auto& sum = sums[label];
    sum.rounds += volume.rounds;
    sum.messages += volume.messages;
    sum.total += volume.total;
    sum.max_rank += volume.max_rank;
    sum.predicted += volume.predicted;
  };
  for (const auto& epoch : epochs) {
    for (const auto& [stage, volume] : epoch.bytes) add(stage, volume);
    for (const auto& [label, volume] : epoch.steps) add(label, volume);
  }
  std::string table =
      fmt::format("{:<20}{:>9}{:>12}{:>14}{:>14}{:>14}{:>14}{:>10}\n", "between ranks", "rounds", "messages",
                  "MB", "MB per rank", "MB max rank", "MB predicted", "ratio");
  for (const auto& [label, sum] : sums) {
    const auto mb = [](double bytes) { return bytes / 1e6; };
    const auto total = static_cast<double>(sum.total);
    const auto slash = label.find('/');
    table += fmt::format("{:<20}{:>9}{:>12}{:>14.3f}{:>14.3f}{:>14.3f}",
                         slash == std::string::npos ? label : "  " + label.substr(slash + 1), sum.rounds,
                         sum.messages, mb(total), mb(total / ranks), mb(static_cast<double>(sum.max_rank)));
    table += sum.predicted > 0 ? fmt::format("{:>14.3f}{:>10.3f}\n", mb(sum.predicted), total / sum.predicted)
                               : fmt::format("{:>14}{:>10}\n", "-", "-");
  }
  const auto& sample = sums["sample"];
  const auto ratio = static_cast<double>(sample.total) / std::max(sample.predicted, 1.0);
  if (sample.predicted > 0 && (ratio < 0.9 || ratio > 1.1))
    table +=
        "(the prediction spreads ids evenly over block rows; this graph's or these batches' ids are not)\n";
  return table;
}

void write_file(const std::string& path, const std::string& text) {
  const auto problem = replace_file(path, text);
  if (!problem.empty())
    usage_error("cannot write {}: {}; check its folder and the free space there", path, problem);
}

}  // namespace espalier
