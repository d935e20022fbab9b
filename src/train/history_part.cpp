#include "history_part.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "espalier/base/counted.hpp"
#include "espalier/history/training_history.hpp"

namespace espalier {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kHeld = "held";

double percent(std::int64_t part, std::int64_t all) {
  return all > 0 ? 100 * static_cast<double>(part) / static_cast<double>(all) : 0.0;
}

std::string line_of(const Json& some) {
  const auto youngest = some.at("ages").at(0).get<std::int64_t>(),
             oldest = some.at("ages").at(1).get<std::int64_t>();
  const auto& error = some.at("error");
  return fmt::format(
      "  layer {}, {} old: {}, error {:.2f} (90 %: below {:.2f}), cosine {:.3f}\n",
      some.at("layer").get<int>(),
      youngest == oldest ? counted(oldest, "step") : fmt::format("{} to {} steps", youngest, oldest),
      counted(some.at("rows").get<std::int64_t>(), "row"), error.at("median").get<double>(),
      error.at("p90").get<double>(), error.at("cosine").get<double>());
}

}  // namespace

void say_held(std::span<const HeldHistory> held, EpochReport& report) {
  Json lines = Json::array();
  for (const auto& some : held) {
    Json line = {{"layer", some.layer}, {"ages", {some.youngest, some.oldest}}, {"rows", some.rows}};
    if (some.error)
      line["error"] = {{"mean", some.error->mean},
                       {"median", some.error->median},
                       {"p90", some.error->p90},
                       {"cosine", some.error->cosine}};
    lines.push_back(std::move(line));
  }
  std::erase_if(report.remarks, [](const Remark& remark) { return remark.group == kHistoryGroup; });
  report.remarks.push_back({kHistoryGroup, kHeld, lines.dump()});
}

std::string history_lines(std::span<const EpochReport> epochs) {
  const auto sum = [&](const char* name) { return total(epochs, kHistoryGroup, name); };
  if (sum("needed_rows").value_or(0) == 0) return {};
  const auto inputs = sum("input_rows_of_sample"), edges = sum("edges_of_sample");
  auto text = fmt::format(
      "history: {:.0f} % of the hidden rows were read, not computed; {}\n",
      percent(*sum("hits"), *sum("needed_rows")),
      inputs && edges ? fmt::format("left of the sample: {:.0f} % of its input rows, {:.0f} % of its "
                                    "edges",
                                    percent(*sum("input_rows"), *inputs), percent(*sum("edges"), *edges))
                      : "what they alone need was not drawn");
  for (const auto& remark : epochs.back().remarks)
    if (remark.group == kHistoryGroup && remark.name == kHeld)
      for (const auto& some : Json::parse(remark.json))
        if (some.contains("error")) text += line_of(some);
  return text;
}

}  // namespace espalier
