// ranks: 1 2 3 4
// Laws: whatever the bytes of a part, the parts that ranks read of a text, in their order, have the
// edges of the whole, of a Matrix Market file as many as its header says, and what is no edge is
// refused in the words of who reads the whole, with its line there.
#include "../../src/graph/edge_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <tuple>

#include "files.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

using WeightedLine = std::tuple<std::int64_t, std::int64_t, float>;

std::vector<WeightedLine> lines_of(const EdgePiece& piece) {
  std::vector<WeightedLine> lines;
  for (std::size_t k = 0; k < piece.sources.size(); ++k)
    lines.emplace_back(piece.sources[k], piece.targets[k], piece.weights.empty() ? 1 : piece.weights[k]);
  return lines;
}

// Round after round, as ReadingRounds takes them; none where something was refused.
std::optional<std::vector<WeightedLine>> in_parts(const EdgeSource& edges, int ranks) {
  std::vector<std::vector<std::vector<WeightedLine>>> of_ranks;
  std::int64_t missing = 0;
  try {
    for (int rank = 0; rank < ranks; ++rank) {
      auto& parts = of_ranks.emplace_back(1);
      const auto next = [&] { parts.emplace_back(); };
      const auto miss = [&](std::int64_t number) { missing += number; };
      edges.read_parts({rank, ranks, next, miss}, [&](const EdgePiece& piece) {
        const auto lines = lines_of(piece);
        parts.back().insert(parts.back().end(), lines.begin(), lines.end());
      });
    }
  } catch (const UserError&) {
    return {};
  }
  if (missing != 0) return {};
  std::vector<WeightedLine> found;
  for (std::size_t round = 0;
       std::ranges::any_of(of_ranks, [&](const auto& of) { return round < of.size(); }); ++round)
    for (const auto& parts : of_ranks)
      if (round < parts.size()) found.insert(found.end(), parts[round].begin(), parts[round].end());
  return found;
}

// Collective.
void check_parts(const EdgeSource& edges) {
  std::vector<WeightedLine> whole;
  const auto refused = message_of(ExitCode::kInput, [&] {
    edges.read([&](const EdgePiece& piece) {
      const auto lines = lines_of(piece);
      whole.insert(whole.end(), lines.begin(), lines.end());
    });
  });
  if (test_world().rank() == 0) {
    const auto found = in_parts(edges, test_world().size());
    EXPECT_EQ(found.has_value(), refused.empty()) << refused;
    if (found && refused.empty()) EXPECT_EQ(*found, whole);
  }
  EXPECT_EQ(message_of(ExitCode::kInput, [&] { count_entries({test_world(), &edges}, -1, {}); }), refused);
}

class EdgeTextParts : public testing::Test {
 protected:
  void SetUp() override {
    path_ = test_folder("edge-text") + "/edges.txt";
    random_.seed(seed_);
  }
  // The mark of UTF-8 fits in.
  std::int64_t random_part() { return static_cast<std::int64_t>(random_() % 60 + 4); }

  std::uint64_t seed_ = test_seed(67);
  testing::ScopedTrace trace_{__FILE__, __LINE__, fmt::format("ESPALIER_TEST_SEED={}", seed_)};
  std::mt19937_64 random_;
  std::string path_;
};

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

TEST_F(EdgeTextParts, AreTheWhole) {
  for (int round = 0; round < 100; ++round) {
    const auto text = random_text(random_, round % 3 == 0);
    SCOPED_TRACE(text);
    write_for_all(path_, text);
    EdgeTextOptions options{.path = path_, .part = random_part()};
    options.form.fields.push_back(PairField::kValue);
    check_parts(*open_edge_text(options));
  }
}

// Of a third the header announces another number of entries than there are.
std::string random_matrix(std::mt19937_64& random, bool bad) {
  const std::array ends = {"\n", "\r\n", "\n\n", "\n% a comment 1 2\n", " \n"};
  const auto comments = [&] { return std::string(random() % 3, '%') + ends[random() % ends.size()]; };
  const bool pattern = random() % 2 == 0;
  const auto entries = random() % 40;
  auto text =
      fmt::format("{}%%MatrixMarket matrix coordinate {} {}\n", random() % 4 == 0 ? "\xef\xbb\xbf" : "",
                  pattern ? "pattern" : "real", random() % 2 == 0 ? "general" : "symmetric");
  for (auto lines = random() % 20; lines > 0; --lines) text += comments();
  text += fmt::format("9 9 {}{}", entries + (random() % 3 == 0 ? random() % 3 - 1 : 0),
                      ends[random() % ends.size()]);
  for (std::uint64_t entry = 0; entry < entries; ++entry) {
    text += fmt::format("{} {}", random() % 9 + (bad && random() % 20 == 0 ? 0 : 1), random() % 9 + 1);
    if (!pattern) text += fmt::format(" {}", random() % 100);
    if (entry + 1 < entries || random() % 2 == 0) text += ends[random() % ends.size()];
  }
  return text;
}

TEST_F(EdgeTextParts, OfAMatrixAreTheWhole) {
  for (int round = 0; round < 100; ++round) {
    const auto text = random_matrix(random_, round % 3 == 0);
    SCOPED_TRACE(text);
    write_for_all(path_, text);
    std::optional<MatrixMarket> matrix;
    // "-1 entries", and the like
    try {
      matrix.emplace(path_, round % 5 != 0, random_part());
    } catch (const UserError&) {
      continue;
    }
    check_parts(*matrix);
  }
}

}  // namespace
}  // namespace espalier
