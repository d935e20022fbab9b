#include "espalier/base/cores.hpp"

#include <omp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <tuple>

namespace espalier {

namespace {

// Of linux/mempolicy.h, which not every system has the headers of.
constexpr int kDefaultPolicy = 0, kInterleavePolicy = 3;
constexpr int kMostNodes = 1024;

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool set_policy(int policy, const std::vector<int>& nodes) {
  constexpr int kBits = 8 * sizeof(unsigned long);
  unsigned long mask[kMostNodes / kBits] = {};
  for (const int node : nodes)
    if (node < kMostNodes) mask[node / kBits] |= 1UL << (node % kBits);
  // One more than the highest bit is asked for, as the system takes one from it.
  return syscall(SYS_set_mempolicy, policy, nodes.empty() ? nullptr : mask,
                 nodes.empty() ? 0UL : kMostNodes + 1UL) == 0;
}

bool set_policy_of_team(int threads, int policy, const std::vector<int>& nodes) {
  bool all = true;
#pragma omp parallel num_threads(threads) reduction(&& : all)
  all = set_policy(policy, nodes);
  return all;
}

}  // namespace

CoreList allowed_cores() {
  CoreList cores;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    const auto begin = cores.size();
    cores.resize(begin + static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, cores.data() + begin);
  }
  cpu_set_t set = {};
  if (cores.empty() && sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  std::ranges::sort(cores);
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

bool threads_are_bound() {
  return omp_get_proc_bind() != omp_proc_bind_false;
}

int online_cores() {
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

std::optional<CoreList> parse_core_list(std::string_view text) {
  CoreList cores;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](int& value) {
    const auto [after, error] = std::from_chars(at, end, value);
    at = after;
    return error == std::errc() && value >= 0 && value < CPU_SETSIZE;
  };
  while (at != end) {
    int first = 0;
    if (!number(first)) return {};
    int last = first;
    if (at != end && *at == '-' && (++at, !number(last))) return {};
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (at != end && (*at != ',' || ++at == end)) return {};
  }
  std::ranges::sort(cores);
  return cores;
}

std::string core_list_in_words(const CoreList& cores) {
  std::string words;
  for (auto first = cores.begin(); first != cores.end();) {
    auto last = first;
    while (last + 1 != cores.end() && last[1] == last[0] + 1) ++last;
    words += (words.empty() ? "" : ",") + std::to_string(*first);
    if (last != first) words += "-" + std::to_string(*last);
    first = last + 1;
  }
  return words;
}

std::vector<NumaNode> numa_nodes(const std::string& folder) {
  std::vector<NumaNode> nodes;
  std::error_code unknown;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unknown)) {
    const auto name = entry.path().filename().string();
    const auto number =
        name.starts_with("node") ? parse_core_list(std::string_view(name).substr(4)) : std::nullopt;
    auto cores = parse_core_list(first_line(entry.path() / "cpulist"));
    if (number && number->size() == 1 && cores && !cores->empty())
      nodes.push_back({number->front(), std::move(*cores)});
  }
  std::ranges::sort(nodes, {}, &NumaNode::number);
  return nodes;
}

std::vector<int> nodes_of(const CoreList& cores, const std::vector<NumaNode>& nodes) {
  std::vector<int> numbers;
  for (const auto& node : nodes)
    if (std::ranges::any_of(node.cores, [&](int core) { return std::ranges::binary_search(cores, core); }))
      numbers.push_back(node.number);
  return numbers;
}

CoreList near_each_other(CoreList cores, const std::vector<NumaNode>& nodes,
                         const std::vector<int>& siblings) {
  struct Place {
    std::size_t node;
    int sibling, core;
  };
  std::vector<Place> places;
  for (std::size_t k = 0; k < cores.size(); ++k) {
    const auto of = std::ranges::find_if(
        nodes, [&](const NumaNode& node) { return std::ranges::binary_search(node.cores, cores[k]); });
    places.push_back({static_cast<std::size_t>(of - nodes.begin()), siblings[k], cores[k]});
  }
  std::ranges::sort(places, {},
                    [](const Place& place) { return std::tuple(place.node, place.sibling, place.core); });
  for (std::size_t k = 0; k < cores.size(); ++k) cores[k] = places[k].core;
  return cores;
}

std::vector<int> first_siblings(const CoreList& cores, const std::string& folder) {
  std::vector<int> first;
  for (const int core : cores) {
    const auto name = "cpu" + std::to_string(core);
    const auto list =
        parse_core_list(first_line(std::filesystem::path(folder) / name / "topology/thread_siblings_list"));
    first.push_back(list && !list->empty() ? list->front() : core);
  }
  return first;
}

OnCores::OnCores(const CoreList& cores, int threads) {
  if (cores.empty()) return;
  cpu_set_t set = {};
  for (const int core : cores) CPU_SET(core, &set);
  before_.resize(static_cast<std::size_t>(threads));
  bool all = true;
#pragma omp parallel num_threads(threads) reduction(&& : all)
  {
    sched_getaffinity(0, sizeof set, &before_[static_cast<std::size_t>(omp_get_thread_num())]);
    cpu_set_t granted = {};
    all = sched_setaffinity(0, sizeof set, &set) == 0 &&
          sched_getaffinity(0, sizeof granted, &granted) == 0 && CPU_EQUAL(&granted, &set);
  }
  moved_ = all;
}

OnCores::~OnCores() {
  if (before_.empty()) return;
#pragma omp parallel num_threads(static_cast <int>(before_.size()))
  {
    const auto& set = before_[static_cast<std::size_t>(omp_get_thread_num())];
    if (CPU_COUNT(&set) > 0) sched_setaffinity(0, sizeof set, &set);
  }
}

InterleavedPages::InterleavedPages(int threads)
    : InterleavedPages(threads, nodes_of(allowed_cores(), numa_nodes())) {}

InterleavedPages::InterleavedPages(int threads, const std::vector<int>& nodes) {
  if (nodes.size() < 2) return;
  threads_ = threads;
  set_policy_of_team(threads, kInterleavePolicy, nodes);
}

InterleavedPages::~InterleavedPages() {
  if (threads_ > 0) set_policy_of_team(threads_, kDefaultPolicy, {});
}

}  // namespace espalier
