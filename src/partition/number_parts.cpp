// Which numbers parts of edges have: of 64 parts a grid takes runs of consecutive ones as block
// rows, and a vertex that parts of one run share has one copy there. So clusters of parts, of one
// part each to begin with, are merged two by two, first those that share most vertices, until one
// is left; the parts of a cluster are a list, and two lists are joined where the parts at their
// ends share most.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "edge_cut_methods.hpp"

namespace espalier {

namespace {

constexpr int kMostNumbered = 1024;

// Collective. [parts, parts]: how many vertices two parts share.
std::vector<std::int64_t> shared_vertices(const EdgeCutTask& task, const Buffer<std::uint16_t>& parts) {
  const auto count = static_cast<std::size_t>(task.parts);
  std::vector<std::int64_t> shared(count * count, 0);
  std::vector<std::uint16_t> of_row;
  for (std::int64_t v = 0; v < task.rows.rows; ++v) {
    parts_of_row(task.rows, parts, v, of_row);
    for (const auto p : of_row)
      for (const auto q : of_row) ++shared[p * count + q];
  }
  task.world.all_reduce(std::span(shared), Reduction::kSum, kCut);
  return shared;
}

using Run = std::vector<std::size_t>;  // of parts

// Either may be turned round.
Run joined(Run left, Run right, const std::vector<std::int64_t>& shared, std::size_t parts) {
  const std::array ends{
      shared[left.back() * parts + right.front()], shared[left.front() * parts + right.front()],
      shared[left.back() * parts + right.back()], shared[left.front() * parts + right.back()]};
  const auto best = std::ranges::max_element(ends) - ends.begin();
  if (best % 2 == 1) std::ranges::reverse(left);
  if (best >= 2) std::ranges::reverse(right);
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Of each number the part that gets it.
Run numbering(const std::vector<std::int64_t>& shared, std::size_t parts) {
  std::vector<Run> runs;
  for (std::size_t p = 0; p < parts; ++p) runs.push_back({p});
  auto between = shared;  // [runs, runs]: sums over the parts of either
  while (runs.size() > 1) {
    const auto count = runs.size();
    std::vector<std::tuple<std::int64_t, std::size_t, std::size_t>> pairs;
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = a + 1; b < count; ++b) pairs.emplace_back(-between[a * count + b], a, b);
    std::ranges::sort(pairs);
    std::vector<std::size_t> into(count, count);
    std::vector<Run> merged;
    for (const auto& [sum, a, b] : pairs) {
      if (into[a] < count || into[b] < count) continue;
      into[a] = into[b] = merged.size();
      merged.push_back(joined(std::move(runs[a]), std::move(runs[b]), shared, parts));
    }
    for (std::size_t a = 0; a < count; ++a)
      if (into[a] == count) into[a] = merged.size(), merged.push_back(std::move(runs[a]));
    std::vector<std::int64_t> sums(merged.size() * merged.size(), 0);
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = 0; b < count; ++b)
        sums[into[a] * merged.size() + into[b]] += between[a * count + b];
    runs = std::move(merged), between = std::move(sums);
  }
  return runs.front();
}

}  // namespace

void number_parts(const EdgeCutTask& task, Buffer<std::uint16_t>& parts) {
  if (task.parts > kMostNumbered) return;
  const auto order = numbering(shared_vertices(task, parts), static_cast<std::size_t>(task.parts));
  std::vector<std::uint16_t> number(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) number[order[k]] = static_cast<std::uint16_t>(k);
  for (auto& part : parts) part = number[part];
}

double largest_block_row(std::span<const std::int64_t> entries, int rows) {
  std::vector<std::int64_t> of_rows(static_cast<std::size_t>(rows), 0);
  const auto block_rows = fold_parts(entries, rows);
  for (std::size_t part = 0; part < block_rows.size(); ++part) of_rows[block_rows[part]] += entries[part];
  return static_cast<double>(std::ranges::max(of_rows));
}

std::vector<int> fold_parts(std::span<const std::int64_t> entries, int rows) {
  const auto parts = static_cast<int>(entries.size());
  std::int64_t all = 0, before = 0;
  for (const auto of : entries) all += of;
  std::vector<int> row_of;
  int last = -1;
  for (int p = 0; p < parts; before += entries[p++]) {
    // Where the middle of the part lies, if all rows get one.
    const auto middle = all == 0 ? 0 : static_cast<int>((2 * before + entries[p]) * rows / (2 * all));
    last = std::min({std::max({middle, last, rows - (parts - p)}), last + 1, rows - 1});
    row_of.push_back(last);
  }
  return row_of;
}

}  // namespace espalier
