// The cores that this process may run on, and the NUMA nodes that they belong to: memory near some
// cores and far from others. A page lies near the core that touches it first.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// Cores by their numbers, ascending.
using CoreList = std::vector<int>;

/// What the threads of this process may run on: the places that OpenMP binds them to (OMP_PLACES,
/// OMP_PROC_BIND), or else what the launcher left the process. To be asked by the first thread.
CoreList allowed_cores();
/// Does OpenMP bind each thread to a place?
bool threads_are_bound();
/// Of this host, whoever may run on them.
int online_cores();

/// "0-3,8": 0 1 2 3 8, as the system writes cores. Nothing where it is no such list.
std::optional<CoreList> parse_core_list(std::string_view text);
/// "0-3,8"
std::string core_list_in_words(const CoreList& cores);

struct NumaNode {
  int number = 0;
  CoreList cores;
};
/// Those that have cores; none where the system does not say.
std::vector<NumaNode> numa_nodes(const std::string& folder = "/sys/devices/system/node");
/// Those of `nodes` that have some of `cores`.
std::vector<int> nodes_of(const CoreList& cores, const std::vector<NumaNode>& nodes);

/// `cores` node after node, hardware threads of one core side by side: part k of as many is
/// what a launcher binds rank k to. `siblings`: of each core the first that shares its pipelines.
CoreList near_each_other(CoreList cores, const std::vector<NumaNode>& nodes,
                         const std::vector<int>& siblings);
/// For the list above, of this machine: a core itself where the system does not say.
std::vector<int> first_siblings(const CoreList& cores, const std::string& folder = "/sys/devices/system/cpu");

/// While it lives the first thread and its team run on these cores, wherever they did before; where
/// the list is empty nothing changes.
class OnCores {
 public:
  OnCores(const CoreList& cores, int threads);
  ~OnCores();
  OnCores(const OnCores&) = delete;
  OnCores& operator=(const OnCores&) = delete;
  /// Did the system grant just these?
  bool moved() const { return moved_; }

 private:
  bool moved_ = true;
  std::vector<cpu_set_t> before_;  // of each thread
};

/// While it lives, pages that the first thread and its team touch first are dealt round the NUMA
/// nodes of the process, if it may run on several: for what one thread reads and all use. A system
/// that refuses costs speed alone.
class InterleavedPages {
 public:
  explicit InterleavedPages(int threads);
  InterleavedPages(int threads, const std::vector<int>& nodes);
  ~InterleavedPages();
  InterleavedPages(const InterleavedPages&) = delete;
  InterleavedPages& operator=(const InterleavedPages&) = delete;

 private:
  int threads_ = 0;  // 0: nothing is to be undone
};

}  // namespace espalier
