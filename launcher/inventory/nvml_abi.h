// What of NVML's interface is called: the layout of its types, so that no header of it is needed. A
// unit test compares these with nvml.h where that is installed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hv::nvml {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kTooSmall = 7;  // NVML_ERROR_INSUFFICIENT_SIZE
constexpr int kGpuIsLost = 15;
constexpr int kResetRequired = 16;

constexpr unsigned kMostLinks = 36;     // NVML_NVLINK_MAX_LINKS
constexpr unsigned kUuidBytes = 96;     // NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr unsigned kNameBytes = 96;     // NVML_DEVICE_NAME_V2_BUFFER_SIZE
constexpr unsigned kVersionBytes = 80;  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
constexpr int kUncorrected = 1;         // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int kVolatile = 0;            // NVML_VOLATILE_ECC
constexpr int kAggregate = 1;           // NVML_AGGREGATE_ECC
constexpr int kLinkToSwitch = 2;        // NVML_NVLINK_DEVICE_TYPE_SWITCH
constexpr int kProhibited = 2;          // NVML_COMPUTEMODE_PROHIBITED
constexpr int kExclusive = 3;           // NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
constexpr int kPeerRead = 0;            // NVML_P2P_CAPS_INDEX_READ
constexpr int kPeerWrite = 1;           // NVML_P2P_CAPS_INDEX_WRITE
constexpr int kPeerUnknown = 6;         // NVML_P2P_STATUS_UNKNOWN
// nvmlClocksThrottleReasonHwSlowdown, ...HwThermalSlowdown, ...HwPowerBrakeSlowdown
constexpr unsigned long long kSlowdown = 0x8, kHeat = 0x40, kPowerBrake = 0x80;
constexpr unsigned long long kNotTold = ~0ull;  // NVML_VALUE_NOT_AVAILABLE

using Device = struct DeviceState*;  // nvmlDevice_t: the library knows what it points to

struct PciInfo {  // nvmlPciInfo_t, of the functions with _v3 (links: _v2)
  char legacy_address[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char address[32];
};
struct Memory {  // nvmlMemory_t
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct MemoryV2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | 2u << 24;  // nvmlMemory_v2
struct Utilization {                                         // nvmlUtilization_t
  unsigned gpu;                                              // per cent
  unsigned memory;
};
struct ProcessInfo {  // nvmlProcessInfo_v2_t, of the functions with _v2 and _v3
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
struct OldProcessInfo {  // nvmlProcessInfo_v1_t
  unsigned pid;
  unsigned long long memory;
};

}  // namespace hv::nvml
