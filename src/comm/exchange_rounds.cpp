// Asks NVML (libnvidia-ml.so.1, of the driver). The little of its interface that is used is
// declared here, so that neither its header nor its library is needed to build.
//
// Each rank asks for its own GPU: its links, and how near the others are. All then see all answers.
#include "espalier/comm/exchange_rounds.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>

#include "espalier/comm/session.hpp"

namespace espalier {

namespace {

// The ranks of each switch, ascending; switches by their numbers.
std::vector<std::vector<int>> ranks_by_switch(std::span<const GpuPlace> places) {
  std::map<int, std::vector<int>> ranks;
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    ranks[places[rank].pcie_switch].push_back(static_cast<int>(rank));
  std::vector<std::vector<int>> result;
  for (auto& [number, of_switch] : ranks) result.push_back(std::move(of_switch));
  return result;
}

// Round `round` of a tournament of `players` by the circle method: the last one stays, the others
// turn. With an odd number one has nobody to play with.
std::vector<std::pair<int, int>> tournament_round(int players, int round) {
  const int circle = players % 2 == 0 ? players - 1 : players;
  std::vector<std::pair<int, int>> games;
  if (players % 2 == 0 && players > 0) games.emplace_back(round, players - 1);
  for (int k = 1; 2 * k < circle; ++k)
    games.emplace_back((round + k) % circle, (round - k + circle) % circle);
  return games;
}
int tournament_rounds(int players) {
  return players % 2 == 0 ? players - 1 : players;
}

void add(std::vector<ExchangeRound>& rounds, std::size_t round, int a, int b) {
  if (rounds.size() <= round) rounds.resize(round + 1);
  rounds[round].emplace_back(std::min(a, b), std::max(a, b));
}

// All ranks of a with all of b; each pair has a rank in common with the one before.
std::vector<std::pair<int, int>> there_and_back(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t row = 0; row < a.size(); ++row)
    for (std::size_t k = 0; k < b.size(); ++k)
      pairs.emplace_back(a[row], b[row % 2 == 0 ? k : b.size() - 1 - k]);
  return pairs;
}

void add_rounds_inside(const std::vector<std::vector<int>>& switches, std::vector<ExchangeRound>& rounds) {
  for (const auto& ranks : switches) {
    const int players = static_cast<int>(ranks.size());
    for (int round = 0; players > 1 && round < tournament_rounds(players); ++round)
      for (const auto& [a, b] : tournament_round(players, round))
        add(rounds, static_cast<std::size_t>(round), ranks[a], ranks[b]);
  }
}

// A tournament of switches. A pair begins with the rank that used its link last, on either side.
void add_rounds_across(std::vector<std::vector<int>> switches, std::vector<ExchangeRound>& rounds) {
  const int players = static_cast<int>(switches.size());
  std::vector<std::size_t> is_free(switches.size(), rounds.size());  // from which round on
  for (int game = 0; game < tournament_rounds(players); ++game)
    for (const auto& [s, t] : tournament_round(players, game)) {
      auto &here = switches[s], &there = switches[t];
      auto round = std::max(is_free[s], is_free[t]);
      std::pair<int, int> last;
      for (const auto& pair : there_and_back(here, there)) {
        add(rounds, round++, pair.first, pair.second);
        last = pair;
      }
      is_free[s] = is_free[t] = round;
      std::iter_swap(here.begin(), std::find(here.begin(), here.end(), last.first));
      std::iter_swap(there.begin(), std::find(there.begin(), there.end(), last.second));
    }
}

}  // namespace

bool share_links(std::span<const GpuPlace> places) {
  if (places.empty()) return false;
  for (const auto& place : places)
    if (place.node != places[0].node || place.pcie_switch < 0) return false;
  const auto switches = ranks_by_switch(places).size();
  return switches > 1 && switches < places.size();
}

std::vector<ExchangeRound> exchange_rounds(std::span<const GpuPlace> places) {
  const int ranks = static_cast<int>(places.size());
  std::vector<ExchangeRound> rounds;
  if (!share_links(places)) {
    for (int a = 0; a < ranks; ++a)
      for (int b = a + 1; b < ranks; ++b) add(rounds, 0, a, b);
    return rounds;
  }
  const auto switches = ranks_by_switch(places);
  add_rounds_inside(switches, rounds);
  add_rounds_across(switches, rounds);
  for (auto& round : rounds) std::sort(round.begin(), round.end());
  return rounds;
}

std::vector<std::vector<int>> partners_by_round(std::span<const GpuPlace> places, int rank) {
  if (!share_links(places)) {
    std::vector<int> everybody(places.size());
    std::iota(everybody.begin(), everybody.end(), 0);
    return {everybody};
  }
  std::vector<std::vector<int>> partners = {{rank}};
  for (const auto& round : exchange_rounds(places))
    for (const auto& [a, b] : round)
      if (a == rank || b == rank) partners.push_back({a == rank ? b : a});
  return partners;
}

// ---- where GPUs are ----

namespace {

constexpr int kMostLinks = 18;                   // NVML_NVLINK_MAX_LINKS
constexpr int kNearerThanHost = 20;              // NVML_TOPOLOGY_MULTIPLE: PCIe switches only
constexpr std::uint64_t kUnknownRemote = ~0ull;  // of an active link
constexpr std::uint64_t kNoLink = ~0ull - 1;

using NvmlDevice = void*;
struct NvmlPciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

// Its functions return 0 when all is well.
class Nvml {
 public:
  Nvml() {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    int (*init)() = nullptr;
    const bool complete = find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown_) &&
                          find("nvmlDeviceGetHandleByPciBusId_v2", device_at_) &&
                          find("nvmlDeviceGetTopologyCommonAncestor", common_ancestor_) &&
                          find("nvmlDeviceGetNvLinkState", link_state_) &&
                          find("nvmlDeviceGetNvLinkRemotePciInfo_v2", link_remote_);
    started_ = complete && init() == 0;
  }
  ~Nvml() {
    if (started_) shutdown_();
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::optional<NvmlDevice> device_at(const char* bus_id) const {
    NvmlDevice device = nullptr;
    if (!started_ || device_at_(bus_id, &device) != 0) return std::nullopt;
    return device;
  }
  std::optional<bool> nearer_than_host(NvmlDevice a, NvmlDevice b) const {
    int level = 0;
    if (a == b) return true;
    if (common_ancestor_(a, b, &level) != 0) return std::nullopt;
    return level <= kNearerThanHost;
  }
  /// What is at the other end of its NVLinks.
  std::array<std::uint64_t, kMostLinks> remotes_of(NvmlDevice device) const {
    std::array<std::uint64_t, kMostLinks> remotes;
    remotes.fill(kNoLink);
    for (unsigned link = 0; link < kMostLinks; ++link) {
      int active = 0;
      NvmlPciInfo pci = {};
      if (link_state_(device, link, &active) != 0 || active == 0) continue;
      const bool known = link_remote_(device, link, &pci) == 0;
      remotes[link] = known ? address(pci.domain, pci.bus, pci.device) : kUnknownRemote;
    }
    return remotes;
  }
  static std::uint64_t address(unsigned domain, unsigned bus, unsigned device) {
    return std::uint64_t{domain} << 16 | bus << 8 | device;
  }

 private:
  template <class Function>
  bool find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    return function != nullptr;
  }

  void* library_ = nullptr;
  bool started_ = false;
  int (*shutdown_)() = nullptr;
  int (*device_at_)(const char*, NvmlDevice*) = nullptr;
  int (*common_ancestor_)(NvmlDevice, NvmlDevice, int*) = nullptr;
  int (*link_state_)(NvmlDevice, unsigned, int*) = nullptr;
  int (*link_remote_)(NvmlDevice, unsigned, NvmlPciInfo*) = nullptr;
};

// What a rank says of its GPU.
struct Gpu {
  HostName host;
  char bus_id[32] = {};
  std::array<std::uint64_t, kMostLinks> remotes = {};

  std::uint64_t address() const {
    unsigned domain = 0, bus = 0, device = 0;
    return std::sscanf(bus_id, "%x:%x:%x", &domain, &bus, &device) == 3 ? Nvml::address(domain, bus, device)
                                                                        : kNoLink;
  }
  bool has_link_to(std::uint64_t remote) const {
    return remote != kNoLink && std::find(remotes.begin(), remotes.end(), remote) != remotes.end();
  }
};

// Directly, or by something that both have a link to: an NVSwitch.
bool joined_by_nvlink(const Gpu& a, const Gpu& b) {
  return a.has_link_to(b.address()) || b.has_link_to(a.address()) ||
         std::any_of(a.remotes.begin(), a.remotes.end(), [&](auto remote) { return b.has_link_to(remote); });
}

enum class Distance : std::uint8_t { kUnknown, kFar, kNear };

// From this rank's GPU to each.
std::vector<Distance> distances(const Nvml& nvml, const std::vector<Gpu>& gpus, const Gpu& mine) {
  std::vector<Distance> result(gpus.size(), Distance::kUnknown);
  const auto own = nvml.device_at(mine.bus_id);
  for (std::size_t rank = 0; rank < gpus.size() && own; ++rank) {
    const auto other = nvml.device_at(gpus[rank].bus_id);
    const auto near = other ? nvml.nearer_than_host(*own, *other) : std::nullopt;
    if (near) result[rank] = *near || joined_by_nvlink(mine, gpus[rank]) ? Distance::kNear : Distance::kFar;
  }
  return result;
}

// Ranks that are near each other, directly or over others, have the number of the lowest.
std::vector<GpuPlace> join(std::span<const Distance> distances, int ranks) {
  std::vector<GpuPlace> places(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) places[static_cast<std::size_t>(rank)].pcie_switch = rank;
  for (std::size_t a = 0; a < places.size(); ++a)
    for (std::size_t b = 0; b < places.size(); ++b) {
      if (distances[a * places.size() + b] != Distance::kNear) continue;
      const int lower = std::min(places[a].pcie_switch, places[b].pcie_switch);
      const int higher = std::max(places[a].pcie_switch, places[b].pcie_switch);
      for (auto& place : places)
        if (place.pcie_switch == higher) place.pcie_switch = lower;
    }
  return places;
}

}  // namespace

std::vector<GpuPlace> find_gpu_places(const Communicator& comm, const std::string& bus_id) {
  const Nvml nvml;
  Gpu mine;
  bus_id.copy(mine.bus_id, sizeof mine.bus_id - 1);
  mine.remotes.fill(kNoLink);
  if (const auto device = nvml.device_at(mine.bus_id)) mine.remotes = nvml.remotes_of(*device);
  const auto gpus = comm.all_gather(mine, "setup");

  std::vector<GpuPlace> places(gpus.size());
  for (std::size_t rank = 0; rank < gpus.size(); ++rank)
    places[rank].node = static_cast<int>(std::ranges::find(gpus, gpus[rank].host, &Gpu::host) - gpus.begin());
  if (std::any_of(places.begin(), places.end(), [](const GpuPlace& place) { return place.node != 0; }))
    return places;

  const auto to_all = distances(nvml, gpus, mine);
  const auto all = comm.all_gather_v(std::span<const Distance>(to_all), "setup");
  if (std::find(all.begin(), all.end(), Distance::kUnknown) != all.end()) return places;
  return join(all, comm.size());
}

}  // namespace espalier
