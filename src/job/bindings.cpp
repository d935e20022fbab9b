#include "espalier/job/bindings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "espalier/base/text.hpp"

namespace espalier {

namespace {

constexpr const char* kHowToBind =
    "bind a rank to each NUMA node: `mpirun --map-by ppr:1:numa:PE=CORES --bind-to core`, or `srun "
    "--cpus-per-task=CORES --cpu-bind=cores` (docs/cores.md)";

bool overlap(const Binding& a, const Binding& b) {
  cpu_set_t both = {};
  CPU_AND(&both, &a.cores, &b.cores);
  return a.host == b.host && CPU_COUNT(&both) > 0;
}

bool is_bound(const Binding& rank) {
  return CPU_COUNT(&rank.cores) < rank.online;
}

CoreList list_of(const cpu_set_t& cores) {
  CoreList list;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) list.push_back(core);
  return list;
}

// "rank 3 on node7: cores 0-15"
std::string one_of(const std::vector<Binding>& ranks, const Binding& rank) {
  return fmt::format("rank {} on {}: core{} {}", &rank - ranks.data(), rank.host.text,
                     CPU_COUNT(&rank.cores) == 1 ? "" : "s", core_list_in_words(list_of(rank.cores)));
}

// The threads of all ranks that may run on cores of this one.
int threads_there(const std::vector<Binding>& ranks, const Binding& rank) {
  int threads = 0;
  for (const auto& other : ranks)
    if (overlap(rank, other)) threads += other.threads;
  return threads;
}

// Some other rank's threads are on the same cores as those of `rank`.
bool collides(const std::vector<Binding>& ranks, const Binding& rank) {
  const bool shares = std::ranges::any_of(
      ranks, [&](const Binding& other) { return &other != &rank && overlap(rank, other); });
  return shares && (rank.bound || (is_bound(rank) && threads_there(ranks, rank) > CPU_COUNT(&rank.cores)));
}

}  // namespace

Binding binding_of(int threads) {
  Binding mine;
  const auto cores = allowed_cores();
  for (const int core : cores) CPU_SET(core, &mine.cores);
  mine.online = online_cores();
  mine.numa_nodes = std::max<int>(1, static_cast<int>(nodes_of(cores, numa_nodes()).size()));
  mine.threads = threads;
  mine.bound = threads_are_bound();
  return mine;
}

std::string binding_warning(const std::vector<Binding>& ranks) {
  // How many there are, and one of them.
  const auto those = [&](const std::function<bool(const Binding&)>& is_so) {
    const auto first = std::ranges::find_if(ranks, is_so);
    return first == ranks.end() ? std::string()
                                : fmt::format("{} of {} ({}", std::ranges::count_if(ranks, is_so),
                                              counted(std::ssize(ranks), "rank"), one_of(ranks, *first));
  };
  if (const auto which = those([&](const auto& rank) { return collides(ranks, rank); }); !which.empty()) {
    const auto& rank = *std::ranges::find_if(ranks, [&](const auto& one) { return collides(ranks, one); });
    return fmt::format("{}) have their cores in common with others, {} there{}; give each rank its own: {}",
                       which, counted(threads_there(ranks, rank), "thread"),
                       rank.bound ? ", and OpenMP binds those of each to the first of them" : "", kHowToBind);
  }
  const auto too_many = [](const Binding& rank) {
    return is_bound(rank) && rank.threads > CPU_COUNT(&rank.cores);
  };
  if (const auto which = those(too_many); !which.empty())
    return fmt::format("{}) have more threads, {}, than the cores they were bound to; {}", which,
                       std::ranges::find_if(ranks, too_many)->threads, kHowToBind);
  const auto spread = [](const Binding& rank) { return rank.numa_nodes > 1; };
  if (const auto which = those(spread); !which.empty())
    return fmt::format(
        "{}, of {} NUMA nodes) are spread over several NUMA nodes: half or more of what such a rank reads is "
        "far away; {}",
        which, std::ranges::find_if(ranks, spread)->numa_nodes, kHowToBind);
  return {};
}

void warn_of_bindings(const Communicator& world, int threads, const log::Listener& listener) {
  const auto ranks = world.all_gather(binding_of(threads), "setup");
  if (const auto words = binding_warning(ranks); !words.empty())
    log::tell(listener, log::Level::kWarning, "{}", words);
}

}  // namespace espalier
