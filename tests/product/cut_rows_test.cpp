// ranks: 1
// Laws of what vertex cuts are made of: lists of places find what is in them and nothing else,
// pieces of rows join to the row, and holders of rows are those that were said, or all parts where
// there are too many sets; an id goes to each holder. Oracles search plain arrays.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "espalier/partition/group_by_owner.hpp"
#include "espalier/partition/row_holders.hpp"
#include "espalier/product/whole_rows.hpp"
#include "mpi_test.hpp"
#include "product/join_rows_cases.hpp"

namespace espalier {
namespace {

TEST(RankLists, FindWhatIsInAListAndNothingElse) {
  CutRandom random(test_seed(31));
  RankLists lists;
  struct List {
    std::vector<std::int64_t> numbers;
    std::int64_t below, begin;
  };
  std::vector<List> all;
  for (const std::int64_t below : {1, 2, 63, 64, 65, 1000, 100000})
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, below / 7, below / 2, below}) {
      std::set<std::int64_t> numbers;
      while (std::ssize(numbers) < count)
        numbers.insert(count == below ? std::ssize(numbers) : random.below(below));
      all.push_back({{numbers.begin(), numbers.end()}, below, lists.size()});
      lists.add(all.back().numbers, below);
      const auto bits = lists.size() - all.back().begin, numbers_in = std::ssize(numbers);
      if (numbers_in > 0)  // 2 + log2(below / numbers) bits for each, one, and steps
        EXPECT_LE(bits, numbers_in * (3 + std::bit_width(static_cast<std::uint64_t>(below / numbers_in))) +
                            1 + numbers_in / 8 + 64);
    }
  for (const auto& list : all) {
    RankCursor every(lists.bits(), list.begin, std::ssize(list.numbers), list.below), some = every,
                                                                                      far = every;
    for (std::int64_t x = 0; x < list.below; ++x) {
      const auto at = std::ranges::lower_bound(list.numbers, x);
      const auto place = at != list.numbers.end() && *at == x ? at - list.numbers.begin() : -1;
      ASSERT_EQ(every.find(x), place) << x << " of " << list.numbers.size() << " below " << list.below;
      if (random.below(9) == 0) ASSERT_EQ(some.find(x), place) << x;
      if (random.below(list.below / 8 + 1) == 0) ASSERT_EQ(far.find(x), place) << x;
    }
  }
}

TEST(JoinRows, PiecesAreTheRow) {
  check_joined_rows(Cpu{2});
}

TEST(RowHolders, AreThoseThatWereSaid) {
  CutRandom random(test_seed(33));
  for (const int parts : {1, 8, 64})
    for (const std::int64_t rows : {1, 500, 70000}) {
      const auto all = ~std::uint64_t{0} >> (64 - parts);
      std::vector<std::uint64_t> sets;
      for (std::int64_t v = 0; v < rows; ++v)
        sets.push_back(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(random.below(INT64_MAX)) & all));
      RowHolders holders(rows, parts);
      auto taken = sets;
      const std::span some(taken);
      holders.append(some.first(rows / 2));
      holders.append(some.subspan(rows / 2));
      holders.finish();
      std::set<std::uint64_t> different(taken.begin(), taken.end());
      EXPECT_LE(different.size(), std::size_t{1} << 16);
      std::int64_t replaced = 0;
      for (std::int64_t v = 0; v < rows; ++v) {
        ASSERT_EQ(holders.of()(v), taken[v]);
        if (taken[v] == sets[v]) continue;
        ASSERT_EQ(taken[v], all);
        ++replaced;
      }
      EXPECT_EQ(replaced > 0, parts == 64 && rows == 70000);
      for (const int part : {0, parts - 1}) {
        std::vector<std::int64_t> held, expected;
        for_each_vertex(holders.marks(part), [&](std::int64_t k, std::int64_t v) {
          EXPECT_EQ(k, std::ssize(held));
          held.push_back(v);
        });
        for (std::int64_t v = 0; v < rows; ++v)
          if ((taken[v] >> part & 1) != 0) expected.push_back(v);
        EXPECT_EQ(held, expected);
      }
      std::vector<std::int64_t> list;
      for (int k = 0; k < 200; ++k) list.push_back(random.below(rows));
      for (const int last : {-1, parts / 2}) {
        OwnerGroups<std::int32_t> groups;
        group_by_holder(Cpu{}, list.data(), std::ssize(list), holders.of(), parts, groups, last);
        std::int64_t at = 0;
        const auto expect_part = [&](int part) {
          const auto before = at;
          for (std::int64_t k = 0; k < std::ssize(list); ++k) {
            if ((taken[list[k]] >> part & 1) == 0) continue;
            EXPECT_EQ(groups.ids[at], list[k]);
            EXPECT_EQ(groups.order[at++], k);
          }
          return at - before;
        };
        for (int part = 0; part < parts; ++part)
          EXPECT_EQ(groups.counts[part], part == last ? 0 : expect_part(part));
        if (last >= 0) expect_part(last);
        EXPECT_EQ(at, groups.size());
      }
    }
}

}  // namespace
}  // namespace espalier
