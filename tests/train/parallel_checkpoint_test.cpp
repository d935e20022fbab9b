// ranks: 1 2 3 4
// Laws: the bytes of a checkpoint do not depend on how many ranks write it, nor on which of them
// saves which rows, but for the attribute that says how many they were; ranks read back any rows of
// any tensor; no rank holds more of a tensor than a block; what goes wrong on one rank is the same
// error on all, and a checkpoint that fails leaves nothing; damage anywhere is found
// by any number of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "espalier/base/philox.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/train/checkpoint.hpp"
#include "espalier/train/checkpoint_folder.hpp"
#include "mpi_test.hpp"
#include "train/checkpoint_bytes.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

float entry(std::size_t tensor, std::int64_t place) {
  return static_cast<float>(random64({.seed = tensor, .row = static_cast<std::uint64_t>(place)}, 0)) / 3e18f;
}

struct Shape {
  const char* name;
  std::int64_t rows, columns;
};
constexpr Shape kShapes[] = {{"weights/layer1.weight", 50, 7}, {"weights/layer1.bias", 1, 50},
                             {"optimizer/a/b/c", 3, 3},        {"embedding/paper", 40000, 33},
                             {"weights/of no rows", 0, 4},     {"weights/of no columns", 4, 0}};

// How `rows` rows are cut for `parts` ranks: evenly, or at random with parts that have none.
std::vector<std::int64_t> cuts_of(std::int64_t rows, int parts, std::uint64_t seed) {
  std::vector<std::int64_t> cuts;
  for (int part = 0; part <= parts; ++part)
    cuts.push_back(seed == 0 ? even_range(rows, parts, part).begin
                             : static_cast<std::int64_t>(random64({.seed = seed, .row = 1}, part) %
                                                         static_cast<std::uint64_t>(rows + 1)));
  cuts.front() = 0, cuts.back() = rows;
  std::ranges::sort(cuts);
  return cuts;
}

// In two pieces, where there are two rows.
std::vector<RowRange> ranges_of(RowRange mine) {
  const auto middle = mine.begin + mine.size() / 3;
  return {{mine.begin, middle}, {middle, mine.end}};
}

// Each rank can read its own rows only. With another order, parts are dealt to ranks backwards.
Checkpoint checkpoint_on(const Communicator& ranks, std::uint64_t seed, std::int64_t* most_rows = nullptr) {
  Checkpoint checkpoint;
  checkpoint.state.losses = {0.5, 0.25};
  checkpoint.config = "[train]\n";
  checkpoint.ranks = 5;
  const int part = seed % 2 == 1 ? ranks.size() - 1 - ranks.rank() : ranks.rank();
  for (std::size_t k = 0; k < std::size(kShapes); ++k) {
    const auto& shape = kShapes[k];
    const auto cuts = cuts_of(shape.rows, ranks.size(), seed);
    const RowRange mine = {cuts[static_cast<std::size_t>(part)], cuts[static_cast<std::size_t>(part) + 1]};
    const auto read = [=](RowRange rows, float* to) {
      EXPECT_TRUE(mine.begin <= rows.begin && rows.end <= mine.end);
      if (most_rows != nullptr) *most_rows = std::max(*most_rows, rows.size() * shape.columns);
      for (auto at = rows.begin * shape.columns; at < rows.end * shape.columns; ++at) *to++ = entry(k, at);
    };
    checkpoint.state.tensors.push_back({shape.name, shape.rows, shape.columns, ranges_of(mine), read});
  }
  return checkpoint;
}

TEST(ParallelCheckpoint, AnyRanksWriteTheSameBytes) {
  const auto& world = test_world();
  const auto alone = world.split(world.rank(), 0);
  std::string expected;
  if (world.rank() == 0) expected = checkpoint_bytes(alone, checkpoint_on(alone, 0));
  world.barrier();
  expected = world.broadcast_text(expected, 0, "test");
  EXPECT_GT(expected.size(), std::size_t{40000} * 33 * 4);
  for (int ranks = 1; ranks <= world.size(); ++ranks) {
    const auto group = world.split(world.rank() < ranks ? 0 : 1, world.rank());
    for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
      SCOPED_TRACE(fmt::format("{} ranks, seed {}", ranks, seed));
      std::int64_t most = 0;
      if (world.rank() < ranks)
        EXPECT_TRUE(checkpoint_bytes(group, checkpoint_on(group, seed, &most)) == expected);
      EXPECT_LE(most * 4, std::int64_t{4} << 20) << "block by block";
    }
    world.barrier();
  }
}

TEST(ParallelCheckpoint, TheNumberOfRanksIsAnAttributeAndChangesNoOtherByteBehindTheSeal) {
  const auto& world = test_world();
  auto checkpoint = checkpoint_on(world, 0);
  const auto five = checkpoint_bytes(world, checkpoint);
  checkpoint.ranks = 6;
  const auto six = checkpoint_bytes(world, checkpoint);
  ASSERT_EQ(five.size(), six.size());
  std::vector<std::size_t> different;
  for (std::size_t at = 512; at < five.size(); ++at)
    if (five[at] != six[at]) different.push_back(at);
  EXPECT_EQ(different.size(), 1u);
}

TEST(ParallelCheckpoint, RanksReadAnyRows) {
  const auto& world = test_world();
  const auto seed = test_seed(1);
  SCOPED_TRACE(seed);
  const auto bytes = checkpoint_bytes(world, checkpoint_on(world, 2));
  const auto checkpoint = checkpoint_from(world, bytes);
  EXPECT_EQ(checkpoint.state.tensors.size(), std::size(kShapes));
  EXPECT_EQ(checkpoint.state.losses, (std::vector<double>{0.5, 0.25}));
  for (const auto& tensor : checkpoint.state.tensors) {
    const auto* const shape = std::ranges::find(kShapes, tensor.name, [](const Shape& s) { return s.name; });
    ASSERT_NE(shape, std::end(kShapes)) << tensor.name;
    EXPECT_EQ(tensor.rows, shape->rows);
    EXPECT_EQ(tensor.columns, shape->columns);
    const auto cuts = cuts_of(shape->rows, 4, seed + static_cast<std::uint64_t>(world.rank()));
    const RowRange rows = {cuts[1], cuts[3]};
    Buffer<float> read(static_cast<std::size_t>(rows.size() * shape->columns));
    tensor.read(rows, read.data());
    for (std::int64_t k = 0; k < std::ssize(read); ++k)
      ASSERT_EQ(read[static_cast<std::size_t>(k)],
                entry(static_cast<std::size_t>(shape - kShapes), rows.begin * shape->columns + k));
  }
}

// The message of the error with which `work` ends, which is the same on all ranks.
template <class Work>
std::string message_of_all(ExitCode code, Work work) {
  const auto said = message_of(code, work);
  EXPECT_EQ(test_world().broadcast_text(said, 0, "test"), said);
  EXPECT_NE(said, "");
  return said;
}

TEST(ParallelCheckpoint, AnErrorOfOneRankIsThatOfAllAndLeavesWhatWasThere) {
  const auto& world = test_world();
  const auto path = test_folder("parallel-checkpoint");
  CheckpointFolder folder(path);
  const auto save = [&](const Checkpoint& checkpoint, const Cursor& cursor, const std::string& previous) {
    return folder.save(
        world, cursor, [&](const std::string& file) { write_checkpoint(world, checkpoint, file); }, previous);
  };
  const auto first = save(checkpoint_on(world, 0), {1, 0}, "");
  EXPECT_EQ(first, "epoch-0001-step-000000.h5");
  const auto before = read_file(path + "/" + first);
  world.barrier();
  for (int failing = 0; failing < world.size(); ++failing) {
    SCOPED_TRACE(failing);
    auto checkpoint = checkpoint_on(world, 0);
    if (world.rank() == failing)
      checkpoint.state.tensors[3].read = [](RowRange, float*) {
        throw UserError(ExitCode::kUsage, "No space left on device");
      };
    const auto said = message_of_all(ExitCode::kUsage, [&] { save(checkpoint, {2, 0}, first); });
    EXPECT_EQ(said, "cannot save the checkpoint " + path +
                        "/epoch-0002-step-000000.h5: No space left on device; check output.dir and the free "
                        "space there");
    world.barrier();
    EXPECT_EQ(folder.list(), std::vector<std::string>{first});
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path), {}), 2) << "it and latest";
    EXPECT_TRUE(read_file(path + "/" + first) == before);
    world.barrier();
  }
}

TEST(ParallelCheckpoint, DamageAnywhereIsFoundByAnyRanks) {
  const auto& world = test_world();
  const auto seed = test_seed(3);
  SCOPED_TRACE(seed);
  auto bytes = checkpoint_bytes(world, checkpoint_on(world, 0));
  const auto path = path_of_checkpoint_bytes();
  std::vector<std::size_t> places = {0, 25, 511, 512, bytes.size() - 1};
  for (std::size_t k = 0; k < 60; ++k) places.push_back(random64({.seed = seed}, k) % bytes.size());
  for (const auto at : places) {
    bytes[at] = static_cast<char>(bytes[at] ^ 16);
    const auto said = message_of_all(ExitCode::kInput, [&] { checkpoint_from(world, bytes); });
    EXPECT_TRUE(said.starts_with(path + ": is ")) << said;
    bytes[at] = static_cast<char>(bytes[at] ^ 16);
  }
  const auto cut = message_of_all(ExitCode::kInput, [&] { checkpoint_from(world, bytes.substr(0, 5000)); });
  expect_words(cut, {fmt::format("it has 5000 bytes and was written with {}", bytes.size())});
  const auto missing = message_of_all(ExitCode::kInput, [&] { read_checkpoint(world, path + ".none"); });
  EXPECT_EQ(missing, path + ".none: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace espalier
