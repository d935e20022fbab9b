// Laws: cores are read as the system writes them; a rank's cores are in the nodes that have them; a
// part of the list of near cores is in as few nodes as there can be, and leaves no core in two;
// pages are dealt round nodes while that was asked for, and by no thread afterwards.
#include "espalier/base/cores.hpp"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(Cores, AreReadAsTheSystemWritesThem) {
  EXPECT_EQ(parse_core_list("0-3,8"), (CoreList{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_core_list("5"), CoreList{5});
  EXPECT_EQ(parse_core_list(""), CoreList{}) << "a node of memory alone";
  for (const char* wrong : {"-1", "a", "1-", "1,", ",1", "1 2", "1-2-3", "999999999999", "0x3"})
    EXPECT_FALSE(parse_core_list(wrong)) << wrong;
  EXPECT_EQ(core_list_in_words({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(core_list_in_words({}), "");
  for (const char* text : {"7", "0-1", "0,2,4-6"})
    EXPECT_EQ(core_list_in_words(*parse_core_list(text)), text);
}

TEST(Cores, OfThisProcessAreSomeOfTheHosts) {
  const auto cores = allowed_cores();
  ASSERT_FALSE(cores.empty());
  EXPECT_TRUE(std::ranges::is_sorted(cores));
  EXPECT_LE(std::ssize(cores), online_cores());
  const auto nodes = numa_nodes();
  if (!nodes.empty()) EXPECT_FALSE(nodes_of(cores, nodes).empty());
}

// Two nodes of four cores with two hardware threads each, and one of memory alone.
TEST(Cores, OfANodeAreTheNodes) {
  const auto folder = test_folder("cores");
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder + "/" + name).parent_path());
    std::ofstream(folder + "/" + name) << text << "\n";
  };
  write("node0/cpulist", "0-3,8-11");
  write("node1/cpulist", "4-7,12-15");
  write("node2/cpulist", "");
  write("has_cpu", "0-1");
  for (int core = 0; core < 16; ++core)
    write("cpu" + std::to_string(core) + "/topology/thread_siblings_list",
          std::to_string(core % 8) + "," + std::to_string(core % 8 + 8));
  const auto nodes = numa_nodes(folder);
  ASSERT_EQ(std::ssize(nodes), 2);
  EXPECT_EQ(nodes_of({0, 8}, nodes), std::vector<int>{0});
  EXPECT_EQ(nodes_of({12}, nodes), std::vector<int>{1});
  EXPECT_EQ(nodes_of({3, 4}, nodes), (std::vector<int>{0, 1}));
  EXPECT_TRUE(nodes_of({0}, {}).empty());

  CoreList all(16);
  std::iota(all.begin(), all.end(), 0);
  const auto near = near_each_other(all, nodes, first_siblings(all, folder));
  EXPECT_EQ(near, (CoreList{0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15}));
  EXPECT_EQ(near_each_other(all, {}, all), all) << "where the system does not say";
  for (const int parts : {2, 4, 8})
    for (int k = 0; k < parts; ++k) {
      CoreList part(near.begin() + k * 16 / parts, near.begin() + (k + 1) * 16 / parts);
      std::ranges::sort(part);
      EXPECT_EQ(std::ssize(nodes_of(part, nodes)), 1) << k << " of " << parts;
    }
}

TEST(Cores, ATeamRunsWhereItWasSentAndComesBack) {
  const auto before = allowed_cores();
  const auto where = [] {
    std::vector<int> at(2, -1);
#pragma omp parallel num_threads(2)
    at[static_cast<std::size_t>(omp_get_thread_num())] = sched_getcpu();
    return at;
  };
  {
    const OnCores on({before.back()}, 2);
    ASSERT_TRUE(on.moved());
    EXPECT_EQ(where(), std::vector<int>(2, before.back()));
    const OnCores nowhere({}, 2);
    EXPECT_TRUE(nowhere.moved());
    EXPECT_FALSE(OnCores({CPU_SETSIZE - 1}, 2).moved()) << "a core that is not there";
    EXPECT_EQ(where(), std::vector<int>(2, before.back()));
  }
  EXPECT_EQ(allowed_cores(), before);
}

// Of each thread of a team of three: by which rule its pages come; -1 where the system
// does not say.
std::vector<int> policies() {
  std::vector<int> policies(3, -1);
#pragma omp parallel num_threads(3)
  {
    int policy = 0;
    if (syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, nullptr, 0UL) == 0)
      policies[static_cast<std::size_t>(omp_get_thread_num())] = policy;
  }
  return policies;
}

TEST(Cores, PagesAreDealtRoundNodesWhileThatIsAskedFor) {
  const auto before = policies();
  if (before.front() < 0) GTEST_SKIP() << "the system does not say where pages go";
  constexpr int kInterleave = 3;
  {
    const InterleavedPages pages(3, {0, 0});  // which a machine with one node grants, too
    EXPECT_EQ(policies(), std::vector<int>(3, kInterleave));
  }
  EXPECT_EQ(policies(), before);
  const InterleavedPages one(3, {0});
  EXPECT_EQ(policies(), before) << "of one node nothing is dealt";
}

}  // namespace
}  // namespace espalier
