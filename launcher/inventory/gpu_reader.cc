// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/gpu_reader.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace hv::launcher {
namespace {

constexpr unsigned kTold = 64, kMostProcesses = 4096;

const char* refusal_in_words(int status) {
  switch (status) {  // nvmlGpuP2PStatus_t
    case 1:
      return "the chipset does not support it";
    case 2:
      return "the GPUs do not support it";
    case 3:
      return "the way between their sockets does not support it";
    case 4:
      return "the driver's settings forbid it";
    default:
      return "it is not supported";
  }
}

}  // namespace

std::string address_of(const nvml::PciInfo& pci) {
  char text[48];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
  return text;
}

std::optional<bool> GpuReader::has_ecc() {
  int mode = 0, next_mode = 0;
  return ask(nvml_.ecc_mode, &mode, &next_mode) ? std::optional(mode != 0) : std::nullopt;
}

std::string GpuReader::compute_mode() {
  int mode = 0;
  if (!ask(nvml_.compute_mode, &mode)) return "";
  if (mode == nvml::kProhibited) return "prohibited";
  return mode == nvml::kExclusive ? "exclusive" : "default";
}

// Of the reasons those that stand for a fault around it; an idle GPU has others.
std::string GpuReader::slowdown() {
  unsigned long long reasons = 0;
  if (!ask(nvml_.slowdowns, &reasons)) return "";
  if ((reasons & nvml::kHeat) != 0) return "heat";
  if ((reasons & nvml::kPowerBrake) != 0) return "the power supply";
  return (reasons & nvml::kSlowdown) != 0 ? "heat or the power supply" : "";
}

wire::PcieLink GpuReader::pcie() {
  return {number(nvml_.pcie_width), number(nvml_.most_pcie_width), number(nvml_.pcie_generation),
          number(nvml_.most_pcie_generation)};
}

// By what is free, for versions differ in whether "used" holds what the driver keeps.
std::optional<std::uint64_t> GpuReader::used_bytes() {
  nvml::MemoryV2 memory{};
  memory.version = nvml::kMemoryV2;
  if (ask(nvml_.memory_v2, &memory) && memory.reserved <= memory.total &&
      memory.free <= memory.total - memory.reserved)
    return memory.total - memory.reserved - memory.free;
  nvml::Memory old{};
  return ask(nvml_.memory, &old) ? std::optional<std::uint64_t>(old.used) : std::nullopt;
}

template <class Info>
std::vector<wire::GpuProcess> GpuReader::processes(int (*function)(nvml::Device, unsigned*,
                                                                   Info*)) {
  std::vector<wire::GpuProcess> found;
  if (function == nullptr) return found;
  unsigned count = kTold;
  std::vector<Info> infos(count);
  int result = function(device_, &count, infos.data());
  if (result == nvml::kTooSmall) {  // and count is how many there are
    infos.resize(count = std::min(count + kTold, kMostProcesses));
    result = function(device_, &count, infos.data());
  }
  if (!note(result)) return found;
  infos.resize(std::min(count, kTold));
  for (const Info& info : infos)
    found.push_back({info.pid, info.memory == nvml::kNotTold ? 0 : info.memory});
  return found;
}

wire::GpuUse GpuReader::use() {
  wire::GpuUse use;
  use.used_bytes = used_bytes();
  nvml::Utilization utilization{};
  if (ask(nvml_.utilization, &utilization)) use.busy_percent = utilization.gpu;
  use.processes =
      nvml_.processes != nullptr ? processes(nvml_.processes) : processes(nvml_.old_processes);
  return use;
}

std::optional<std::string> GpuReader::refusal_to(nvml::Device other) {
  for (const int way : {nvml::kPeerRead, nvml::kPeerWrite}) {
    int status = 0;
    if (!ask(nvml_.peer_status, other, way, &status) || status >= nvml::kPeerUnknown)
      return std::nullopt;
    if (status != 0) return refusal_in_words(status);
  }
  return "";
}

void GpuReader::read_health() {
  health_.volatile_errors = uncorrected(nvml::kVolatile);
  health_.aggregate_errors = uncorrected(nvml::kAggregate);
  int pages = 0;
  if (ask(nvml_.pages_pending, &pages)) health_.is_pending |= pages != 0;
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (!ask(nvml_.remapped_rows, &corrected, &uncorrected, &pending, &failed)) return;
  health_.is_pending |= pending != 0;
  health_.remap_failed = failed != 0;
}

// Drivers that keep a switch to themselves tell no address of it: all such links are to "switch".
std::string GpuReader::far_end(unsigned link) {
  nvml::PciInfo pci{};
  int type = 0;
  const bool is_switch = ask(nvml_.link_type, link, &type) && type == nvml::kLinkToSwitch;
  const bool is_told = ask(nvml_.link_far_end, link, &pci) && pci.domain != ~0u;
  const bool is_null = pci.domain == 0 && pci.bus == 0 && pci.device == 0;
  if (is_told && !is_null) return address_of(pci);
  return is_switch ? "switch" : "";
}

std::vector<std::string> GpuReader::links() {
  std::set<std::string> ends;
  for (unsigned link = 0; link < nvml::kMostLinks; ++link) {
    int is_active = 0;
    if (!ask(nvml_.link_state, link, &is_active) || is_active == 0) continue;
    ends.insert(far_end(link));
  }
  ends.erase("");
  return {ends.begin(), ends.end()};
}

}  // namespace hv::launcher
