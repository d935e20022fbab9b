// Laws: ranks that were bound well, and ranks that nobody bound on a machine with one NUMA node,
// are warned of nothing, whatever the host; one line names how many ranks share cores, have more
// threads than cores or are spread over NUMA nodes, and one of them. No such machine is needed.
#include "espalier/job/bindings.hpp"

#include <gtest/gtest.h>

namespace espalier {
namespace {

// A rank on a host of 64 cores, bound to [first, first + count).
Binding rank_on(const char* host, int first, int count, int threads, int numa_nodes = 1, bool bound = false) {
  Binding rank;
  std::snprintf(rank.host.text, sizeof rank.host.text, "%s", host);
  for (int core = first; core < first + count; ++core) CPU_SET(core, &rank.cores);
  rank.online = 64;
  rank.numa_nodes = numa_nodes;
  rank.threads = threads;
  rank.bound = bound;
  return rank;
}

void expect_warning(const std::vector<Binding>& ranks, const std::string& begin) {
  const auto words = binding_warning(ranks);
  EXPECT_EQ(words.substr(0, begin.size()), begin) << words;
  EXPECT_NE(words.find("docs/cores.md"), std::string::npos) << words;
  EXPECT_EQ(words.find('\n'), std::string::npos) << words;
}

TEST(Bindings, ThatAreWellAreWarnedOfNothing) {
  EXPECT_EQ(binding_warning({}), "");
  std::vector<Binding> ranks;
  for (const char* host : {"a", "b"})
    for (int k = 0; k < 4; ++k) ranks.push_back(rank_on(host, 16 * k, 16, 16, 1, true));
  EXPECT_EQ(binding_warning(ranks), "") << "the same cores of another host are others";
  EXPECT_EQ(binding_warning({rank_on("a", 0, 32, 16), rank_on("a", 0, 32, 16)}), "")
      << "two ranks of a socket, whose threads find a core each";
  EXPECT_EQ(binding_warning({rank_on("a", 0, 64, 64), rank_on("a", 0, 64, 64)}), "")
      << "nobody bound them: so it was meant";
}

TEST(Bindings, OfRanksOnTheSameCoresAreNamed) {
  expect_warning({rank_on("a", 0, 16, 16), rank_on("a", 16, 16, 16), rank_on("a", 16, 16, 16)},
                 "2 of 3 ranks (rank 1 on a: cores 16-31) have their cores in common with others, 32 threads "
                 "there; give each rank its own");
  expect_warning({rank_on("a", 0, 16, 16), rank_on("a", 8, 16, 16)},
                 "2 of 2 ranks (rank 0 on a: cores 0-15) have their cores in common");
  // Whatever there is room for, OpenMP begins at the first core, in each rank.
  expect_warning({rank_on("a", 0, 64, 16, 1, true), rank_on("a", 0, 64, 16, 1, true)},
                 "2 of 2 ranks (rank 0 on a: cores 0-63) have their cores in common with others, 32 threads "
                 "there, and OpenMP binds those of each to the first of them");
}

TEST(Bindings, ToFewerCoresThanThreadsAreNamed) {
  expect_warning(
      {rank_on("a", 0, 1, 16), rank_on("a", 1, 1, 16)},  // mpirun -np 2, as it comes
      "2 of 2 ranks (rank 0 on a: core 0) have more threads, 16, than the cores they were bound to");
}

TEST(Bindings, OverSeveralNumaNodesAreNamed) {
  expect_warning(
      {rank_on("a", 0, 64, 64, 2), rank_on("b", 0, 32, 32, 1)},
      "1 of 2 ranks (rank 0 on a: cores 0-63, of 2 NUMA nodes) are spread over several NUMA nodes");
  expect_warning({rank_on("a", 16, 32, 32, 2), rank_on("a", 16, 32, 32, 2)},
                 "2 of 2 ranks (rank 0 on a: cores 16-47) have their cores in common");
}

TEST(Bindings, OfThisRankAreWhatItMayRunOn) {
  const auto mine = binding_of(3);
  EXPECT_EQ(CPU_COUNT(&mine.cores), std::ssize(allowed_cores()));
  EXPECT_EQ(mine.threads, 3);
  EXPECT_GE(mine.numa_nodes, 1);
  EXPECT_LE(CPU_COUNT(&mine.cores), mine.online);
}

}  // namespace
}  // namespace espalier
