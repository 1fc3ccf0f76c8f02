// A stand-in for NVIDIA's libnvidia-ml.so.1: one fixed machine, no driver and no GPU.
// SPDX-License-Identifier: Apache-2.0
//
// 8 GPUs in PCI order, their minor numbers in another. GPUs 0-3 are joined by NVLinks of their own,
// 4, 6 and 7 by a switch. GPU 5 is in MIG mode, with three devices in places 0, 2 and 3. GPU 6 has
// uncorrected errors whose repair is pending. HVRUN_TEST_NVML changes that, by words: no-driver,
// hang, die, chatter (on stdout), secret-, null- or no-switch (its address is not told), healthy,
// lost=N, reset=N, beyond-repair=N, ecc=N, odd (GPUs of two models), busy=N (a process computes
// there), exclusive=N, prohibited=N, hot=N, narrow=N (8 of 16 PCIe lanes), no-peers,
// no-persistence, driver=V, cuda=N (as NVML writes it), crowd (200 processes on GPU 0). It counts
// what a caller does wrong.
// Compiled with OLD_DRIVER it lacks what came after version 418.
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "launcher/inventory/nvml_abi.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

struct hv::nvml::DeviceState {
  int gpu;
  int part;  // of its MIG devices; -1: the whole GPU
};

namespace {

using namespace hv::nvml;

constexpr int kGpus = 8, kParts = 3;
constexpr int kUninitialized = 1, kInvalid = 2, kDriverNotLoaded = 9, kSmall = 7;
constexpr unsigned kCrowd = 200, kBusyPid = 4711;
constexpr unsigned kBuses[kGpus] = {0x1b, 0x29, 0x45, 0x4e, 0x9b, 0xa9, 0xc5, 0xce};
constexpr unsigned kMinors[kGpus] = {2, 3, 0, 1, 6, 7, 4, 5};
constexpr unsigned kSwitchBus = 0x8a;
constexpr int kCutGpu = 5, kFaultyGpu = 6;
constexpr unsigned long long kGiB = 1ull << 30;

struct Part {
  unsigned place, gpu_instance, compute_instance;
  const char* profile;
  unsigned long long gib;
};
constexpr Part kPartList[kParts] = {
    {0, 7, 0, "1g.10gb", 10}, {2, 8, 0, "1g.10gb", 10}, {3, 5, 0, "2g.20gb", 20}};

DeviceState devices[kGpus * (kParts + 1)];
int sessions = 0, mistakes = 0;
std::string words;

bool has_word(const std::string& word) {
  return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

bool has_word(const std::string& word, const DeviceState& device) {
  return device.part < 0 && has_word(word + "=" + std::to_string(device.gpu));
}

// Of "name=value".
std::string value_of(const std::string& name, const std::string& otherwise) {
  const std::string all = " " + words + " ";
  const std::size_t begin = all.find(" " + name + "=");
  if (begin == std::string::npos) return otherwise;
  const std::size_t value = begin + name.size() + 2;
  return all.substr(value, all.find(' ', value) - value);
}

DeviceState* device_of(int gpu, int part) {
  DeviceState* const device = &devices[gpu * (kParts + 1) + part + 1];
  *device = {gpu, part};
  return device;
}

// What every call looks at first.
int check(Device device) {
  const bool is_ours = device >= devices && device < devices + std::size(devices);
  if (sessions == 0 || !is_ours) ++mistakes;
  if (sessions == 0) return kUninitialized;
  if (!is_ours) return kInvalid;
  if (has_word("reset=" + std::to_string(device->gpu))) return kResetRequired;
  return kSuccess;
}

template <class Act>
int with(Device device, Act&& act) {
  const int result = check(device);
  return result == kSuccess ? act(*device) : result;
}

int copy(const std::string& text, char* to, unsigned size) {
  if (text.size() >= size) return kSmall;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kSuccess;
}

void fill(unsigned bus, PciInfo* pci) {
  *pci = {};
  pci->bus = bus;
  std::snprintf(pci->address, sizeof pci->address, "00000000:%02X:00.0", bus);
  std::snprintf(pci->legacy_address, sizeof pci->legacy_address, "0000:%02X:00.0", bus);
}

std::string model_of(int gpu) {
  return has_word("odd") && gpu == 0 ? "NVIDIA A30" : "NVIDIA A100-SXM4-80GB";
}

bool has_links(int gpu) { return gpu != kCutGpu; }

unsigned long long total_of(const DeviceState& one) {
  return (one.part < 0 ? 80 : kPartList[one.part].gib) * kGiB;
}
unsigned long long used_of(const DeviceState& one) { return has_word("busy", one) ? 20 * kGiB : 0; }
constexpr unsigned long long kReserved = kGiB / 2;

template <class Info>
int tell_processes(Device device, unsigned* count, Info* infos) {
  return with(device, [&](const DeviceState& one) {
    const bool is_crowd = has_word("crowd") && one.gpu == 0;
    const unsigned all = is_crowd ? kCrowd : has_word("busy", one) ? 1 : 0;
    const unsigned room = *count;
    *count = all;
    if (room < all) return kTooSmall;
    for (unsigned i = 0; i < all; ++i) {
      infos[i] = {};
      infos[i].pid = kBusyPid + i;
      infos[i].memory = is_crowd ? kNotTold : used_of(one);
    }
    return kSuccess;
  });
}

int tell(Device device, int value, int* to) {
  return with(device, [&](const DeviceState&) {
    *to = value;
    return kSuccess;
  });
}
int tell(Device device, unsigned value, unsigned* to) {
  return with(device, [&](const DeviceState& one) {
    if (one.part >= 0) return kNotSupported;
    *to = value;
    return kSuccess;
  });
}

}  // namespace

EXPORTED int fake_nvml_mistakes() { return mistakes; }
EXPORTED int fake_nvml_sessions() { return sessions; }

EXPORTED int nvmlInit_v2() {
  const char* const wanted = std::getenv("HVRUN_TEST_NVML");
  words = wanted != nullptr ? wanted : "";
  if (has_word("chatter")) std::puts("a library that talks");
  if (has_word("die")) std::abort();
  while (has_word("hang")) ::pause();
  if (has_word("no-driver")) return kDriverNotLoaded;
  ++sessions;
  return kSuccess;
}

EXPORTED int nvmlShutdown() {
  if (sessions == 0) return ++mistakes, kUninitialized;
  return --sessions, kSuccess;
}

EXPORTED const char* nvmlErrorString(int result) {
  return result == kDriverNotLoaded ? "Driver Not Loaded" : "Another Error";
}

EXPORTED int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return copy(value_of("driver", "550.54.15"), version, size);
}

EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  if (sessions == 0) return ++mistakes, kUninitialized;
  *count = kGpus;
  return kSuccess;
}

EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (sessions == 0) return ++mistakes, kUninitialized;
  if (index >= kGpus) return ++mistakes, kInvalid;
  if (has_word("lost=" + std::to_string(index))) return kGpuIsLost;
  *device = device_of(static_cast<int>(index), -1);
  return kSuccess;
}

EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char* address, Device* device) {
  for (unsigned i = 0; i < kGpus; ++i) {
    char own[16];
    std::snprintf(own, sizeof own, "0000:%02x:00.0", kBuses[i]);
    if (std::strcmp(own, address) == 0) return nvmlDeviceGetHandleByIndex_v2(i, device);
  }
  return kNotFound;
}

EXPORTED int nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  return with(device, [&](const DeviceState& one) {
    fill(kBuses[one.gpu], pci);
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetUUID(Device device, char* uuid, unsigned size) {
  return with(device, [&](const DeviceState& one) {
    const std::string tail = "-0000-4000-8000-00000000000";
    if (one.part < 0) return copy("GPU-00000000" + tail + std::to_string(one.gpu), uuid, size);
    return copy("MIG-0000000" + std::to_string(one.gpu) + tail + std::to_string(one.part), uuid,
                size);
  });
}

EXPORTED int nvmlDeviceGetName(Device device, char* name, unsigned size) {
  return with(device, [&](const DeviceState& one) {
    const std::string profile =
        one.part < 0 ? "" : std::string(" MIG ") + kPartList[one.part].profile;
    return copy(model_of(one.gpu) + profile, name, size);
  });
}

EXPORTED int nvmlDeviceGetMinorNumber(Device device, unsigned* minor) {
  return with(device, [&](const DeviceState& one) {
    *minor = kMinors[one.gpu];
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return with(device, [&](const DeviceState& one) {
    const unsigned long long used = kReserved + used_of(one);
    *memory = {total_of(one), total_of(one) - used, used};
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetUtilizationRates(Device device, Utilization* utilization) {
  return with(device, [&](const DeviceState& one) {
    if (one.gpu == kCutGpu) return kNotSupported;
    *utilization = {has_word("busy", one) ? 97u : 0u, 0};
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count,
                                                  OldProcessInfo* infos) {
  return tell_processes(device, count, infos);
}

EXPORTED int nvmlDeviceGetPersistenceMode(Device device, int* mode) {
  return tell(device, has_word("no-persistence") ? 0 : 1, mode);
}

EXPORTED int nvmlDeviceGetEccMode(Device device, int* mode, int* next) {
  return tell(device, 1, next), tell(device, 1, mode);
}

EXPORTED int nvmlDeviceGetComputeMode(Device device, int* mode) {
  return with(device, [&](const DeviceState& one) {
    *mode = has_word("exclusive", one) ? kExclusive : has_word("prohibited", one) ? kProhibited : 0;
    return kSuccess;
  });
}

// An idle GPU: bit 0.
EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return with(device, [&](const DeviceState& one) {
    *reasons = has_word("hot", one) ? kSlowdown | kHeat : 1;
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned* width) {
  return with(device, [&](const DeviceState& one) {
    *width = has_word("narrow", one) ? 8 : 16;
    return kSuccess;
  });
}
EXPORTED int nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* width) {
  return tell(device, 16u, width);
}
EXPORTED int nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned* generation) {
  return tell(device, 1u, generation);
}
EXPORTED int nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned* generation) {
  return tell(device, 4u, generation);
}

EXPORTED int nvmlDeviceGetP2PStatus(Device device, Device other, int way, int* status) {
  return with(device, [&](const DeviceState&) {
    return with(other, [&](const DeviceState&) {
      if (device == other || way > kPeerWrite) return ++mistakes, kInvalid;
      *status = has_word("no-peers") ? 1 : 0;
      return kSuccess;
    });
  });
}

EXPORTED int nvmlDeviceGetTotalEccErrors(Device device, int kind, int since,
                                         unsigned long long* errors) {
  return with(device, [&](const DeviceState& one) {
    const bool is_faulty = (one.gpu == kFaultyGpu && !has_word("healthy")) || has_word("ecc", one);
    *errors = is_faulty && kind == kUncorrected ? (since == kVolatile ? 3 : 5) : 0;
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetRetiredPagesPendingStatus(Device device, int*) {
  return with(device, [](const DeviceState&) { return kNotSupported; });
}

EXPORTED int nvmlDeviceGetNvLinkState(Device device, unsigned link, int* is_active) {
  return with(device, [&](const DeviceState& one) {
    if (link >= 12) return kInvalid;
    *is_active = has_links(one.gpu) && link < 4 ? 1 : 0;
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo* pci) {
  return with(device, [&](const DeviceState& one) {
    if (one.gpu >= 4 && has_word("secret-switch")) return kNotSupported;
    if (one.gpu >= 4 && (has_word("null-switch") || has_word("no-switch"))) {
      *pci = {};
      if (has_word("no-switch")) pci->domain = ~0u;
      return kSuccess;
    }
    const bool is_switch = one.gpu >= 4;
    fill(is_switch ? kSwitchBus : kBuses[(static_cast<unsigned>(one.gpu) + 1 + link % 3) % 4], pci);
    return kSuccess;
  });
}

#ifndef OLD_DRIVER

EXPORTED int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = std::stoi(value_of("cuda", "12040"));
  return kSuccess;
}

EXPORTED int nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* memory) {
  return with(device, [&](const DeviceState& one) {
    if (memory->version != kMemoryV2) return ++mistakes, kInvalid;
    const unsigned long long free = total_of(one) - kReserved - used_of(one);
    *memory = {kMemoryV2, total_of(one), kReserved, free, used_of(one)};
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count,
                                                     ProcessInfo* infos) {
  return tell_processes(device, count, infos);
}

EXPORTED int nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned, int* type) {
  return with(device, [&](const DeviceState& one) {
    *type = one.gpu >= 4 ? kLinkToSwitch : 0;
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetRemappedRows(Device device, unsigned* corrected, unsigned* uncorrected,
                                       unsigned* is_pending, unsigned* has_failed) {
  return with(device, [&](const DeviceState& one) {
    if (one.gpu == kCutGpu) return kNotSupported;  // as in MIG mode
    const bool is_faulty = one.gpu == kFaultyGpu && !has_word("healthy");
    *corrected = 0;
    *uncorrected = *is_pending = is_faulty ? 1 : 0;
    *has_failed = has_word("beyond-repair=" + std::to_string(one.gpu)) ? 1 : 0;
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetMigMode(Device device, unsigned* mode, unsigned* next) {
  return with(device, [&](const DeviceState& one) {
    *mode = *next = one.gpu == kCutGpu ? 1 : 0;
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  return with(device, [&](const DeviceState&) {
    *count = 7;
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* part) {
  return with(device, [&](const DeviceState& one) {
    for (int i = 0; i < kParts && one.gpu == kCutGpu; ++i) {
      if (kPartList[i].place != index) continue;
      *part = device_of(one.gpu, i);
      return kSuccess;
    }
    return kNotFound;
  });
}

EXPORTED int nvmlDeviceGetGpuInstanceId(Device device, unsigned* number) {
  return with(device, [&](const DeviceState& one) {
    if (one.part < 0) return ++mistakes, kInvalid;
    *number = kPartList[one.part].gpu_instance;
    return kSuccess;
  });
}

EXPORTED int nvmlDeviceGetComputeInstanceId(Device device, unsigned* number) {
  return with(device, [&](const DeviceState& one) {
    if (one.part < 0) return ++mistakes, kInvalid;
    *number = kPartList[one.part].compute_instance;
    return kSuccess;
  });
}

#endif
