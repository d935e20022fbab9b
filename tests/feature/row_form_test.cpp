// ranks: 1
// Laws: row_form_cases.hpp, on the CPU; rows that are changed are rounded back to their form;
// digests are those of the numbers, two halves in a word where all pair off.
#include "espalier/file/content_digest.hpp"
#include "feature/row_form_cases.hpp"

namespace espalier {
namespace {

TEST(RowForm, NumbersAreThoseThatWereWritten) {
  check_all_numbers(Cpu{1}, Placement::kDevice);
  check_all_numbers(Cpu{3}, Placement::kDevice);
}

Matrix<float> numbers_in(const StoredRows<Cpu>& rows) {
  Matrix<float> all(0, rows.form.width);
  each_numbers(rows, false, [&](const Matrix<float>& some) {
    all.rows += some.rows;
    all.data.insert(all.data.end(), some.data.begin(), some.data.end());
  });
  return all;
}

// Half way between two, a bit to either side, below the least normal number, and no numbers at all.
// By hand: a bfloat16 number has 8 bits, and steps of 2^-133 below 2^-126.
TEST(RowForm, OfTheEndsOfBfloat16) {
  constexpr float kLeast = 0x1p-133f, kMost = 0x1.fep127f, kInfinity = std::numeric_limits<float>::infinity();
  const std::pair<float, float> pairs[] = {{1 + 0x1p-8f, 1},
                                           {1 + 3 * 0x1p-8f, 1 + 4 * 0x1p-8f},
                                           {std::nextafter(1 + 0x1p-8f, 2.0f), 1 + 0x1p-7f},
                                           {std::nextafter(1 + 3 * 0x1p-8f, 1.0f), 1 + 0x1p-7f},
                                           {kLeast, kLeast},
                                           {kLeast / 2, 0},
                                           {kLeast / 2 * 3, 2 * kLeast},
                                           {std::nextafter(kLeast / 2, 1.0f), kLeast},
                                           {std::numeric_limits<float>::denorm_min(), 0},
                                           {std::nextafter(0x1p-126f, 0.0f), 0x1p-126f},
                                           {kMost, kMost},
                                           {std::nextafter(0x1.ffp127f, 1.0f), kMost},
                                           {0x1.ffp127f, kInfinity},
                                           {kInfinity, kInfinity},
                                           {0, 0}};
  Matrix<float> x(2, std::ssize(pairs) + 1);
  for (std::int64_t j = 0; j < std::ssize(pairs); ++j) {
    x(0, j) = pairs[j].first;
    x(1, j) = -pairs[j].first;
  }
  x(0, std::ssize(pairs)) = std::numeric_limits<float>::quiet_NaN();
  x(1, std::ssize(pairs)) = std::bit_cast<float>(0x7f800001u);  // which would be infinity, cut off
  const StoredRows<Cpu> rows({kind_asked(std::string("bf16")), x.columns}, 2);
  EXPECT_EQ(rows.form.row_bytes(), 2 * x.columns);
  write_rows(rows.form, x, rows.data);
  const auto back = numbers_in(rows);
  for (std::int64_t j = 0; j < std::ssize(pairs); ++j) {
    EXPECT_EQ(back(0, j), pairs[j].second) << pairs[j].first;
    EXPECT_EQ(back(1, j), -pairs[j].second) << -pairs[j].first;
    EXPECT_TRUE(std::signbit(back(1, j))) << j;
  }
  for (const std::int64_t i : {0, 1}) EXPECT_TRUE(std::isnan(back(i, std::ssize(pairs))));
}

TEST(RowForm, WhatIsChangedIsRoundedBack) {
  std::mt19937_64 random(test_seed(34));
  const auto x = random_matrix<float>(1000, 5, random);
  const StoredRows<Cpu> halves({&row_kind_of(Half()), 5}, x.rows);
  write_rows(halves.form, x, halves.data);
  const auto before = numbers_in(halves);
  each_numbers(halves, true, [](Matrix<float>& rows) {
    for (std::int64_t k = 0; k < rows.rows * rows.columns; ++k) rows.data[k] /= 3;
  });
  const auto after = numbers_in(halves);
  ASSERT_EQ(after.rows, x.rows);
  for (std::size_t k = 0; k < x.data.size(); ++k) {
    EXPECT_EQ(before.data[k], nearest_of<11>(x.data[k]));
    EXPECT_EQ(after.data[k], nearest_of<11>(before.data[k] / 3));
  }
  EXPECT_EQ(numbers_in(StoredRows<Cpu>(x)).data, x.data);
}

TEST(RowForm, DigestsAreThoseOfNumbers) {
  std::mt19937_64 random(test_seed(35));
  const auto x = random_matrix<float>(40, 7, random);
  const auto expect = [&]<class T>(const StoredRows<Cpu>& rows, T) {
    const auto* const values = reinterpret_cast<const T*>(rows.data);
    EXPECT_EQ(digest_rows(rows.form, rows.row(3), 20, 11), content_digest(std::span(values + 21, 140), 77));
  };
  expect(StoredRows<Cpu>(x), float());
  const StoredRows<Cpu> halves({&row_kind_of(Half()), 7}, x.rows);
  write_rows(halves.form, x, halves.data);
  expect(halves, Half());
}

}  // namespace
}  // namespace espalier
