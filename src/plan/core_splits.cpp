#include "espalier/plan/core_splits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "espalier/base/error.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

std::vector<CoreSplit> core_splits(std::int64_t cores, std::int64_t most_ranks) {
  std::vector<CoreSplit> splits;
  for (std::int64_t ranks = 1; ranks <= std::min(cores, most_ranks); ++ranks)
    if (cores % ranks == 0) splits.push_back({ranks, cores / ranks});
  return splits;
}

CoreList cores_of(const CoreSplit& split, const CoreList& near, std::int64_t place) {
  const auto first = near.begin() + place * split.threads;
  CoreList cores(first, first + split.threads);
  std::ranges::sort(cores);
  return cores;
}

const CoreSplit* fastest_of(const std::vector<CoreSplit>& splits) {
  const auto best = std::ranges::max_element(splits, {}, &CoreSplit::steps);  // the first of equals
  return best == splits.end() || best->steps <= 0 ? nullptr : &*best;
}

std::string core_splits_in_words(const std::vector<CoreSplit>& splits) {
  std::string words;
  for (const auto& split : splits)
    if (split.steps > 0)
      words +=
          fmt::format("{}{}x{} {:.3g}", words.empty() ? "" : ", ", split.ranks, split.threads, split.steps);
  return words;
}

std::vector<CoreSplit> parse_core_splits(const std::string& words, const std::string& where) {
  std::vector<CoreSplit> splits;
  const char* at = words.data();
  const char* const end = at + words.size();
  const auto take = [&](auto& value) {
    const auto [after, error] = std::from_chars(at, end, value);
    at = after;
    return error == std::errc() && value > 0 && std::isfinite(static_cast<double>(value));
  };
  const auto skip = [&](std::string_view what) {
    const bool there = std::string_view(at, end).starts_with(what);
    if (there) at += what.size();
    return there;
  };
  while (at != end) {
    CoreSplit split;
    if ((!splits.empty() && !skip(", ")) || !take(split.ranks) || !skip("x") || !take(split.threads) ||
        !skip(" ") || !take(split.steps))
      usage_error("{}: \"{}\" is no list of ranks x threads and steps per second, as \"1x8 4.25, 2x4 5.5\"",
                  where, words);
    splits.push_back(split);
  }
  return splits;
}

std::string core_split_table(const std::vector<CoreSplit>& splits) {
  const auto* const fastest = fastest_of(splits);
  std::string text =
      fmt::format("{:<18}{:>20}{:>20}", "ranks x threads", "steps/s of a node", "of the fastest");
  for (const auto& split : splits) {
    const auto name = fmt::format("{} x {}", split.ranks, split.threads);
    text += split.steps > 0 ? fmt::format("\n{:<18}{:>20.3g}{:>20.2f}{}", name, split.steps,
                                          split.steps / fastest->steps, &split == fastest ? "  fastest" : "")
                            : fmt::format("\n{:<18}{:>20}{:>20}", name, "-", "-");
  }
  return text;
}

std::string advice_on_split(const std::vector<CoreSplit>& splits, std::int64_t ranks, std::int64_t threads) {
  const auto* const fastest = fastest_of(splits);
  if (fastest == nullptr || (fastest->ranks == ranks && fastest->threads == threads)) return {};
  const auto mine = std::ranges::find_if(splits, [&](const CoreSplit& split) {
    return split.ranks == ranks && split.threads == threads && split.steps > 0;
  });
  const auto best =
      fmt::format("{} a node x {}", counted(fastest->ranks, "rank"), counted(fastest->threads, "thread"));
  return mine == splits.end()
             ? fmt::format("{} x {} was not measured by the machine file; fastest of what was: {}", ranks,
                           threads, best)
             : fmt::format("{} x {}; fastest by the machine file: {}, {:.2f} times as many steps", ranks,
                           threads, best, fastest->steps / mine->steps);
}

}  // namespace espalier
