// One table binds every key to its place in the struct, its type, its range or choices and its meaning;
// reading, checking, writing and documenting all walk that table.
#include "espalier/base/config.hpp"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>
#include <variant>

#include "espalier/base/error.hpp"
#include "espalier/base/nearest.hpp"

namespace espalier {

namespace {

using Target = std::variant<std::string*, std::int64_t*, double*, bool*, std::vector<std::int64_t>*, AutoInt*,
                            AutoNumber*>;

struct Key {
  std::string name;
  Target target;
  std::string meaning;
  std::vector<std::string> choices = {};    // for words
  double lowest = -1e300, highest = 1e300;  // for numbers
};

constexpr double kNoLimit = 1e300;

std::vector<Key> bind_keys(Config& c) {
  return {
      {"graph.file", &c.graph.file, "the graph file (HDF5) that `espalier import` or `generate` wrote"},
      {"graph.feature_norm",
       &c.graph.feature_norm,
       "none | row (each row sums to 1) | standard (mean 0, deviation 1 per column)",
       {"none", "row", "standard"}},
      {"graph.features_on", &c.graph.features_on, "where a GPU run keeps the features", {"device", "host"}},
      {"grid.replication",
       &c.grid.replication,
       "c: how many ranks hold each block row; divides the number of ranks",
       {},
       1,
       kNoLimit},
      {"grid.topology",
       &c.grid.topology,
       "partitioned: A is spread over the grid; replicated: every rank holds A",
       {"partitioned", "replicated"}},
      {"grid.schedule",
       &c.grid.schedule,
       "how the distributed product P = Q A moves its data",
       {"auto", "staged", "staged-oblivious", "pull", "push"}},
      {"sampler.kind",
       &c.sampler.kind,
       "the sampling algorithm",
       {"graphsage", "ladies", "fastgcn", "labor"}},
      {"sampler.fanout",
       &c.sampler.fanout,
       "picks per vertex and layer, first: next to the batch; -1 = all neighbours",
       {},
       -1,
       kNoLimit},
      {"sampler.batch_size", &c.sampler.batch_size, "training vertices per minibatch", {}, 1, kNoLimit},
      {"sampler.bulk",
       &c.sampler.bulk,
       "minibatches sampled at once over all ranks, or auto (by memory)",
       {},
       1,
       kNoLimit},
      {"sampler.weighted", &c.sampler.weighted, "draw neighbours in proportion to the entries of A"},
      {"sampler.mode",
       &c.sampler.mode,
       "variant of a layer-wise sampler",
       {"paper", "reference", "debiased"}},
      {"model.kind", &c.model.kind, "the layers of the network", {"sage", "gcn", "gat"}},
      {"model.hidden", &c.model.hidden, "width of the hidden layers", {}, 1, kNoLimit},
      {"model.layers", &c.model.layers, "number of layers", {}, 1, 64},
      {"model.dropout", &c.model.dropout, "probability that a hidden value is dropped", {}, 0, 0.999},
      {"model.input_dropout",
       &c.model.input_dropout,
       "the same for input features; auto: model.dropout for gcn, 0 for sage",
       {},
       0,
       0.999},
      {"model.normalize", &c.model.normalize, "normalisation between layers", {"none", "batch", "layer"}},
      {"train.epochs", &c.train.epochs, "passes over the training vertices", {}, 1, kNoLimit},
      {"train.optimizer", &c.train.optimizer, "adam | sgd (with momentum)", {"adam", "sgd"}},
      {"train.learning_rate", &c.train.learning_rate, "step size", {}, 0, kNoLimit},
      {"train.momentum", &c.train.momentum, "momentum of sgd", {}, 0, 1},
      {"train.lr_schedule", &c.train.lr_schedule, "constant | step | cosine", {"constant", "step", "cosine"}},
      {"train.lr_warmup", &c.train.lr_warmup, "epochs of linear warm-up", {}, 0, kNoLimit},
      {"train.lr_step", &c.train.lr_step, "epochs between decays (lr_schedule = step)", {}, 1, kNoLimit},
      {"train.lr_decay", &c.train.lr_decay, "factor of each decay (lr_schedule = step)", {}, 0, 1},
      {"train.weight_decay",
       &c.train.weight_decay,
       "L2 penalty added to the gradient of weight matrices",
       {},
       0,
       kNoLimit},
      {"train.weight_decay_on", &c.train.weight_decay_on, "which layers decay", {"all", "first"}},
      {"train.early_stop",
       &c.train.early_stop,
       "stop after so many evaluations without a better validation metric; 0 = never",
       {},
       0,
       kNoLimit},
      {"train.seed", &c.train.seed, "the seed of everything random in a run", {}, 0, kNoLimit},
      {"train.batches_per_step",
       &c.train.batches_per_step,
       "minibatches averaged by one optimiser step, or auto (one per rank)",
       {},
       1,
       kNoLimit},
      {"train.reproducible", &c.train.reproducible,
       "reduce gradients in fixed point: bit-identical for every grid"},
      {"train.eval_every",
       &c.train.eval_every,
       "epochs between exact evaluations; 0 = only after the last",
       {},
       0,
       kNoLimit},
      {"train.precision",
       &c.train.precision,
       "arithmetic of matrix products on a GPU",
       {"fp32", "tf32", "bf16"}},
      {"run.device", &c.run.device, "where to compute", {"auto", "cpu", "cuda"}},
      {"run.threads",
       &c.run.threads,
       "threads per rank, or auto (cores of the node / ranks on it)",
       {},
       1,
       4096},
      {"run.memory_limit", &c.run.memory_limit,
       "bytes per rank, as 8GiB or 500MB, or auto (the node's memory / ranks on it)"},
      {"run.overlap", &c.run.overlap, "hide sampling and fetching behind computing"},
      {"run.checkpoint_every",
       &c.run.checkpoint_every,
       "epochs between checkpoints; 0 = none",
       {},
       0,
       kNoLimit},
      {"run.checkpoint_minutes",
       &c.run.checkpoint_minutes,
       "minutes between checkpoints; 0 = none",
       {},
       0,
       kNoLimit},
      {"run.restart", &c.run.restart, "auto | never | the path of a checkpoint"},
      {"run.max_minutes",
       &c.run.max_minutes,
       "stop and save after so many minutes; 0 = no limit",
       {},
       0,
       kNoLimit},
      {"run.stall_minutes",
       &c.run.stall_minutes,
       "report where each rank is when no step finishes for so long; 0 = never",
       {},
       0,
       kNoLimit},
      {"output.dir", &c.output.dir, "folder for report.json, metrics.csv and the resolved config"},
  };
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char ch : text) {
    if (ch == '"' || ch == '\\') out += '\\';
    out += ch;
  }
  return out + '"';
}

std::string number_text(double x) {
  const auto text = fmt::format("{}", x);  // shortest text that reads back to the same double
  return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
}

std::string value_text(const Target& target) {
  struct Writer {
    std::string operator()(const std::string* v) const { return quoted(*v); }
    std::string operator()(const std::int64_t* v) const { return std::to_string(*v); }
    std::string operator()(const double* v) const { return number_text(*v); }
    std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
    std::string operator()(const std::vector<std::int64_t>* v) const { return fmt::format("[{}]", join(*v)); }
    std::string operator()(const AutoInt* v) const {
      return v->value ? std::to_string(*v->value) : "\"auto\"";
    }
    std::string operator()(const AutoNumber* v) const {
      return v->value ? number_text(*v->value) : "\"auto\"";
    }
    static std::string join(const std::vector<std::int64_t>& items) {
      std::string out;
      for (const auto item : items) out += (out.empty() ? "" : ", ") + std::to_string(item);
      return out;
    }
  };
  return std::visit(Writer{}, target);
}

// Assigns a TOML value to a key's target, checking type, choices and range. `where` ends every message.
class Assigner {
 public:
  Assigner(const Key& key, const toml::node& node, const std::string& where)
      : key_(key), node_(node), where_(where) {}

  void operator()(std::string* target) const {
    const auto value = node_.value_exact<std::string>();
    if (!value) wrong_type("a word in quotes");
    if (!key_.choices.empty() &&
        std::find(key_.choices.begin(), key_.choices.end(), *value) == key_.choices.end())
      usage_error("{}: {} = {}: not one of {}; did you mean \"{}\"?", where_, key_.name, quoted(*value),
                  choice_list(), nearest(*value, key_.choices));
    *target = *value;
  }
  void operator()(std::int64_t* target) const { *target = integer(node_); }
  void operator()(double* target) const { *target = number(); }
  void operator()(bool* target) const {
    const auto value = node_.value_exact<bool>();
    if (!value) wrong_type("true or false");
    *target = *value;
  }
  void operator()(std::vector<std::int64_t>* target) const {
    const auto* array = node_.as_array();
    if (array == nullptr || array->empty()) wrong_type("a list of whole numbers such as [15, 10, 5]");
    std::vector<std::int64_t> values;
    for (const auto& item : *array) values.push_back(integer(item));
    *target = values;
  }
  void operator()(AutoInt* target) const {
    target->value = is_auto() ? std::nullopt : std::optional<std::int64_t>(integer(node_));
  }
  void operator()(AutoNumber* target) const {
    target->value = is_auto() ? std::nullopt : std::optional<double>(number());
  }

 private:
  bool is_auto() const { return node_.value_exact<std::string>() == std::string("auto"); }

  [[noreturn]] void wrong_type(const std::string& wanted) const {
    const bool may_be_auto =
        std::holds_alternative<AutoInt*>(key_.target) || std::holds_alternative<AutoNumber*>(key_.target);
    std::ostringstream got;
    got << toml::node_view<const toml::node>(&node_);
    usage_error("{}: {} must be {}{}, but is {}", where_, key_.name, wanted,
                may_be_auto ? " or \"auto\"" : "", got.str());
  }
  std::int64_t integer(const toml::node& node) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value) wrong_type("a whole number");
    check_range(static_cast<double>(*value));
    return *value;
  }
  double number() const {
    const auto value = node_.value<double>();
    if (!value || !node_.is_number() || !std::isfinite(*value)) wrong_type("a number");
    check_range(*value);
    return *value;
  }
  void check_range(double value) const {
    if (value < key_.lowest)
      usage_error("{}: {} = {} is below its least value, {}", where_, key_.name, value, key_.lowest);
    if (value > key_.highest)
      usage_error("{}: {} = {} is above its greatest value, {}", where_, key_.name, value, key_.highest);
  }
  std::string choice_list() const {
    std::string out;
    for (const auto& choice : key_.choices) out += (out.empty() ? "" : " | ") + choice;
    return out;
  }

  const Key& key_;
  const toml::node& node_;
  const std::string& where_;
};

const Key& find_key(const std::vector<Key>& keys, const std::string& name, const std::string& where) {
  for (const auto& key : keys)
    if (key.name == name) return key;
  std::vector<std::string> names;
  for (const auto& key : keys) names.push_back(key.name);
  usage_error("{}: unknown key {}; did you mean {}?", where, name, nearest(name, names));
}

void assign(const std::vector<Key>& keys, const std::string& name, const toml::node& node,
            const std::string& where) {
  const auto& key = find_key(keys, name, where);
  std::visit(Assigner(key, node, where), key.target);
}

std::string line_of(const std::string& source, const toml::node& node) {
  return fmt::format("{}:{}", source, node.source().begin.line);
}

void assign_table(const std::vector<Key>& keys, const toml::table& table, const std::string& source) {
  for (const auto& [section, node] : table) {
    const auto* inner = node.as_table();
    const std::string section_name(section.str());
    if (inner == nullptr) {
      find_key(keys, section_name, line_of(source, node));
      continue;
    }
    for (const auto& [name, value] : *inner)
      assign(keys, section_name + "." + std::string(name.str()), value, line_of(source, value));
    if (inner->empty()) continue;
  }
}

// "section.key=value": the value is TOML; a bare word counts as a quoted one.
void assign_override(const std::vector<Key>& keys, const std::string& text) {
  const auto equals = text.find('=');
  const std::string where = "command line";
  if (equals == std::string::npos || equals == 0)
    usage_error("{}: '{}' is not of the form section.key=value", where, text);
  const auto name = text.substr(0, equals);
  const auto value = text.substr(equals + 1);
  const auto& key = find_key(keys, name, where);
  const bool takes_word = std::holds_alternative<std::string*>(key.target);
  const bool is_quoted = !value.empty() && (value.front() == '"' || value.front() == '\'');
  const bool bare = takes_word ? !is_quoted : value == "auto";
  try {
    const auto table = toml::parse("v = " + (bare ? quoted(value) : value));
    assign(keys, name, *table.get("v"), where);
  } catch (const toml::parse_error&) {
    usage_error("{}: {}: cannot read the value '{}'", where, name, value);
  }
}

void check_together(const Config& c, const std::string& source) {
  for (const auto fanout : c.sampler.fanout)
    if (fanout == 0)
      usage_error("{}: sampler.fanout holds a 0; every layer needs at least 1 pick, or -1 for all", source);
  if (static_cast<std::int64_t>(c.sampler.fanout.size()) != c.model.layers)
    usage_error("{}: sampler.fanout has {} entries but model.layers = {}; give one fanout per layer", source,
                c.sampler.fanout.size(), c.model.layers);
  if (c.run.memory_limit != "auto") parse_bytes(c.run.memory_limit, "run.memory_limit");
}

}  // namespace

Config parse_config(const std::string& text, const std::string& source,
                    const std::vector<std::string>& overrides) {
  Config config;
  const auto keys = bind_keys(config);
  try {
    assign_table(keys, toml::parse(text, source), source);
  } catch (const toml::parse_error& error) {
    usage_error("{}:{}: {}", source, error.source().begin.line, error.description());
  }
  for (const auto& text_override : overrides) assign_override(keys, text_override);
  check_together(config, source);
  return config;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) usage_error("cannot read the config file {}", path);
  return parse_config(text.str(), path, overrides);
}

std::string to_toml(const Config& config) {
  Config copy = config;
  std::string out, section;
  for (const auto& key : bind_keys(copy)) {
    const auto dot = key.name.find('.');
    if (key.name.substr(0, dot) != section) {
      out += (section.empty() ? "[" : "\n[") + key.name.substr(0, dot) + "]\n";
      section = key.name.substr(0, dot);
    }
    out += key.name.substr(dot + 1) + " = " + value_text(key.target) + "\n";
  }
  return out;
}

std::string to_json(const Config& config) {
  Config copy = config;
  std::string out = "{", section;
  for (const auto& key : bind_keys(copy)) {
    const auto dot = key.name.find('.');
    const bool new_section = key.name.substr(0, dot) != section;
    if (new_section) out += (section.empty() ? "" : "}, ") + quoted(key.name.substr(0, dot)) + ": {";
    section = key.name.substr(0, dot);
    out += (new_section ? "" : ", ") + quoted(key.name.substr(dot + 1)) + ": " + value_text(key.target);
  }
  return out + "}}";
}

std::string describe_config_keys() {
  Config defaults;
  std::string out;
  for (const auto& key : bind_keys(defaults))
    out += fmt::format("  {:<24} {:<14} {}\n", key.name, value_text(key.target), key.meaning);
  return out;
}

std::int64_t parse_bytes(const std::string& text, const std::string& key) {
  double number = 0;
  std::size_t used = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const auto unit = text.substr(used);
  const std::vector<std::pair<std::string, double>> units = {
      {"", 1},      {"B", 1},          {"KB", 1e3},       {"MB", 1e6},       {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1.0p10}, {"MiB", 0x1.0p20}, {"GiB", 0x1.0p30}, {"TiB", 0x1.0p40}};
  for (const auto& [name, factor] : units)
    if (used > 0 && unit == name && number * factor >= 1 && number * factor < 9e18)
      return static_cast<std::int64_t>(number * factor);
  usage_error("{} = \"{}\" is not a size; write 500MB, 8GiB or a number of bytes", key, text);
}

}  // namespace espalier
