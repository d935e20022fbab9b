// ranks: 1 3 4
// Laws of the audit: every held row is counted once, by layer and age; errors and cosines are
// those of rows side by side; quantiles are those of a sort to within 5 %; nothing depends on who
// holds what.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "espalier/history/history_audit.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kVertices = 700, kWidth = 5;

// Exact rows of layers 1 and 3, and rows of history of some vertices and ages.
struct AuditCase {
  Matrix<float> exact[4];
  std::vector<HeldRow> held;
  Matrix<float> kept;

  AuditCase() {
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    for (const int layer : {1, 3}) {
      exact[layer] = Matrix<float>(kVertices, kWidth);
      for (auto& x : exact[layer].data) x = normal(random);
      for (std::int64_t v = 0; v < kVertices; ++v)
        if (random() % 4 != 0) held.push_back({layer, v, 1 + static_cast<std::int64_t>(random() % 40)});
    }
    std::fill_n(exact[1].row(3), kWidth, 0.0f);
    std::ranges::shuffle(held, random);
    kept = Matrix<float>(std::ssize(held), kWidth);
    for (std::size_t k = 0; k < held.size(); ++k)
      for (std::int64_t j = 0; j < kWidth; ++j)
        kept(static_cast<std::int64_t>(k), j) = exact[held[k].layer](held[k].vertex, j) +
                                                0.01f * static_cast<float>(held[k].age) * normal(random);
  }

  static int age_group(const HeldRow& row) { return static_cast<int>(std::floor(std::log2(row.age))); }

  // Errors of a group, in order, and the sum of cosines, by long doubles.
  std::pair<std::vector<double>, double> of(int layer, int ages) const {
    std::vector<double> errors;
    double cosines = 0;
    for (std::size_t k = 0; k < held.size(); ++k) {
      if (held[k].layer != layer || age_group(held[k]) != ages) continue;
      long double apart = 0, norm = 0, kept_norm = 0, product = 0;
      for (std::int64_t j = 0; j < kWidth; ++j) {
        const long double r = kept(static_cast<std::int64_t>(k), j), h = exact[layer](held[k].vertex, j);
        apart += (r - h) * (r - h), norm += h * h, kept_norm += r * r, product += r * h;
      }
      errors.push_back(norm == 0 ? 1.0 : static_cast<double>(std::sqrt(apart / norm)));
      if (norm > 0) cosines += static_cast<double>(product / std::sqrt(norm * kept_norm));
    }
    std::ranges::sort(errors);
    return {errors, cosines};
  }
};

// Row k is of rank k mod p, or all are of one; exact rows lie in ranges or in a map's order.
void expect_audited(const Communicator& world, bool all_on_last, bool by_map) {
  const AuditCase all;
  std::vector<HeldRow> mine;
  std::vector<std::int64_t> numbers;
  for (std::size_t k = 0; k < all.held.size(); ++k)
    if (all_on_last ? world.rank() == world.size() - 1 : static_cast<int>(k) % world.size() == world.rank()) {
      mine.push_back(all.held[k]);
      numbers.push_back(static_cast<std::int64_t>(k));
    }
  Matrix<float> rows(std::ssize(mine), kWidth);
  for (std::int64_t k = 0; k < rows.rows; ++k) std::copy_n(all.kept.row(numbers[k]), kWidth, rows.row(k));
  std::vector<std::int32_t> owner;
  for (std::int64_t v = 0; v < kVertices; ++v)
    owner.push_back(static_cast<std::int32_t>(by_map ? v * 7 % world.size() : v * world.size() / kVertices));
  const Ownership owners(owner, world.size());
  std::vector<Matrix<float>> exact(4);
  for (const int layer : {1, 3}) {
    exact[layer] = Matrix<float>(owners.size(world.rank()), kWidth);
    for (std::int64_t k = 0; k < exact[layer].rows; ++k)
      std::copy_n(all.exact[layer].row(owners.vertex(world.rank(), k)), kWidth, exact[layer].row(k));
  }
  const auto found = audit_held(world, mine, rows, owners, exact, "audit");
  const auto counted = count_held(world, mine);
  ASSERT_EQ(found.size(), 12U) << "ages 1, 2-3, .. 32-63 of two layers";
  ASSERT_EQ(counted.size(), 12U);
  for (std::size_t line = 0; line < found.size(); ++line) {
    const int layer = line < 6 ? 1 : 3, ages = static_cast<int>(line % 6);
    const auto& some = found[line];
    EXPECT_EQ(some.layer, layer);
    EXPECT_EQ(some.youngest, std::int64_t{1} << ages);
    EXPECT_EQ(some.oldest, (std::int64_t{2} << ages) - 1);
    const auto [errors, cosines] = all.of(layer, ages);
    ASSERT_EQ(some.rows, std::ssize(errors));
    EXPECT_EQ(counted[line].rows, some.rows);
    EXPECT_FALSE(counted[line].error);
    const auto count = static_cast<double>(errors.size());
    double sum = 0;
    for (const auto error : errors) sum += error;
    EXPECT_NEAR(some.error->mean, sum / count, 1e-6 * sum);
    EXPECT_NEAR(some.error->cosine, cosines / count, 1e-6);
    for (const auto& [value, share] : {std::pair(some.error->median, 0.5), std::pair(some.error->p90, 0.9)}) {
      const auto expected = errors[static_cast<std::size_t>(std::ceil(share * count)) - 1];
      EXPECT_NEAR(value / expected, 1, 0.05) << layer << " " << ages << " " << share;
    }
  }
}

TEST(HistoryAudit, RowsSideBySide) {
  const auto& world = test_world();
  for (const bool all_on_last : {false, true})
    for (const bool by_map : {false, true}) expect_audited(world, all_on_last, by_map);
}

// Eight rows of vertices 0 to 7, of age 1: alike, half away, and what is or was nothing.
TEST(HistoryAudit, RowsOfZeros) {
  const auto& world = test_world();
  const std::vector<std::array<float, 4>> kept_and_exact = {{3, 4, 3, 4},   {0, 0, 0, 0},  {0, 0, 0, 0},
                                                            {0, 0, 0, 0},   {5, 1, 0, 0},  {0, 0, 3, 4},
                                                            {3, 1.5, 3, 4}, {3, 6.5, 3, 4}};
  std::vector<HeldRow> mine;
  Matrix<float> rows(world.rank() == 0 ? 8 : 0, 2);
  for (std::int64_t v = 0; v < rows.rows; ++v) {
    mine.push_back({1, v, 1});
    std::copy_n(kept_and_exact[v].data(), 2, rows.row(v));
  }
  const Ownership owners(block_partition(8, world.size()));
  std::vector<Matrix<float>> exact(2, Matrix<float>(owners.size(world.rank()), 2));
  for (std::int64_t k = 0; k < exact[1].rows; ++k)
    std::copy_n(kept_and_exact[owners.vertex(world.rank(), k)].data() + 2, 2, exact[1].row(k));
  const auto found = audit_held(world, mine, rows, owners, exact, "audit");
  ASSERT_EQ(found.size(), 1U);
  const auto& error = *found[0].error;
  EXPECT_NEAR(error.mean, (4 * 0.0 + 1 + 1 + 0.5 + 0.5) / 8, 1e-7);
  EXPECT_EQ(error.median, 0);
  EXPECT_NEAR(error.p90, 1, 0.05);
  EXPECT_NEAR(error.cosine, (4 + 0 + 0 + 15 / (5 * std::hypot(3, 1.5)) + 35 / (5 * std::hypot(3, 6.5))) / 8,
              1e-6);
}

TEST(HistoryAudit, NothingHeld) {
  const auto& world = test_world();
  EXPECT_TRUE(count_held(world, {}).empty());
  const std::vector<Matrix<float>> exact(1);
  EXPECT_TRUE(audit_held(world, {}, Matrix<float>(0, kWidth),
                         Ownership(block_partition(kVertices, world.size())), exact, "audit")
                  .empty());
}

}  // namespace
}  // namespace espalier
