#include "order_page.hpp"

#include <algorithm>
#include <fstream>

#include "espalier/base/escape.hpp"
#include "espalier/base/log.hpp"
#include "espalier/partition/order_quality.hpp"

namespace espalier {

namespace {

std::string names_of_balances() {
  std::string names;
  for (const auto* name : kBalanceNames) names += fmt::format("{:<10}", name);
  return names;
}

std::string in_words(const std::array<double, kBalanceNames.size()>& balances) {
  std::string words;
  for (const auto balance : balances) words += fmt::format("{:<10.3f}", balance);
  return words;
}

}  // namespace

void show_quality(const std::vector<PartsQuality>& qualities) {
  if (qualities.empty()) return;
  log::info("\n{:>6} {:>8} {:>12}   largest part over the mean, of", "parts", "cut", "replication");
  log::info("{:>6} {:>8} {:>12}   {}", "", "", "", names_of_balances());
  for (const auto& quality : qualities)
    log::info("{:>6} {:>8.4f} {:>12.3f}   {}", quality.parts, quality.cut, quality.replication,
              in_words(quality.balances));
}

// The attribute format stands near the beginning. HDF5 is not asked: what it makes of a damaged
// file is for those who read the file.
bool looks_like_order(const std::string& path) {
  std::string beginning(std::size_t{1} << 16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(beginning.data(), std::ssize(beginning));
  beginning.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return beginning.find("espalier-order") != beginning.npos;
}

void show_order(const Communicator& world, const std::string& path) {
  const auto order = read_order(world, path);
  const auto& info = order.info;
  const auto line = [](const char* name, const std::string& text) { log::info("{:<12} {}", name, text); };
  line("file", excerpt(path));
  line("order", fmt::format("{} clusters by {}", info.clusters(), excerpt(info.method)));
  line("vertices", std::to_string(info.nodes));
  line("graph", info.pattern ? fmt::format("digest of its edges {}", hex(*info.pattern)) : "unknown");
  ClusterWeights total{};
  for (const auto& weights : info.weights)
    for (std::size_t k = 0; k < total.size(); ++k) total[k] += weights[k];
  line("edges", std::to_string(total[1]));
  line("splits", fmt::format("train {}, valid {}, test {}", total[2], total[3], total[4]));
  log::info("\nlargest part over the mean, cut into so many parts:\n\n{:>6}   {}", "parts",
            names_of_balances());
  for (const int parts : shown_parts(info.clusters()))
    log::info("{:>6}   {}", parts, in_words(balances_of(info.weights, cut_order(info.weights, parts))));
}

}  // namespace espalier
