// An order, and how good it is.
#include <algorithm>
#include <fstream>

#include "espalier/base/output_file.hpp"
#include "espalier/base/text.hpp"
#include "espalier/partition/partition_methods.hpp"
#include "info_pages.hpp"

namespace espalier {

namespace {

std::string names_of_balances() {
  std::string names;
  for (const auto* name : kBalanceNames) names += fmt::format("{:<10}", name);
  return names;
}

std::string in_words(std::span<const double> balances) {
  std::string words;
  for (const auto balance : balances.first(kBalances)) words += fmt::format("{:<10.3f}", balance);
  return words;
}

// A line for each type; balances: [parts], as balances_of.
void show_types(const std::vector<std::string>& types, const std::vector<int>& parts,
                const std::vector<std::vector<double>>& balances) {
  if (types.empty() || parts.empty()) return;
  std::string head;
  for (const int of : parts) head += fmt::format("{:>11} parts", of);
  log::info("\nlargest part over the mean, vertices and edges of each type:\n\n{:<20}{}", "type", head);
  for (std::size_t type = 0; type < types.size(); ++type) {
    std::string line;
    const auto vertices = kBalances + 2 * type;
    for (const auto& of : balances) line += fmt::format("{:>11.3f}{:>6.3f}", of[vertices], of[vertices + 1]);
    log::info("{:<20}{}", excerpt(types[type]), line);
  }
}

}  // namespace

void show_quality(const std::vector<PartsQuality>& qualities, const std::vector<std::string>& types) {
  if (qualities.empty()) return;
  log::info("\n{:>6} {:>8} {:>12}   largest part over the mean, of", "parts", "cut", "replication");
  log::info("{:>6} {:>8} {:>12}   {}", "", "", "", names_of_balances());
  for (const auto& quality : qualities)
    log::info("{:>6} {:>8.4f} {:>12.3f}   {}", quality.parts, quality.cut, quality.replication,
              in_words(quality.balances));
  std::vector<int> parts;
  std::vector<std::vector<double>> balances;
  for (const auto& quality : qualities) {
    parts.push_back(quality.parts);
    balances.push_back(quality.balances);
  }
  show_types(types, parts, balances);
}

// The attribute format stands near the beginning. HDF5 is not asked: what it makes of a damaged
// file is for those who read the file.
bool looks_like_order(const std::string& path) {
  if (!other_than_file(path).empty()) return false;
  std::string beginning(std::size_t{1} << 16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(beginning.data(), std::ssize(beginning));
  beginning.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return beginning.find("espalier-order") != beginning.npos;
}

void show_order(const Communicator& world, const std::string& path) {
  const auto order = read_order(world, path);
  const auto& info = order.info;
  info_line("file", path);
  info_line("order", fmt::format("{} by {}", counted(info.clusters(), "cluster"), info.method));
  info_line("vertices", std::to_string(info.nodes));
  info_line("graph", info.pattern ? fmt::format("digest of its edges {}", hex(*info.pattern)) : "unknown");
  ClusterWeights total{};
  for (const auto& weights : info.weights) total += weights;
  info_line("edges", std::to_string(total[1]));
  info_line("splits", fmt::format("train {}, valid {}, test {}", total[2], total[3], total[4]));
  log::info("\nlargest part over the mean, cut into so many parts:\n\n{:>6}   {}", "parts",
            names_of_balances());
  std::vector<std::vector<double>> balances;
  for (const int parts : shown_parts(info.clusters())) {
    balances.push_back(balances_of(info, cut_order(info, parts)));
    log::info("{:>6}   {}", parts, in_words(balances.back()));
  }
  show_types(info.types, shown_parts(info.clusters()), balances);
}

}  // namespace espalier
