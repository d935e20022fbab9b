// Law of rows joined from pieces, for every space: they are the row. The oracle is a map.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "../../src/product/join_rows.hpp"
#include "espalier/base/arrays.hpp"
#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"
#include "space_arrays.hpp"

namespace espalier {

class CutRandom {
 public:
  explicit CutRandom(std::uint64_t seed) : stream_{.seed = seed} {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random64(stream_, drawn_++) % static_cast<std::uint64_t>(n));
  }

 private:
  RandomStream stream_;
  std::uint64_t drawn_ = 0;
};

// Any number of pieces, of any lengths; rows without one.
template <class Space>
void check_joined_rows(const Space& space) {
  CutRandom random(test_seed(32));
  for (const bool values : {false, true})
    for (const std::int64_t longest : {3, 60, 900}) {
      constexpr std::int64_t kRows = 40;
      std::vector<std::map<std::int32_t, float>> rows(kRows);
      std::vector<Csr<std::int32_t>> held(12);
      Buffer<std::int64_t> row_of;
      for (std::int64_t r = 0; r < kRows; ++r) {
        const auto parts = random.below(static_cast<std::int64_t>(held.size()) + 1);
        std::vector<std::map<std::int32_t, float>> of_part(parts);
        for (std::int64_t k = random.below(longest); k > 0 && parts > 0; --k) {
          const auto id = static_cast<std::int32_t>(random.below(5 * longest));
          const auto value = static_cast<float>(random.below(1000));
          if (rows[r].emplace(id, value).second) of_part[random.below(parts)].emplace(id, value);
        }
        for (std::int64_t p = 0; p < parts; ++p) {
          for (const auto& [id, value] : of_part[p])
            held[p].indices.push_back(id), held[p].values.push_back(value);
          held[p].indptr.push_back(std::ssize(held[p].indices));
          ++held[p].rows;
        }
        for (std::int64_t p = 0; p < parts; ++p) row_of.push_back(r);
      }
      std::vector<Entries<std::int32_t, Space>> there(held.size());
      for (std::size_t p = 0; p < held.size(); ++p) {
        there[p].ids = array_on(space, held[p].indices);
        there[p].values = array_on(space, held[p].values);
      }
      Buffer<RowView<std::int32_t>> pieces;
      std::vector<std::int64_t> next(held.size(), 0), seen(kRows, 0);
      for (const auto r : row_of) {
        const auto& matrix = there[seen[r]];
        const auto at = next[seen[r]]++;
        const auto begin = held[seen[r]].row_begin(at);
        pieces.push_back({matrix.ids.data() + begin, Beside<const float>(values, matrix.values) + begin,
                          held[seen[r]].row_size(at)});
        ++seen[r];
      }
      const auto pieces_there = array_on(space, pieces);
      const auto row_of_there = array_on(space, row_of);
      const auto whole = join_rows<std::int32_t>(
          space, std::span<const RowView<std::int32_t>>(pieces_there.data(), pieces.size()),
          row_of_there.data(), kRows, values);
      const auto views = array_from(space, whole.rows);
      for (std::int64_t r = 0; r < kRows; ++r) {
        const auto& row = views[r];
        ASSERT_EQ(row.size, std::ssize(rows[r]));
        Buffer<std::int32_t> ids(row.size);
        Buffer<float> beside(values ? row.size : 0);
        copy_from(space, row.indices, row.size, ids.data());
        if (values) copy_from(space, row.values.data(), row.size, beside.data());
        std::int64_t k = 0;
        for (const auto& [id, value] : rows[r]) {
          EXPECT_EQ(ids[k], id);
          if (values) EXPECT_EQ(beside[k], value);
          ++k;
        }
      }
    }
}

}  // namespace espalier
