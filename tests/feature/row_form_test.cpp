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
