// The part of NVML that Espalier loads at run time, for the emulated GPUs: a library of its own,
// found by the name of the driver's.
//
//     ESPALIER_EMULATED_SWITCHES   the PCIe switch of each GPU, as 0,0,1,1; without: no NVML
//     ESPALIER_EMULATED_NVLINKS    pairs that NVLink joins, as 0-1,2-3; a number beyond the GPUs is
//                                  an NVSwitch's
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Device {
  int number, pcie_switch;
};
std::vector<Device> devices;
std::vector<std::pair<int, int>> links;

std::string text_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// The other end of a link of a GPU.
bool other_end(const Device& device, unsigned link, int& remote) {
  for (const auto& [a, b] : links)
    if ((a == device.number || b == device.number) && link-- == 0) {
      remote = a == device.number ? b : a;
      return true;
    }
  return false;
}

struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

enum { kSuccess = 0, kUninitialized = 1, kNotSupported = 3, kNotFound = 6 };

}  // namespace

extern "C" {

int nvmlInit_v2() {
  devices.clear();
  links.clear();
  std::stringstream switches(text_of("ESPALIER_EMULATED_SWITCHES")),
      pairs(text_of("ESPALIER_EMULATED_NVLINKS"));
  std::string item;
  while (std::getline(switches, item, ','))
    devices.push_back({static_cast<int>(devices.size()), std::atoi(item.c_str())});
  int a = 0, b = 0;
  while (std::getline(pairs, item, ','))
    if (std::sscanf(item.c_str(), "%d-%d", &a, &b) == 2) links.emplace_back(a, b);
  return devices.empty() ? kUninitialized : kSuccess;
}
int nvmlShutdown() {
  return kSuccess;
}

// As the emulated cudaDeviceGetPCIBusId says.
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(bus_id, "%x:%x", &domain, &bus) != 2 || bus == 0 || bus > devices.size()) return kNotFound;
  *device = &devices[bus - 1];
  return kSuccess;
}
// Within a switch by one bridge (10); else by the processors' bus (40).
int nvmlDeviceGetTopologyCommonAncestor(void* a, void* b, int* level) {
  *level = static_cast<Device*>(a)->pcie_switch == static_cast<Device*>(b)->pcie_switch ? 10 : 40;
  return kSuccess;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
  int remote = 0;
  if (links.empty()) return kNotSupported;
  *active = other_end(*static_cast<Device*>(device), link, remote);
  return kSuccess;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, PciInfo* pci) {
  int remote = 0;
  if (!other_end(*static_cast<Device*>(device), link, remote)) return kNotSupported;
  *pci = {};
  pci->bus = static_cast<unsigned>(remote + 1);
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", remote + 1);
  return kSuccess;
}
}
