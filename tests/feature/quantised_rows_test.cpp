// ranks: 1 2 3 4
// Laws: quantised_rows_cases.hpp, on the CPU; which codes lie where; a packing is that of all rows,
// whoever has them and in how many pieces; columns that one number spoils are found; a store of
// quantised rows gives, on every grid, what they stand for, and moves no more than codes.
#include "feature/quantised_rows_cases.hpp"

#include <numeric>
#include <set>

#include "espalier/base/row_range.hpp"
#include "espalier/feature/row_store.hpp"

namespace espalier {
namespace {

Quantisation packing_of(const Matrix<float>& rows, int bits) {
  return measure_packing([&](const auto& use) { use(rows); }, rows.columns, bits, test_world());
}

std::vector<int> bytes_of(const StoredRows<Cpu>& rows, std::int64_t i) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(rows.row(i));
  return {bytes, bytes + rows.form.row_bytes()};
}

Matrix<float> unpacked(const StoredRows<Cpu>& rows, std::int64_t columns) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows.rows));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  Matrix<float> numbers(rows.rows, columns);
  gather_rows(Cpu{2}, rows.form, rows.data, rows.data, all.data(), numbers);
  return numbers;
}

TEST(QuantisedRows, NumbersAreThoseOfTheirCodes) {
  check_unpack(Cpu{1}, Placement::kDevice);
  check_unpack(Cpu{3}, Placement::kDevice);
}

// By hand: three columns from 0 to 3, 0 to 6 and 5 to 5.
TEST(QuantisedRows, CodesLieFromTheLowestBitUp) {
  Matrix<float> x(4, 3);
  x.data = {0, 6, 5, 3, 0, 5, 1, 3, 5, 2.5f, 2, 5};
  const auto two = packed(x, 2, packing_of(x, 2));
  EXPECT_EQ(two.form.row_bytes(), 2);
  EXPECT_EQ(bytes_of(two, 0), (std::vector<int>{0 | 3 << 2, 0}));
  EXPECT_EQ(bytes_of(two, 1), (std::vector<int>{3, 0}));
  EXPECT_EQ(bytes_of(two, 2), (std::vector<int>{1 | 2 << 2, 0})) << "3 of steps of 2: 1.5, the even one is 2";
  EXPECT_EQ(bytes_of(two, 3), (std::vector<int>{2 | 1 << 2, 0})) << "2.5: the even one is 2";
  const auto eight = packed(x, 8, packing_of(x, 8));
  EXPECT_EQ(eight.form.row_bytes(), 4);
  EXPECT_EQ(bytes_of(eight, 0), (std::vector<int>{0, 255, 0, 0}));
  EXPECT_EQ(bytes_of(eight, 2), (std::vector<int>{85, 128, 0, 0})) << "127.5: the even one is 128";
  const auto one = packed(x, 1, packing_of(x, 1));
  EXPECT_EQ(bytes_of(one, 1), (std::vector<int>{1, 0}));
  EXPECT_EQ(unpacked(two, 3).data, (Buffer<float>{0, 6, 5, 3, 0, 5, 1, 4, 5, 2, 2, 5}));
}

TEST(QuantisedRows, OfTheEndsOfFloats) {
  constexpr float kMost = 3.4028234e38f, kLeast = 1.4e-45f;
  Matrix<float> x(3, 5);
  x.data = {-kMost, 0.0f, -0.0f, kLeast, 0.1f, kMost, -0.0f, -0.0f, 0, 0.1f, 0, 0, -0.0f, 0, 0.1f};
  for (const int bits : {1, 2, 4, 8}) {
    const auto numbers = unpacked(packed(x, bits, packing_of(x, bits)), 5);
    EXPECT_EQ(numbers(0, 0), -kMost);
    EXPECT_EQ(numbers(1, 0), kMost);
    EXPECT_EQ(numbers(0, 3), kLeast);
    EXPECT_EQ(numbers(2, 4), 0.1f);
    for (std::int64_t i = 0; i < 3; ++i)
      for (const int zero : {1, 2}) {
        EXPECT_EQ(numbers(i, zero), 0.0f);
        EXPECT_FALSE(std::signbit(numbers(i, zero))) << "one zero, whichever was met first";
      }
  }
  const auto nothing = packing_of(Matrix<float>(0, 2), 4);
  EXPECT_EQ(nothing.least, (Buffer<double>{0, 0}));
  EXPECT_EQ(nothing.step, (Buffer<double>{0, 0}));
}

// Columns: even; of 200 numbers and one far away; of two numbers; of 300, more than are counted,
// and one far away; with a gap; constant.
TEST(QuantisedRows, WhatCodesLeaveOfColumns) {
  constexpr std::int64_t n = 603;
  Matrix<float> x(n, 6);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<float>(i), far = i == 431 ? 1e9f : 0.0f;
    const float row[] = {k,
                         far > 0 ? far : static_cast<float>(i % 199),
                         static_cast<float>(i % 2),
                         far > 0 ? far : static_cast<float>(i % 300),
                         i < 300 ? k : k + 1000,
                         7};
    std::ranges::copy(row, x.row(i));
  }
  const auto& world = test_world();
  for (const int bits : {1, 2, 4, 8}) {
    const auto mine = even_range(n, world.size(), world.rank());
    Matrix<float> rows(mine.size(), x.columns);
    rows.data.assign(x.row(mine.begin), x.row(mine.begin) + mine.size() * x.columns);
    const auto packing = packing_of(rows, bits);
    const auto all = packed(rows, bits, packing);
    CodeUse use(all.form);
    for (std::int64_t i = 0; i < rows.rows; ++i) use.add({1, rows.columns, rows.row(i)}, all.row(i));
    // By a list of all codes and numbers.
    std::vector<PoorColumn> expected;
    const auto of_all = packed(x, bits, packing);
    const auto numbers = unpacked(of_all, x.columns);
    for (std::int64_t j = 0; j < x.columns && bits > 1; ++j) {
      std::set<float> codes, given;
      for (std::int64_t i = 0; i < n; ++i) {
        codes.insert(numbers(i, j));
        given.insert(x(i, j));
      }
      if (j == 1) {
        EXPECT_EQ(codes.size(), 2);
        EXPECT_EQ(given.size(), 200);
      }
      if (j == 1 || j == 3)
        expected.push_back({j, std::ssize(codes), std::min<std::int64_t>(257, std::ssize(given))});
    }
    EXPECT_EQ(use.poor_columns(world), expected) << bits << " bits";
  }
}

TEST(QuantisedRows, AStoreOfThemOnEveryGrid) {
  constexpr std::int64_t n = 61, width = 11;
  std::mt19937_64 random(test_seed(32));
  const auto x = rows_to_pack(n, width, random);
  for (const int bits : {1, 2, 4, 8}) {
    const auto expected = unpacked(packed(x, bits, packing_of(x, bits)), width);
    for (const int c : divisors(test_world().size())) {
      SCOPED_TRACE(testing::Message() << bits << " bits, c " << c);
      const Grid grid(test_world(), c);
      const auto partition = block_partition(n, grid.rows());
      const auto first = partition.begin(grid.row()), rows = partition.size(grid.row());
      const RowsInParts pieces = [&](const auto& use) {  // a row at a time
        for (std::int64_t i = 0; i < rows; ++i) {
          Matrix<float> row(1, width);
          std::copy_n(x.row(first + i), width, row.row(0));
          use(row);
        }
      };
      const auto& kind = *kind_asked(bits);
      StoredRows<Cpu> mine(kind.measure(pieces, width, grid.column_comm()), rows);
      std::int64_t at = 0;
      pieces([&](const Matrix<float>& row) { write_rows(mine.form, row, mine.row(at++)); });
      const RowStore store(grid, partition, std::move(mine));
      EXPECT_EQ(store.width(), width);
      EXPECT_EQ(store.storage().row_bytes(), (width * bits + 15) / 16 * 2);
      std::vector<std::int64_t> ids;
      for (std::int64_t i = n - 1 - grid.world().rank(); i >= 0; i -= 2) ids.push_back(i);
      const std::span<const std::int64_t> list(ids);
      std::vector<Matrix<float>> fetched;
      grid.traffic().clear();
      store.fetch({1}, {&list, 1}, fetched, "x");
      ASSERT_EQ(fetched[0].columns, width);
      for (std::size_t k = 0; k < ids.size(); ++k)
        for (std::int64_t j = 0; j < width; ++j)
          EXPECT_EQ(fetched[0](static_cast<std::int64_t>(k), j), expected(ids[k], j));
      const auto remote =
          std::ranges::count_if(ids, [&](auto id) { return partition.owner(id) != grid.row(); });
      const auto peers = grid.rows() - 1;
      EXPECT_LE(grid.traffic().of("x").bytes_received,
                8 * peers + remote * store.storage().row_bytes() + 4 * n * peers);
    }
  }
}

}  // namespace
}  // namespace espalier
