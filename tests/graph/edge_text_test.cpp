// Laws: whatever the bytes of a part, the parts that ranks read of a text, in their order, have the
// edges of the whole, and the first line that is no edge is told by its number in the whole.
#include "../../src/graph/edge_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <random>
#include <tuple>

#include "mpi_test.hpp"

namespace espalier {
namespace {

using WeightedLine = std::tuple<std::int64_t, std::int64_t, float>;

struct Reading {
  std::vector<WeightedLine> edges;
  std::string error;
};

template <class Read>
Reading reading_of(Read read) {
  Reading found;
  try {
    read([&](const EdgePiece& piece) {
      for (std::size_t k = 0; k < piece.sources.size(); ++k)
        found.edges.emplace_back(piece.sources[k], piece.targets[k], piece.weights[k]);
    });
  } catch (const UserError& error) {
    found.error = error.what();
  }
  return found;
}

// Round after round, as ReadingRounds takes them.
Reading in_parts(const EdgeSource& edges, int ranks) {
  std::vector<std::vector<Reading>> of_ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    auto& parts = of_ranks.emplace_back(1);
    std::size_t taken = 0;
    auto all = reading_of([&](const std::function<void(const EdgePiece&)>& use) {
      edges.read_parts(
          rank, ranks,
          [&](const EdgePiece& piece) {
            use(piece);
            for (std::size_t k = 0; k < piece.sources.size(); ++k)
              parts.back().edges.emplace_back(piece.sources[k], piece.targets[k], piece.weights[k]);
          },
          [&] { parts.emplace_back(); });
    });
    parts.back().error = all.error;
    taken = all.edges.size();
    std::size_t sum = 0;
    for (const auto& part : parts) sum += part.edges.size();
    EXPECT_EQ(sum, taken);
  }
  Reading found;
  for (std::size_t round = 0;
       std::ranges::any_of(of_ranks, [&](const auto& of) { return round < of.size(); }); ++round)
    for (const auto& parts : of_ranks) {
      if (round >= parts.size()) continue;
      if (!parts[round].error.empty()) return {{}, parts[round].error};
      found.edges.insert(found.edges.end(), parts[round].edges.begin(), parts[round].edges.end());
    }
  return found;
}

std::string random_text(std::mt19937_64& random, bool bad) {
  const std::array between = {" ", "\t", ",", " , "};
  const std::array ends = {"\n", "\r\n", "\n\n", "\n# a comment 1 2\n", " \n"};
  std::string text = random() % 4 == 0 ? "\xef\xbb\xbf" : "";
  if (random() % 2 == 0) text += "# begins with one\n";
  const auto lines = random() % 40;
  for (std::uint64_t line = 0; line < lines; ++line) {
    const auto* gap = between[random() % between.size()];
    text += fmt::format("{}{}{}{}{}", random() % 1000, gap, random() % 1000, gap, random() % 100);
    if (bad && random() % 20 == 0) text += "x";
    if (line + 1 < lines || random() % 2 == 0) text += ends[random() % ends.size()];
  }
  return text;
}

TEST(EdgeText, PartsAreTheWhole) {
  const auto seed = test_seed(67);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  const auto path = fmt::format("{}/edges-{}.txt", test_folder("edge-text"), test_world().rank());
  for (int round = 0; round < 200; ++round) {
    const auto text = random_text(random, round % 3 == 0);
    std::ofstream(path, std::ios::binary) << text;
    EdgeTextOptions options{.path = path};
    options.form.fields.push_back(PairField::kValue);
    options.part = static_cast<std::int64_t>(random() % 60 + 1);
    const auto edges = open_edge_text(options);
    auto whole = reading_of([&](const auto& use) { edges->read(use); });
    if (!whole.error.empty()) whole.edges.clear();
    for (int ranks = 1; ranks <= 4; ++ranks) {
      const auto found = in_parts(*edges, ranks);
      EXPECT_EQ(found.error, whole.error) << text;
      EXPECT_EQ(found.edges, whole.edges) << text;
    }
  }
}

}  // namespace
}  // namespace espalier
