// ranks: 1 4
// long ranks: 2 3
// Laws: the file holds the rows that each rank wrote, in any chunks, bit for bit or rounded to
// float16, where it can hold them; of chosen vertices theirs only, in order; of each type its own,
// in a group, counted from its first vertex; it is there after commit and never before.
#include "espalier/infer/row_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "espalier/base/error.hpp"
#include "espalier/base/half.hpp"
#include "mpi_test.hpp"
#include "partition/owned.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kFileVertices = 23, kWidth = 3;

float value(std::int64_t v, std::int64_t j) {
  return static_cast<float>((v * 7 + j * 5) % 11) / 3 - static_cast<float>(v);
}

// Every rank its share of the vertices, `step` at a time.
void write(RowFile& file, Owned owned, std::int64_t step, bool predictions) {
  const int me = test_world().rank();
  const auto shares = ownership_of(owned, kFileVertices, test_world().size());
  RowsByVertexOn<Cpu> sink(shares, me, [&](std::int64_t vertex, const Matrix<float>& values) {
    file.write_rows(vertex, values);
    if (predictions) file.write_predictions(vertex, values);
  });
  for (std::int64_t first = 0; first < shares.size(me); first += step) {
    Matrix<float> rows(std::min(step, shares.size(me) - first), kWidth);
    for (std::int64_t i = 0; i < rows.rows; ++i)
      for (std::int64_t j = 0; j < kWidth; ++j) rows(i, j) = value(shares.vertex(me, first + i), j);
    sink.take(Cpu{1}, first, rows);
  }
}

RowTable all(bool predictions, std::optional<Buffer<std::int64_t>> chosen = {}) {
  return {.vertices = {0, kFileVertices}, .predictions = predictions, .chosen = std::move(chosen)};
}

template <class T>
Buffer<T> read(const std::string& path, const char* name, std::vector<std::int64_t> shape) {
  const auto file = hdf5::open_file(test_world(), path);
  const auto dataset = hdf5::open_dataset(file, name);
  EXPECT_EQ(dataset.shape, shape) << name;
  Buffer<T> values(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
  EXPECT_TRUE(hdf5::read_slab(dataset, hdf5::memory_type<T>(), {0, shape[0], shape.size() > 1 ? shape[1] : 1},
                              values.data()));
  return values;
}

// Of several labels each is predicted or not by the sign of its logit; 0 is not there.
void expect_table(const std::string& path, const RowTable& table, bool half, bool several_labels) {
  SCOPED_TRACE(path + " " + table.type);
  const auto name = [&](const char* of) { return table.path(of); };
  Buffer<std::int64_t> ids(table.rows());
  std::iota(ids.begin(), ids.end(), 0);
  if (table.chosen) ids = *table.chosen;
  const auto count = std::ssize(ids);
  const auto found = read<float>(path, name("/logits").c_str(), {count, kWidth});
  Buffer<std::int32_t> largest(count, 0);
  Buffer<std::uint8_t> there;
  for (std::int64_t k = 0; k < count; ++k)
    for (std::int64_t j = 0; j < kWidth; ++j) {
      const auto vertex = table.vertices.begin + ids[k];
      const float x = value(vertex, j);
      EXPECT_EQ(found[k * kWidth + j], half ? to_float(to_half(x)) : x) << vertex;
      if (x > value(vertex, largest[k])) largest[k] = static_cast<std::int32_t>(j);
      there.push_back(x > 0);
    }
  const auto file = hdf5::open_file(test_world(), path);
  EXPECT_EQ(hdf5::open_dataset(file, name("/logits")).is_half(), half);
  EXPECT_EQ(hdf5::open_dataset(file, name("/predictions")).exists(), table.predictions);
  EXPECT_EQ(hdf5::open_dataset(file, name("/ids")).exists(), table.chosen.has_value());
  if (table.chosen) EXPECT_EQ(read<std::int64_t>(path, name("/ids").c_str(), {count}), ids);
  if (table.predictions && several_labels)
    EXPECT_EQ(read<std::uint8_t>(path, name("/predictions").c_str(), {count, kWidth}), there);
  if (table.predictions && !several_labels)
    EXPECT_EQ(read<std::int32_t>(path, name("/predictions").c_str(), {count}), largest);
}

TEST(RowFile, HoldsWhatEachRankWrote) {
  const auto folder = test_folder("row_file");
  const Buffer<std::int64_t> some = {0, 4, 5, 6, 17, 22}, one = {9};
  EXPECT_TRUE(value(0, 1) > 0 && value(9, 1) < 0) << "of several labels some are there";
  for (const auto& chosen : {std::optional<Buffer<std::int64_t>>(), std::optional(some), std::optional(one)})
    for (const bool half : {false, true})
      for (const std::int64_t step : {1, 4, 100})
        for (const bool several_labels : {false, true}) {
          const auto path = fmt::format("{}/{}-{}-{}-{}.h5", folder, chosen ? std::ssize(*chosen) : 0, half,
                                        step, several_labels);
          const auto table = all(true, chosen);
          RowFile file(test_world(), path, {"/logits", kWidth, half, several_labels ? kWidth : 0, {table}});
          write(file, kAllOwned[step % 3], step, true);
          test_world().barrier();
          EXPECT_FALSE(std::filesystem::exists(path));
          test_world().barrier();
          file.commit([](ArchiveWriter& archive) { archive("layer", 5); });
          expect_table(path, table, half, several_labels);
          std::int64_t layer = 0;
          EXPECT_TRUE(hdf5::read_integer_attribute(hdf5::open_file(test_world(), path), "layer", layer));
          EXPECT_EQ(layer, 5);
        }
}

// Types with no vertex, one, and the rest; one that is not asked for; chosen ones of another.
TEST(RowFile, HoldsEachTypeByItself) {
  const auto folder = test_folder("row_file_types");
  const std::vector<RowTable> tables = {
      {.type = "none", .vertices = {0, 0}, .predictions = true},
      {.type = "one", .vertices = {0, 1}, .trained = true},
      {.type = "some",
       .vertices = {4, 15},
       .predictions = true,
       .trained = false,
       .chosen = Buffer<std::int64_t>{0, 3, 10}},
      {.type = "rest", .vertices = {15, kFileVertices}, .predictions = true}};
  for (const auto owned : kAllOwned)
    for (const std::int64_t step : {1, 4, 100}) {
      const auto path = fmt::format("{}/{}-{}.h5", folder, static_cast<int>(owned), step);
      RowFile file(test_world(), path, {"/logits", kWidth, false, 0, tables});
      write(file, owned, step, true);
      file.commit([](ArchiveWriter&) {});
      EXPECT_FALSE(hdf5::open_dataset(hdf5::open_file(test_world(), path), "/logits").exists());
      for (const auto& table : tables) expect_table(path, table, false, false);
    }
}

TEST(RowFile, LeavesNothingWithoutCommitAndReplacesNothingUnasked) {
  const auto folder = test_folder("row_file_partial");
  const auto path = folder + "/rows.h5";
  {
    RowFile file(test_world(), path, {"/embeddings", kWidth, false, 0, {all(false)}});
    write(file, Owned::kInRanges, 5, false);
    file.check();
  }
  test_world().barrier();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  test_world().barrier();
  RowFile(test_world(), path, {"/embeddings", kWidth, false, 0, {all(false)}}).commit([](ArchiveWriter&) {});
  EXPECT_THROW(RowFile(test_world(), path, {"/embeddings", kWidth, false, 0, {all(false)}}), UserError);
  EXPECT_NO_THROW(RowFile(test_world(), {path, true}, {"/embeddings", kWidth, false, 0, {all(false)}}));
}

// float16 ends at 65504, to which what is below 65520 is rounded.
TEST(RowFile, WhatIsTooLargeForFloat16IsRefused) {
  const auto folder = test_folder("row_file_too_large");
  const int me = test_world().rank(), last = test_world().size() - 1;
  const auto shares = ownership_of(Owned::kAtRandom, kFileVertices, test_world().size());
  const Buffer<std::int64_t> some = {0, 9, 21};
  for (const auto& chosen : {std::optional<Buffer<std::int64_t>>(), std::optional(some)})
    for (const float number : {65519.0f, 65520.0f, -1e5f, 3e38f})
      for (const bool half : {true, false}) {
        const bool refused = half && std::abs(number) >= 65520;
        {
          RowFile file(test_world(), {folder + "/rows.h5", true},
                       {"/logits", kWidth, half, 0, {all(false, chosen)}});
          RowsByVertexOn<Cpu> sink(shares, me, [&](std::int64_t vertex, const Matrix<float>& values) {
            file.write_rows(vertex, values);
          });
          Matrix<float> rows(shares.size(me), kWidth);
          std::ranges::fill(rows.data, 1.0f);
          for (std::int64_t k = 0; k < rows.rows; ++k)
            if (shares.vertex(me, k) == 9) rows(k, 2) = number;
          sink.take(Cpu{1}, 0, rows);
          if (refused) {
            try {
              file.check();
              ADD_FAILURE() << number;
            } catch (const UserError& error) {  // on every rank
              EXPECT_EQ(error.code(), ExitCode::kUsage);
              EXPECT_EQ(std::string(error.what()),
                        fmt::format(
                            "row {} of /logits: column 2 is {}, too large for float16, which ends at 65504; "
                            "leave --half out",
                            chosen ? 1 : 9, number));
            }
          } else {
            EXPECT_NO_THROW(file.check());
          }
        }
        test_world().barrier();
        if (me == last) EXPECT_TRUE(std::filesystem::is_empty(folder));
        test_world().barrier();
      }
}

}  // namespace
}  // namespace espalier
