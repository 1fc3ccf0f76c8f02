// What of NVML's interface is called: the layout of its types, so that no header of it is needed. A
// unit test compares these with nvml.h where that is installed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hv::nvml {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
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

}  // namespace hv::nvml
