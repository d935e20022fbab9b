// Laws: the parts that ranks read of an array of edges, in their order, are its edges, whichever
// index runs fastest in the file, and so are they where one rank reads all.
#include <gtest/gtest.h>

#include <fstream>

#include "../../src/graph/array_tables.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

void put_npy(const std::string& path, const std::string& shape, bool by_columns,
             const std::vector<std::int32_t>& entries) {
  auto header = fmt::format("{{'descr': '<i4', 'fortran_order': {}, 'shape': ({}), }}\n",
                            by_columns ? "True" : "False", shape);
  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY\x01" << '\0' << static_cast<char>(header.size()) << '\0' << header;
  file.write(reinterpret_cast<const char*>(entries.data()), std::ssize(entries) * 4);
}

// Edge e goes from e to e / 3.
TEST(EdgeArray, PartsAreTheWhole) {
  const auto path = fmt::format("{}/edges-{}.npy", test_folder("edge-array"), test_world().rank());
  for (const std::int32_t edges : {0, 1, 3, 131072, 500000})
    for (const bool together : {false, true})
      for (const bool by_columns : {false, true}) {
        std::vector<std::int32_t> entries;
        for (std::int32_t k = 0; k < 2 * edges; ++k)
          entries.push_back(together ? (k % 2 == 0 ? k / 2 : k / 6) : k < edges ? k : (k - edges) / 3);
        const auto count = std::to_string(edges);
        put_npy(path, together == by_columns ? "2, " + count : count + ", 2", by_columns, entries);
        for (int ranks = 1; ranks <= 4; ++ranks) {
          std::vector<std::int64_t> last(static_cast<std::size_t>(ranks), -1);  // of each rank
          std::int64_t found = 0;
          for (int rank = 0; rank < ranks; ++rank) {
            std::int64_t round = 0;
            const auto use = [&](const EdgePiece& piece) {
              const RankShare share{rank, ranks};
              for (std::size_t k = 0; k < piece.sources.size(); ++k, ++found) {
                const auto edge = piece.sources[k];
                ASSERT_GT(edge, last[rank]);
                ASSERT_EQ(piece.targets[k], edge / 3);
                ASSERT_EQ(edge / share.most_edges(), round * ranks + rank);
                last[rank] = edge;
              }
            };
            read_edge_pairs([&] { return open_npy(path); }, {edges, ""}, {edges, ""},
                            {rank, ranks, [&] { ++round; }}, use, true);
            EXPECT_EQ(round, (edges + ranks * 131072 - 1) / (ranks * 131072));
          }
          EXPECT_EQ(found, edges);
        }
      }
}

}  // namespace
}  // namespace espalier
