#include "espalier/plan/machine.hpp"

#define TOML_EXCEPTIONS 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <sstream>
#include <variant>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/text.hpp"
#include "espalier/plan/core_splits.hpp"

namespace espalier {

namespace {

constexpr const char* kFormat = "espalier-machine";
constexpr std::int64_t kVersion = 1;

struct MachineKey {
  const char* name;
  std::variant<std::string*, std::int64_t*, double*> target;
  const char* meaning;
  bool optional = false;  // as it is made where it is missing
};

std::vector<MachineKey> bind_keys(Machine& m) {
  return {{"name", &m.name, "of the machine"},
          {"node.device", &m.device, "cpu | cuda: what computes"},
          {"node.ranks", &m.ranks_per_node, "ranks on a node"},
          {"node.distribution", &m.distribution,
           "block | cyclic: ranks are dealt node after node, or round the nodes", /*optional=*/true},
          {"node.threads", &m.threads, "threads of a rank"},
          {"node.core_splits", &m.core_splits, "steps per second of a node by ranks x threads, or none",
           /*optional=*/true},
          {"node.memory", &m.memory, "of a node, for all of its ranks"},
          {"node.device_memory", &m.device_memory, "of a rank's GPU"},
          {"network.latency_us", &m.network.latency_us, "alpha between nodes: what a message costs"},
          {"network.bandwidth_gbs", &m.network.bandwidth_gbs,
           "1 / beta between nodes, GB/s that a rank receives"},
          {"inside.latency_us", &m.inside.latency_us, "alpha inside a node"},
          {"inside.bandwidth_gbs", &m.inside.bandwidth_gbs, "1 / beta inside a node"},
          {"rates.draws_m", &m.draws, "million picks per second drawn and put into blocks"},
          {"rates.entries_m", &m.entries,
           "million entries per second of whole rows looked at (all but uniform draws)"},
          {"rates.rows_gbs", &m.rows_gbs, "feature rows copied from anywhere"},
          {"rates.spmm_gbs", &m.spmm_gbs, "dense rows gathered by a block times a matrix"},
          {"rates.gemm_gflops", &m.gemm_gflops, "products of tall dense matrices"},
          {"rates.gemm_tf32_gflops", &m.gemm_tf32_gflops, "the same in tf32; where not said, as in float32",
           /*optional=*/true},
          {"rates.gemm_bf16_gflops", &m.gemm_bf16_gflops, "the same in bf16; where not said, as in float32",
           /*optional=*/true},
          {"rates.elements_gbs", &m.elements_gbs, "activations passed by ReLU, dropout, loss"},
          {"rates.parameters_m", &m.parameters, "million parameters per second updated"},
          {"rates.gradients_m", &m.gradients, "million numbers per second of gradients packed and added up"},
          {"rates.disk_gbs", &m.disk_gbs, "rows read from disk, by chunks here and there; or none",
           /*optional=*/true}};
}

void assign(const MachineKey& key, const toml::node& node, const std::string& where) {
  const auto wrong = [&](const char* wanted) { usage_error("{}: {} must be {}", where, key.name, wanted); };
  if (auto* const* text = std::get_if<std::string*>(&key.target)) {
    const auto value = node.value_exact<std::string>();
    if (!value) wrong("a word in quotes");
    **text = *value;
  } else if (auto* const* whole = std::get_if<std::int64_t*>(&key.target)) {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < 1) wrong("a whole number of at least 1");
    **whole = *value;
  } else {
    const auto value = node.value<double>();
    const bool latency = std::string_view(key.name).ends_with("latency_us");
    if (!value || !node.is_number() || !std::isfinite(*value) || *value < 0 || (*value == 0 && !latency))
      wrong(latency ? "a number of at least 0" : "a number above 0");
    *std::get<double*>(key.target) = *value;
  }
}

using Seen = std::set<std::string>;

void assign_table(const std::vector<MachineKey>& keys, const toml::table& table, const std::string& prefix,
                  const std::string& path, Seen& seen) {
  for (const auto& [name, node] : table) {
    const auto full = prefix + std::string(name.str());
    const auto where = fmt::format("{}:{}", path, node.source().begin.line);
    if (full == "format" || full == "version") continue;
    if (const auto* inner = node.as_table(); inner != nullptr && prefix.empty()) {
      assign_table(keys, *inner, full + ".", path, seen);
      continue;
    }
    const auto found = std::ranges::find_if(keys, [&](const MachineKey& key) { return full == key.name; });
    if (found == keys.end()) {
      std::vector<std::string> names;
      for (const auto& key : keys) names.emplace_back(key.name);
      usage_error("{}: unknown key {}; did you mean {}?", where, full, nearest(full, names));
    }
    assign(*found, node, where);
    seen.insert(full);
  }
}

void check_header(const toml::table& table, const std::string& path) {
  if (table["format"].value_exact<std::string>() != std::string(kFormat))
    usage_error("{} is not a machine file: it lacks format = \"{}\"; `espalier calibrate` writes one", path,
                kFormat);
  const auto version = table["version"].value_exact<std::int64_t>();
  if (version != kVersion)
    usage_error(
        "{} is a machine file of version {}, and this program reads version {}; write it again with "
        "`espalier calibrate`",
        path, version ? std::to_string(*version) : "(none)", kVersion);
}

std::string number(double x) {
  const auto text = fmt::format("{:.3g}", x);
  return text.find('e') == std::string::npos ? text : fmt::format("{:.0f}", x);
}

}  // namespace

double gemm_rate(const Machine& machine, const std::string& precision) {
  const double own = precision == "tf32"   ? machine.gemm_tf32_gflops
                     : precision == "bf16" ? machine.gemm_bf16_gflops
                                           : 0;
  return own > 0 ? own : machine.gemm_gflops;
}

Machine read_machine(const std::string& path) {
  const auto text = read_input_text(path, "machine file");
  Machine machine;
  const auto keys = bind_keys(machine);
  Seen seen;
  try {
    const auto table = toml::parse(text, path);
    check_header(table, path);
    assign_table(keys, table, "", path, seen);
  } catch (const toml::parse_error& error) {
    usage_error("{}:{}: {}", path, error.source().begin.line, error.description());
  }
  for (const auto& key : keys)
    if (!key.optional && !seen.contains(key.name))
      usage_error("{}: {} is missing ({})", path, key.name, key.meaning);
  if (machine.device != "cpu" && machine.device != "cuda")
    usage_error("{}: node.device = {} is not one of cpu, cuda", path, machine.device);
  if (machine.distribution != "block" && machine.distribution != "cyclic")
    usage_error("{}: node.distribution = {} is not one of block, cyclic", path, machine.distribution);
  parse_core_splits(machine.core_splits, path + ": node.core_splits");
  parse_bytes(machine.memory, path + ": node.memory");
  if (machine.device == "cuda") parse_bytes(machine.device_memory, path + ": node.device_memory");
  return machine;
}

bool is_machine(const std::string& text) {
  try {
    return toml::parse(text)["format"].value_exact<std::string>() == std::string(kFormat);
  } catch (const toml::parse_error&) {
    return false;
  }
}

std::string to_toml(const Machine& machine, const std::string& about) {
  auto copy = machine;
  std::string text, section;
  std::stringstream lines(about);
  for (std::string line; std::getline(lines, line);)
    text += line.empty() ? "#\n" : "# " + printable(line) + "\n";
  text += fmt::format("\nformat = \"{}\"\nversion = {}\n", kFormat, kVersion);
  for (const auto& key : bind_keys(copy)) {
    if (auto* const* rate = std::get_if<double*>(&key.target); rate && key.optional && **rate == 0) continue;
    if (auto* const* word = std::get_if<std::string*>(&key.target); word && key.optional && (*word)->empty())
      continue;
    const std::string name = key.name;
    const auto dot = name.find('.');
    if (dot != std::string::npos && name.substr(0, dot) != section) {
      section = name.substr(0, dot);
      text += fmt::format("\n[{}]\n", section);
    }
    const auto value = std::visit(
        [](auto* target) -> std::string {
          if constexpr (std::is_same_v<decltype(target), std::string*>)
            return espalier::quoted(*target);
          else if constexpr (std::is_same_v<decltype(target), std::int64_t*>)
            return std::to_string(*target);
          else
            return number(*target);
        },
        key.target);
    text += fmt::format("{:<32} # {}\n", name.substr(dot == std::string::npos ? 0 : dot + 1) + " = " + value,
                        key.meaning);
  }
  return text;
}

Link link_of(const Machine& machine, std::int64_t ranks, std::int64_t group, std::int64_t stride) {
  if (group < 2) return machine.inside;
  // How many of a group share a node: with cyclic every so many-th.
  const auto nodes = (ranks + machine.ranks_per_node - 1) / machine.ranks_per_node;
  const auto near =
      std::clamp<std::int64_t>(machine.distribution == "cyclic" ? group / (nodes / std::gcd(nodes, stride))
                                                                : machine.ranks_per_node / stride,
                               1, group);
  const double inside = static_cast<double>(near - 1) / static_cast<double>(group - 1), outside = 1 - inside;
  return {inside * machine.inside.latency_us + outside * machine.network.latency_us,
          1 / (inside / machine.inside.bandwidth_gbs + outside / machine.network.bandwidth_gbs)};
}

}  // namespace espalier
