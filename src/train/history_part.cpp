#include "history_part.hpp"

#include <nlohmann/json.hpp>

#include "espalier/history/training_history.hpp"

namespace espalier {

using Json = nlohmann::ordered_json;

namespace {

double percent(std::int64_t part, std::int64_t all) {
  return all > 0 ? 100 * static_cast<double>(part) / static_cast<double>(all) : 0.0;
}

}  // namespace

void say_held(std::span<const HeldHistory> held, EpochReport& report) {
  Json lines = Json::array();
  for (const auto& some : held)
    lines.push_back({{"layer", some.layer}, {"ages", {some.youngest, some.oldest}}, {"rows", some.rows}});
  report.remarks.push_back({kHistoryGroup, "held", lines.dump()});
}

std::string history_lines(std::span<const EpochReport> epochs) {
  const auto sum = [&](const char* name) { return total(epochs, kHistoryGroup, name); };
  if (sum("needed_rows").value_or(0) == 0) return {};
  const auto inputs = sum("input_rows_of_sample"), edges = sum("edges_of_sample");
  return fmt::format("history: {:.0f} % of the hidden rows were read, not computed; {}\n",
                     percent(*sum("hits"), *sum("needed_rows")),
                     inputs && edges
                         ? fmt::format("left of the sample: {:.0f} % of its input rows, {:.0f} % of its "
                                       "edges",
                                       percent(*sum("input_rows"), *inputs), percent(*sum("edges"), *edges))
                         : "what they alone need was not drawn");
}

}  // namespace espalier
