// ranks: 1 3 6
// long ranks: 2 4
// Laws of rows on disk: what is read, and what is fetched on every grid, by ranges and by maps, are
// the rows in memory, bit for bit, normalised or not, in fewer bits or not, in any order, repeated,
// by any number of threads.
#include "espalier/feature/disk_rows.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <set>

#include "dense/random_matrices.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/feature/input_caches.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/feature/spilled_rows.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "files.hpp"
#include "mpi_test.hpp"
#include "partition/owned.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kDiskRows = 1501, kDiskWidth = 7;  // several chunks, the last of them short

template <class T>
Matrix<T> rows_on_disk(std::int64_t begin, std::int64_t count) {
  Matrix<T> rows(count, kDiskWidth);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < kDiskWidth; ++j) {
      const RandomStream stream = {.seed = 4, .row = static_cast<std::uint64_t>(begin + i)};
      rows(i, j) = as_stored<T>(
          static_cast<float>(to_unit_double(random64(stream, static_cast<std::uint64_t>(j)))) - 0.3f);
    }
  return rows;
}

/// Collective. A graph of so many vertices without edges, of whose rows of features this rank has
/// an even share.
template <class T>
void write(const std::string& path, std::int64_t vertices, const Matrix<T>& mine) {
  Csr<std::int32_t> no_edges;
  no_edges.rows = mine.rows;
  no_edges.columns = vertices;
  no_edges.indptr.assign(static_cast<std::size_t>(mine.rows) + 1, 0);
  GraphWriter writer(test_world(), {path, true});
  writer.write_adjacency(no_edges);
  writer.write_rows(Column::kFeatures, 0, mine);
  writer.commit({"features", "a test", false});
}

std::vector<Ownership> owners_of_rows(const Grid& grid) {
  return {ownership_of(Owned::kInRanges, kDiskRows, grid.rows()),
          ownership_of(Owned::kAtRandom, kDiskRows, grid.rows())};
}

RowRange my_share(std::int64_t vertices) {
  return even_range(vertices, test_world().size(), test_world().rank());
}

template <class T>
void write(const std::string& path) {
  const auto mine = my_share(kDiskRows);
  write(path, kDiskRows, rows_on_disk<T>(mine.begin, mine.size()));
}

std::vector<std::int64_t> random_numbers(std::size_t count, std::mt19937_64& random) {
  std::vector<std::int64_t> numbers;
  while (numbers.size() < count) numbers.push_back(static_cast<std::int64_t>(random() % kDiskRows));
  return numbers;
}

template <class T>
void expect_reads(const std::string& path) {
  write<T>(path);
  const GraphFile file(test_world(), path);
  const DiskRows disk(test_world(), file, input_tables(file.info(), 0)[0]);
  EXPECT_EQ(disk.rows(), kDiskRows);
  EXPECT_EQ(disk.form().width, kDiskWidth);
  std::mt19937_64 random(test_seed(81));
  const auto all = rows_on_disk<T>(0, kDiskRows);
  for (const std::size_t count : {0, 1, 5, 3000})
    for (const int threads : {1, 3}) {
      const auto numbers = random_numbers(count, random);
      Matrix<T> rows(std::ssize(numbers), kDiskWidth);
      std::vector<std::int64_t> places(numbers.size());
      std::iota(places.begin(), places.end(), std::int64_t{0});
      disk.read(Cpu{threads}, numbers, places, reinterpret_cast<std::byte*>(rows.data.data()));
      for (std::int64_t k = 0; k < rows.rows; ++k)
        EXPECT_EQ(std::memcmp(rows.row(k), all.row(numbers[k]), kDiskWidth * sizeof(T)), 0) << numbers[k];
    }
}

TEST(DiskRows, ReadsAreTheRowsOfTheFile) {
  const auto folder = test_folder("disk-rows");
  expect_reads<float>(folder + "/float.h5");
  expect_reads<Half>(folder + "/half.h5");
}

// More reads than are under way at once, of chunks far apart, side by side and in one stretch.
TEST(DiskRows, ManyReadsAreTheRowsByIoUringAndWithout) {
  constexpr std::int64_t kMany = 3001, kWide = 300;  // three rows a chunk
  std::mt19937_64 random(test_seed(83) + static_cast<unsigned>(test_world().rank()));
  Matrix<float> all(kMany, kWide);
  for (auto& value : all.data) value = static_cast<float>(random() % 100000);
  SpilledRows spilled(test_folder("disk-rows"), kMany, kWide);
  spilled.write(0, all);
  const auto disk = spilled.release();
  for (const char* without : {"0", "1"}) {
    setenv("ESPALIER_NO_IO_URING", without, 1);
    for (const int apart : {1, 2, 5, 16})
      for (const int threads : {1, 3}) {
        std::vector<std::int64_t> numbers, places;
        for (std::int64_t row = 0; row < kMany; ++row)
          if (random() % static_cast<unsigned>(apart) == 0) numbers.push_back(row);
        std::ranges::shuffle(numbers, random);
        places.resize(numbers.size());
        std::iota(places.begin(), places.end(), std::int64_t{0});
        Matrix<float> rows(std::ssize(numbers), kWide);
        disk->forget();
        std::map<std::int64_t, std::int64_t> chunks;  // rows of each that is wanted
        for (const auto row : numbers) chunks[row / 3] = std::min<std::int64_t>(3, kMany - row / 3 * 3);
        std::int64_t wanted = 0;
        for (const auto& [chunk, of] : chunks) wanted += of;
        EXPECT_EQ(disk->read(Cpu{threads}, numbers, places, reinterpret_cast<std::byte*>(rows.data.data())),
                  wanted * 4 * kWide);
        std::int64_t wrong = 0;
        for (std::int64_t k = 0; k < rows.rows; ++k)
          wrong += std::memcmp(rows.row(k), all.row(numbers[k]), 4 * kWide) != 0;
        EXPECT_EQ(wrong, 0) << "one of " << apart << ", " << threads << " threads, " << without;
      }
    unsetenv("ESPALIER_NO_IO_URING");
  }
}

// ---- copies of them -----------------------------------------------------------------------------

constexpr std::int64_t kDiskSteps = 9, kDiskWindow = 4;

/// Of a rank in one of its steps: none, one or two lists of distinct ids, few of them often.
std::vector<Minibatch> step_of(int rank, std::int64_t step) {
  const RandomStream stream = {.seed = static_cast<std::uint64_t>(step),
                               .batch = static_cast<std::uint64_t>(rank)};
  std::vector<Minibatch> minibatches(static_cast<std::size_t>((rank + step) % 3));
  std::uint64_t k = 0;
  for (auto& minibatch : minibatches) {
    std::set<std::int64_t> ids;
    for (int i = 0; i < 60; ++i) {
      const auto x = to_unit_double(random64(stream, k++));
      ids.insert(static_cast<std::int64_t>(x * x * x * static_cast<double>(kDiskRows)));
    }
    const auto list = std::make_shared<const std::vector<std::int64_t>>(ids.begin(), ids.end());
    minibatch.vertices = *list;
    minibatch.memory = list;
  }
  return minibatches;
}

/// What a rank reads in each of its reads: rows that ranks of its process column ask for, then
/// those of its own minibatches.
std::vector<std::vector<std::int64_t>> reads_of(const Grid& grid, const RowStorage& storage, int rank) {
  std::vector<std::vector<std::int64_t>> reads;
  const int c = grid.replication();
  for (std::int64_t step = 0; step < kDiskSteps; ++step) {
    const auto add = [&](int asking) {
      for (const auto& minibatch : step_of(asking, step))
        for (const auto id : minibatch.vertices)
          if (storage.has(id)) reads.back().push_back(id);
    };
    if (!storage.has_all()) {
      reads.emplace_back();
      for (int other = rank % c; other < grid.ranks(); other += c)
        if (other != rank) add(other);
    }
    reads.emplace_back();
    add(rank);
  }
  return reads;
}

/// How many rows a cache of so many has, where reads begin and end one after another.
std::int64_t hits_of_reads(const std::vector<std::vector<std::int64_t>>& reads, CacheRule rule,
                           std::int64_t slots, const std::vector<std::int64_t>& list, std::int64_t window) {
  CachePolicy policy(rule);
  policy.set_list(list);
  policy.resize(slots);
  std::int64_t hits = 0;
  for (std::int64_t t = 0; t < std::ssize(reads); ++t) {
    if (policy.prefetches() && t % window == 0) {
      for (auto coming = t; coming < std::min(t + window, std::ssize(reads)); ++coming)
        policy.prefetch(coming, reads[coming]);
      policy.end_prefetch();
    }
    std::vector<std::int32_t> slots_of(reads[t].size());
    policy.begin(reads[t], slots_of);
    std::vector<std::int64_t> missed;
    for (std::size_t k = 0; k < reads[t].size(); ++k)
      slots_of[k] >= 0 ? void(++hits) : missed.push_back(reads[t][k]);
    policy.end(missed);
  }
  return hits;
}

/// Rows are those without copies, and of what is read as many are kept as `rule` keeps.
void expect_copies(const Grid& grid, const InputStores& memory, const InputStores& input, CacheRule rule,
                   double share, std::size_t under_way) {
  SCOPED_TRACE(testing::Message() << "rule " << static_cast<int>(rule) << " share " << share << " under way "
                                  << under_way);
  const Cpu cpu{2};
  const auto& storage = input.table(0).storage();
  const int rank = grid.world().rank();
  std::vector<std::int64_t> by_degree(kDiskRows);
  std::iota(by_degree.begin(), by_degree.end(), std::int64_t{0});
  const auto row_bytes = storage.row_bytes() + RowCache::kFoundBy;
  const auto bytes = static_cast<std::int64_t>(share * static_cast<double>(storage.rows_here() * row_bytes));
  InputCachesOn<Cpu> caches(input, {.memory = bytes, .rule = rule, .by_degree = by_degree});
  caches.set_memory(cpu, bytes);
  std::deque<PendingInputOn<Cpu>> fetches;
  std::int64_t finished = 0;
  DiskCounts counts;
  const auto finish = [&] {
    auto minibatches = step_of(rank, finished++);
    InputMatrices<Cpu> rows, expected;
    EdgesOn<Cpu> edges;
    input.advance(cpu, fetches.front(), FetchMove::kRows, "disk");
    input.finish(cpu, fetches.front(), minibatches, rows, edges, "disk");
    PendingInputOn<Cpu> pending;
    memory.fetch(cpu, minibatches, expected, "memory", pending);
    for (std::size_t m = 0; m < minibatches.size(); ++m)
      EXPECT_TRUE(same_numbers(rows[0][m], expected[0][m])) << "step " << finished - 1;
    counts.add(fetches.front().of_disk());
    fetches.pop_front();
    EXPECT_LE(caches.bytes(), bytes);
  };
  for (std::int64_t step = 0; step < kDiskSteps; ++step) {
    if (caches.prefetches() && step % kDiskWindow == 0) {
      std::vector<PrefetchedStepOn<Cpu>> coming;
      for (auto ahead = step; ahead < std::min(step + kDiskWindow, kDiskSteps); ++ahead)
        coming.push_back({ahead, step_of(rank, ahead)});
      caches.prefetch(cpu, coming, "prefetched");
    }
    fetches.push_back(caches.pending());
    input.begin_counts(cpu, step_of(rank, step), fetches.back(), "disk");
    if (fetches.size() >= under_way) finish();
  }
  while (!fetches.empty()) finish();
  if (share > 1 && !storage.has_all()) return;  // then less is asked of others
  const auto reads = reads_of(grid, storage, rank);
  std::int64_t wanted = 0;
  for (const auto& read : reads) wanted += std::ssize(read);
  EXPECT_EQ(counts.rows, wanted);
  EXPECT_EQ(counts.bytes == 0, counts.missed == 0);
  std::erase_if(by_degree, [&](auto id) { return !storage.has(id); });
  const auto slots = caches.of_tables()[0].of_disk->policy().slots();
  if (under_way == 1)
    EXPECT_EQ(counts.rows - counts.missed,
              hits_of_reads(reads, rule, slots, by_degree, kDiskWindow * (storage.has_all() ? 1 : 2)));
}

TEST(DiskRows, CopiesAreTheRowsAndAsManyAreKeptAsTheRuleKeeps) {
  const auto folder = test_folder("disk-rows");
  write<float>(folder + "/float.h5");
  const GraphFile file(test_world(), folder + "/float.h5");
  const auto tables = input_tables(file.info(), 0);
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    for (const auto& owned : owners_of_rows(grid)) {
      SCOPED_TRACE(testing::Message() << "c " << c << ", map " << owned.is_map());
      const InputStores memory(read_features(grid, file, owned, tables, "row").stores),
          disk(read_features(grid, file, owned, tables, "row", {}, true).stores);
      for (const auto rule : {CacheRule::kDegree, CacheRule::kLru, CacheRule::kBelady})
        for (const double share : {0.1, 0.5, 1.2})
          for (const std::size_t under_way : {1, 3}) {
            if (under_way == 3 && share != 0.1) continue;
            expect_copies(grid, memory, disk, rule, share, under_way);
          }
    }
  }
}

TEST(DiskRows, FetchesAreThoseFromMemory) {
  const auto folder = test_folder("disk-rows");
  write<float>(folder + "/float.h5");
  write<Half>(folder + "/half.h5");
  std::mt19937_64 random(test_seed(82) + static_cast<unsigned>(test_world().rank()));
  const std::string bf16 = "bf16";
  const std::pair<const char*, NumberOrWord> of[] = {{"/float.h5", 32},  {"/half.h5", 32},   {"/half.h5", 16},
                                                     {"/float.h5", 16},  {"/float.h5", 8},   {"/half.h5", 2},
                                                     {"/half.h5", bf16}, {"/float.h5", bf16}};
  for (const auto& [name, bits] : of) {
    const GraphFile file(test_world(), folder + name);
    const auto tables = input_tables(file.info(), 0, bits);
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      for (const auto& owned : owners_of_rows(grid))
        for (const char* norm : {"none", "row", "standard"}) {
          SCOPED_TRACE(testing::Message() << name << " bits " << bits.text << " c " << c << ", " << norm
                                          << ", map " << owned.is_map());
          const auto memory = read_features(grid, file, owned, tables, norm),
                     disk = read_features(grid, file, owned, tables, norm, {}, true, folder);
          EXPECT_EQ(disk.standard, memory.standard);
          EXPECT_EQ(disk.stores[0].fetched_bytes(), memory.stores[0].fetched_bytes());
          auto ids = random_numbers(400, random);
          std::ranges::sort(ids);
          ids.erase(std::ranges::unique(ids).begin(), ids.end());
          const std::vector<std::span<const std::int64_t>> lists = {
              ids, std::span(ids).first(ids.size() / 3), {}};
          std::vector<Matrix<float>> expected, rows;
          memory.stores[0].fetch(Cpu{1}, lists, expected, "test");
          disk.stores[0].fetch(Cpu{2}, lists, rows, "test");
          for (std::size_t m = 0; m < lists.size(); ++m) EXPECT_TRUE(same_numbers(rows[m], expected[m])) << m;
        }
    }
  }
}

// More of a rank's rows than are read, packed and written at a time.
TEST(DiskRows, InFewerBitsOfSeveralPieces) {
  constexpr std::int64_t kMany = 300000, kWide = 24;  // 29 MB of the 8 MiB of a piece
  const auto path = test_folder("disk-rows") + "/many.h5";
  const auto mine = my_share(kMany);
  Matrix<float> all(mine.size(), kWide);
  for (std::int64_t i = 0; i < all.rows; ++i)
    for (std::int64_t j = 0; j < kWide; ++j)
      all(i, j) = static_cast<float>(((mine.begin + i) * 31 + j * 17) % 997);
  write(path, kMany, all);
  const GraphFile file(test_world(), path);
  std::vector<std::int64_t> ids;
  for (std::int64_t id = test_world().rank(); id < kMany; id += 11) ids.push_back(id);
  for (const int c : {1, test_world().size()})
    for (const std::int64_t bits : {16, 8}) {
      SCOPED_TRACE(testing::Message() << "c " << c << ", " << bits << " bits");
      const Grid grid(test_world(), c);
      const Ownership owned(block_partition(kMany, grid.rows()));
      const auto tables = input_tables(file.info(), 0, bits);
      const auto memory = read_features(grid, file, owned, tables, "none"),
                 disk = read_features(grid, file, owned, tables, "none", {}, true, test_folder("disk-rows"));
      const std::vector<std::span<const std::int64_t>> lists = {ids};
      std::vector<Matrix<float>> expected, rows;
      memory.stores[0].fetch(Cpu{1}, lists, expected, "test");
      disk.stores[0].fetch(Cpu{1}, lists, rows, "test");
      EXPECT_TRUE(same_numbers(rows[0], expected[0]));
    }
}

// Others have room: they are not left waiting for the one that has none.
TEST(DiskRows, AFullDiskOfOneRankEndsAll) {
  const auto folder = test_folder("disk-rows");
  write<float>(folder + "/float.h5");
  const GraphFile file(test_world(), folder + "/float.h5");
  const auto tables = input_tables(file.info(), 0, 8);
  const Grid grid(test_world(), 1);
  std::vector<std::int32_t> owner;
  for (std::int64_t v = 0; v < kDiskRows; ++v) owner.push_back(static_cast<std::int32_t>(v % grid.rows()));
  const Ownership owned(owner, grid.rows());
  const auto read = [&] { read_features(grid, file, owned, tables, "none", {}, true, folder); };
  read();
  std::optional<FullDisk> full;
  if (test_world().rank() == 0) full.emplace(64);
  expect_refused(ExitCode::kUsage, {"rows cannot be written there: File too large"}, read);
}

}  // namespace
}  // namespace espalier
