#include "link_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "espalier/file/csv.hpp"

namespace espalier {

namespace {

constexpr const char* kChoice = "choice of links";

// Of e links the part that is a share, rounded down; a share as 0.29 is a little less than it says.
std::int64_t part_of(std::int64_t links, double share) {
  constexpr double kSlack = 1e-6;
  return std::min(links, static_cast<std::int64_t>(std::floor(static_cast<double>(links) * share + kSlack)));
}

}  // namespace

void check_shares(const LinkShares& shares) {
  constexpr double kSlack = 1e-9;
  const auto fail = [&](const std::string& why) {
    usage_error("--split-links {}: {}; give the shares of train, valid and test, as 0.8,0.1,0.1",
                fmt::join(shares, ","), why);
  };
  for (const double share : shares)
    if (!(share >= 0)) fail("a share is negative");
  if (shares[0] == 0) fail("there is nothing to train on");
  if (const double sum = shares[0] + shares[1] + shares[2]; std::abs(sum - 1) > kSlack)
    fail(fmt::format("they sum to {:.9g}, not to 1", sum));
}

// By bisection for all at once: the smallest bound below which enough words lie, of all ranks, or
// the one below the words that are equal there.
void LinkChoice::set_bounds(const Communicator& comm, std::vector<std::vector<std::int64_t>> words,
                            const LinkShares& shares) {
  const auto relations = words.size();
  std::vector<std::int64_t> links(relations), wanted(2 * relations);
  for (std::size_t k = 0; k < relations; ++k) {
    std::ranges::sort(words[k]);
    links[k] = std::ssize(words[k]);
  }
  comm.all_reduce(std::span(links), Reduction::kSum, kChoice);
  for (std::size_t k = 0; k < relations; ++k) {
    wanted[2 * k] = part_of(links[k], shares[2]);
    wanted[2 * k + 1] = std::min(links[k], wanted[2 * k] + part_of(links[k], shares[1]));
  }
  // How many words are below bounds, of all ranks.
  const auto count_below = [&](std::vector<std::int64_t> bounds) {
    for (std::size_t k = 0; k < bounds.size(); ++k)
      bounds[k] = std::ranges::lower_bound(words[k / 2], bounds[k]) - words[k / 2].begin();
    comm.all_reduce(std::span(bounds), Reduction::kSum, kChoice);
    return bounds;
  };
  std::vector<std::int64_t> low(2 * relations, 0),
      high(2 * relations, std::numeric_limits<std::int64_t>::max()), middle(low);
  while (low != high) {
    for (std::size_t k = 0; k < low.size(); ++k) middle[k] = low[k] + (high[k] - low[k]) / 2;
    const auto covered = count_below(middle);
    for (std::size_t k = 0; k < low.size(); ++k)
      if (covered[k] >= wanted[k])
        high[k] = middle[k];
      else
        low[k] = std::min(middle[k] + 1, high[k]);
  }
  for (std::size_t k = 0; k < low.size(); ++k) middle[k] = std::max<std::int64_t>(0, low[k] - 1);
  const auto more = count_below(low), fewer = count_below(middle);
  for (std::size_t k = 0; k < low.size(); ++k)
    if (wanted[k] - fewer[k] < more[k] - wanted[k]) low[k] = middle[k];
  bounds_.clear();
  for (std::size_t k = 0; k < relations; ++k) bounds_.push_back({low[2 * k], low[2 * k + 1]});
}

namespace {

int find_named(const GraphFile& file, const char* option, const std::string& name) {
  const auto& schema = file.info().schema;
  if (!file.info().typed) usage_error("{}: {} has no relations; leave it out", option, file.path());
  const int r = schema.find_relation(name);
  if (r < 0)
    usage_error("{} {}: {} has no such relation, or several; its relations are {}", option, name, file.path(),
                schema.relation_names());
  return r;
}

// Of two relations that are inverses the first, where either has edges.
std::vector<int> usual_relations(const Schema& schema, const std::vector<std::uint8_t>& beside,
                                 const std::vector<std::int64_t>& entries) {
  std::vector<int> chosen;
  for (int r = 0; r < std::ssize(schema.relations()); ++r) {
    const int inverse = schema.relations()[r].inverse;
    const bool has_edges = entries[r] > 0 || (inverse >= 0 && entries[inverse] > 0);
    if ((inverse < 0 || inverse >= r) && has_edges && !beside[r]) chosen.push_back(r);
  }
  return chosen;
}

// Edges of these relations are between the ends of links, and are none.
void check_beside(const Schema& schema, const std::vector<std::uint8_t>& beside,
                  const std::vector<int>& chosen) {
  for (int r = 0; r < std::ssize(beside); ++r) {
    const auto& of = schema.relations()[r];
    if (!beside[r]) continue;
    if (std::ranges::find(chosen, r) != chosen.end())
      usage_error(
          "--also {}: its edges, or those of its inverse, are links themselves; name those whose are by "
          "--relations",
          schema.full_name(r));
    if (std::ranges::none_of(
            chosen, [&](int link) { return joins_same(schema, link, r) || joins_back(schema, link, r); }))
      usage_error("--also {}: no link joins a vertex of type {} and one of type {}; leave it out",
                  schema.full_name(r), schema.types()[of.source].name, schema.types()[of.target].name);
  }
}

}  // namespace

Schema declare_inverses(const GraphFile& file, const LinkSplitOptions& options) {
  const auto& schema = file.info().schema;
  if (options.inverses.empty()) return schema;
  auto relations = schema.relations();
  for (const auto& pair : options.inverses) {
    const auto names = split_text(pair, '=');
    if (names.size() != 2) usage_error("--inverse {}: give two relations, as buys=bought_by", pair);
    const int of[] = {find_named(file, "--inverse", names[0]), find_named(file, "--inverse", names[1])};
    for (const int k : {0, 1}) {
      auto& inverse = relations[of[k]].inverse;
      if (inverse >= 0 && inverse != of[1 - k])
        usage_error("--inverse {}: the inverse of {} is {}; leave it out", pair, schema.full_name(of[k]),
                    schema.full_name(inverse));
      inverse = of[1 - k];
    }
  }
  try {
    return {schema.types(), std::move(relations)};
  } catch (const std::invalid_argument& error) {
    usage_error("--inverse {}: {}", fmt::join(options.inverses, ","), error.what());
  }
}

std::vector<std::uint8_t> relations_beside(const GraphFile& file, const Schema& schema,
                                           const LinkSplitOptions& options) {
  std::vector<std::uint8_t> beside(schema.relations().size(), 0);
  for (const auto& name : options.also) {
    const int r = find_named(file, "--also", name), inverse = schema.relations()[r].inverse;
    beside[r] = 1;
    if (inverse >= 0) beside[inverse] = 1;
  }
  return beside;
}

std::vector<int> relations_of_links(const GraphFile& file, const Schema& schema,
                                    const LinkSplitOptions& options, const std::vector<std::uint8_t>& beside,
                                    const std::vector<std::int64_t>& entries) {
  std::vector<int> chosen;
  if (options.relations.empty()) chosen = usual_relations(schema, beside, entries);
  for (const auto& name : options.relations) {
    const int r = find_named(file, "--relations", name);
    if (std::ranges::find(chosen, r) != chosen.end()) usage_error("--relations: {} is named twice", name);
    const int inverse = schema.relations()[r].inverse;
    if (inverse != r && std::ranges::find(chosen, inverse) != chosen.end())
      usage_error("--relations: {} and {} are the same edges, in either direction; name one of them",
                  schema.full_name(inverse), schema.full_name(r));
    if (entries[r] == 0)
      input_error(
          "graph file {}: relation {} has no edges, so none can be a link; leave it out of --relations",
          file.path(), schema.full_name(r));
    chosen.push_back(r);
  }
  std::ranges::sort(chosen);
  check_beside(schema, beside, chosen);
  return chosen;
}

}  // namespace espalier
