// ranks: 1 2 3 6
// Laws: a digest is the sum over the parts, however the entries are cut; one changed value, or two
// that change places, give another; ranks put together what they read, copies of a part count once,
// and judge when the last entry is there, not before.
#include "espalier/file/content_digest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "mpi_test.hpp"

namespace espalier {
namespace {

template <class T>
std::uint64_t digest_of_part(const std::vector<T>& values, std::size_t begin, std::size_t end) {
  return content_digest(std::span<const T>(values).subspan(begin, end - begin),
                        static_cast<std::int64_t>(begin));
}

std::vector<std::int32_t> random_labels(std::mt19937_64& random, std::size_t size) {
  std::vector<std::int32_t> labels(size);
  for (auto& label : labels) label = static_cast<std::int32_t>(random() % 5) - 1;
  return labels;
}

TEST(ContentDigest, IsTheSumOverAnyParts) {
  const auto seed = test_seed(3);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 50; ++trial) {
    const auto labels = random_labels(random, random() % 200);
    std::uint64_t sum = 0;
    for (std::size_t begin = 0; begin < labels.size();) {
      const auto end = std::min(labels.size(), begin + 1 + random() % 30);
      sum += digest_of_part(labels, begin, end);
      begin = end;
    }
    EXPECT_EQ(sum, digest_of_part(labels, 0, labels.size()));
    const std::vector<std::int64_t> wide(labels.begin(), labels.end());
    EXPECT_EQ(sum, digest_of_part(wide, 0, wide.size()));
  }
}

TEST(ContentDigest, AnyOneChangeAndAnyExchangeIsSeen) {
  const auto seed = test_seed(4);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  auto labels = random_labels(random, 1000);
  const auto whole = digest_of_part(labels, 0, labels.size());
  for (int trial = 0; trial < 20000; ++trial) {
    const auto i = random() % labels.size(), j = random() % labels.size();
    const auto before = labels[i];
    labels[i] += 1 + static_cast<std::int32_t>(random() % 100);
    EXPECT_NE(digest_of_part(labels, 0, labels.size()), whole);
    labels[i] = before;
    if (labels[i] == labels[j]) continue;
    std::swap(labels[i], labels[j]);
    EXPECT_NE(digest_of_part(labels, 0, labels.size()), whole);
    std::swap(labels[i], labels[j]);
  }
  std::vector<float> zeros(3, 0.0f), negative = {0.0f, -0.0f, 0.0f};
  EXPECT_NE(digest_of_part(zeros, 0, 3), digest_of_part(negative, 0, 3));
}

TEST(ContentDigest, HexReadsBack) {
  for (const auto digest : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}})
    EXPECT_EQ(digest_from_hex(hex(digest)), digest);
  for (const char* text : {"", "0", "0123456789abcdeg", "0123456789abcdef0", "-123456789abcdef"})
    EXPECT_FALSE(digest_from_hex(text)) << text;
}

TEST(FileDigest, CoversNamesShapesAndClasses) {
  const std::vector<DatasetContent> one = {{"/a", {3}, 7}, {"/b", {2, 2}, 9}};
  auto other = one;
  std::swap(other[0], other[1]);
  EXPECT_EQ(file_digest(one, 4), file_digest(other, 4));
  EXPECT_NE(file_digest(one, 4), file_digest(one, 5));
  other = one;
  other[1].shape = {4};
  EXPECT_NE(file_digest(one, 4), file_digest(other, 4));
  other = one;
  other[0].name = "/c";
  EXPECT_NE(file_digest(one, 4), file_digest(other, 4));
  other.pop_back();
  EXPECT_NE(file_digest(one, 4), file_digest(other, 4));
}

// Rank r reads part r of p, twice, the second time as copy of its neighbour's.
TEST(ContentCheck, JudgesWhenEverythingWasRead) {
  const auto& world = test_world();
  std::mt19937_64 random(9);
  const auto labels = random_labels(random, 57);
  const auto p = static_cast<std::size_t>(world.size()), r = static_cast<std::size_t>(world.rank());
  const auto whole = digest_of_part(labels, 0, labels.size());
  for (const auto stated : {whole, whole + 1}) {
    ContentCheck check(std::ssize(labels), stated);
    // All but the last entry; ranks 2k and 2k + 1 read the same.
    const auto place = r - r % 2;
    const auto begin = 56 * place / p, end = 56 * std::min(p, place + 2) / p;
    EXPECT_TRUE(check.add(world, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end),
                          digest_of_part(labels, begin, end)));
    EXPECT_FALSE(check.found());
    const bool last = r + 1 == p;  // the others read nothing
    EXPECT_EQ(check.add(world, 56, last ? 57 : 56, last ? digest_of_part(labels, 56, 57) : 0),
              stated == whole);
    EXPECT_EQ(check.found(), whole);
  }
}

}  // namespace
}  // namespace espalier
