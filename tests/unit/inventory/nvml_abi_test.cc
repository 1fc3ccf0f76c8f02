// Holds what is declared of NVML's interface against its own header, where that is installed.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/nvml_abi.h"

#include <doctest/doctest.h>

#if __has_include(<nvml.h>)
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include <cstddef>
#include <type_traits>

#include "tests/unit/called_alike.h"

using namespace hv::nvml;

namespace {

template <class Ours, class Own>
constexpr bool is_alike() {
  return hv::CalledAlike<nvmlReturn_t, std::remove_pointer_t<Own>,
                         std::remove_pointer_t<Ours>>::value;
}

}  // namespace

TEST_CASE("NVML's types and numbers are declared as in its header") {
  CHECK(sizeof(PciInfo) == sizeof(nvmlPciInfo_t));
  CHECK(offsetof(PciInfo, domain) == offsetof(nvmlPciInfo_t, domain));
  CHECK(offsetof(PciInfo, bus) == offsetof(nvmlPciInfo_t, bus));
  CHECK(offsetof(PciInfo, device) == offsetof(nvmlPciInfo_t, device));
  CHECK(offsetof(PciInfo, address) == offsetof(nvmlPciInfo_t, busId));
  CHECK(sizeof(Memory) == sizeof(nvmlMemory_t));
  CHECK(offsetof(Memory, total) == offsetof(nvmlMemory_t, total));
  CHECK(sizeof(MemoryV2) == sizeof(nvmlMemory_v2_t));
  CHECK(offsetof(MemoryV2, reserved) == offsetof(nvmlMemory_v2_t, reserved));
  CHECK(offsetof(MemoryV2, free) == offsetof(nvmlMemory_v2_t, free));
  CHECK(sizeof(Utilization) == sizeof(nvmlUtilization_t));
  CHECK(offsetof(Utilization, gpu) == offsetof(nvmlUtilization_t, gpu));
  CHECK(sizeof(ProcessInfo) == sizeof(nvmlProcessInfo_v2_t));
  CHECK(offsetof(ProcessInfo, memory) == offsetof(nvmlProcessInfo_v2_t, usedGpuMemory));
  CHECK(sizeof(OldProcessInfo) == sizeof(nvmlProcessInfo_v1_t));
  CHECK(offsetof(OldProcessInfo, memory) == offsetof(nvmlProcessInfo_v1_t, usedGpuMemory));
  CHECK(sizeof(nvmlComputeMode_t) == sizeof(int));
  CHECK(sizeof(nvmlGpuP2PCapsIndex_t) == sizeof(int));
  CHECK(sizeof(nvmlGpuP2PStatus_t) == sizeof(int));
  CHECK(sizeof(Device) == sizeof(nvmlDevice_t));
  CHECK(sizeof(nvmlReturn_t) == sizeof(int));
  CHECK(sizeof(nvmlEnableState_t) == sizeof(int));
  CHECK(sizeof(nvmlIntNvLinkDeviceType_t) == sizeof(int));
  const int results[][2] = {{kSuccess, NVML_SUCCESS},
                            {kNotSupported, NVML_ERROR_NOT_SUPPORTED},
                            {kNotFound, NVML_ERROR_NOT_FOUND},
                            {kGpuIsLost, NVML_ERROR_GPU_IS_LOST},
                            {kResetRequired, NVML_ERROR_RESET_REQUIRED},
                            {kUncorrected, NVML_MEMORY_ERROR_TYPE_UNCORRECTED},
                            {kVolatile, NVML_VOLATILE_ECC},
                            {kAggregate, NVML_AGGREGATE_ECC},
                            {kLinkToSwitch, NVML_NVLINK_DEVICE_TYPE_SWITCH},
                            {kUuidBytes, NVML_DEVICE_UUID_V2_BUFFER_SIZE},
                            {kNameBytes, NVML_DEVICE_NAME_V2_BUFFER_SIZE},
                            {kTooSmall, NVML_ERROR_INSUFFICIENT_SIZE},
                            {kProhibited, NVML_COMPUTEMODE_PROHIBITED},
                            {kExclusive, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS},
                            {kPeerRead, NVML_P2P_CAPS_INDEX_READ},
                            {kPeerWrite, NVML_P2P_CAPS_INDEX_WRITE},
                            {0, NVML_P2P_STATUS_OK},
                            {1, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED},
                            {2, NVML_P2P_STATUS_GPU_NOT_SUPPORTED},
                            {3, NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED},
                            {4, NVML_P2P_STATUS_DISABLED_BY_REGKEY},
                            {kPeerUnknown, NVML_P2P_STATUS_UNKNOWN},
                            {kVersionBytes, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE}};
  for (const auto& [ours, own] : results) CHECK(ours == own);
  CHECK(kMemoryV2 == nvmlMemory_v2);
  CHECK(kNotTold == static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE));
  CHECK(kSlowdown == nvmlClocksThrottleReasonHwSlowdown);
  CHECK(kHeat == nvmlClocksThrottleReasonHwThermalSlowdown);
  CHECK(kPowerBrake == nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
  CHECK(kMostLinks >= NVML_NVLINK_MAX_LINKS);
}

TEST_CASE("NVML's functions are called as its header declares them") {
  using Number = int (*)(Device, unsigned*);
  using Text = int (*)(Device, char*, unsigned);
  using State = int (*)(Device, unsigned, int*);
  CHECK(is_alike<int (*)(), decltype(&nvmlInit_v2)>());
  CHECK(is_alike<int (*)(unsigned*), decltype(&nvmlDeviceGetCount_v2)>());
  CHECK(is_alike<int (*)(unsigned, Device*), decltype(&nvmlDeviceGetHandleByIndex_v2)>());
  CHECK(is_alike<int (*)(const char*, Device*), decltype(&nvmlDeviceGetHandleByPciBusId_v2)>());
  CHECK(is_alike<int (*)(Device, PciInfo*), decltype(&nvmlDeviceGetPciInfo_v3)>());
  CHECK(is_alike<Text, decltype(&nvmlDeviceGetUUID)>());
  CHECK(is_alike<Text, decltype(&nvmlDeviceGetName)>());
  CHECK(is_alike<int (*)(char*, unsigned), decltype(&nvmlSystemGetDriverVersion)>());
  CHECK(is_alike<Number, decltype(&nvmlDeviceGetMinorNumber)>());
  CHECK(is_alike<int (*)(Device, Memory*), decltype(&nvmlDeviceGetMemoryInfo)>());
  CHECK(is_alike<int (*)(Device, int, int, unsigned long long*),
                 decltype(&nvmlDeviceGetTotalEccErrors)>());
  CHECK(is_alike<int (*)(Device, int*), decltype(&nvmlDeviceGetRetiredPagesPendingStatus)>());
  CHECK(is_alike<int (*)(Device, unsigned*, unsigned*, unsigned*, unsigned*),
                 decltype(&nvmlDeviceGetRemappedRows)>());
  CHECK(is_alike<State, decltype(&nvmlDeviceGetNvLinkState)>());
  CHECK(is_alike<State, decltype(&nvmlDeviceGetNvLinkRemoteDeviceType)>());
  CHECK(is_alike<int (*)(Device, unsigned, PciInfo*),
                 decltype(&nvmlDeviceGetNvLinkRemotePciInfo_v2)>());
  CHECK(is_alike<int (*)(Device, unsigned*, unsigned*), decltype(&nvmlDeviceGetMigMode)>());
  CHECK(is_alike<Number, decltype(&nvmlDeviceGetMaxMigDeviceCount)>());
  CHECK(is_alike<int (*)(Device, unsigned, Device*),
                 decltype(&nvmlDeviceGetMigDeviceHandleByIndex)>());
  CHECK(is_alike<Number, decltype(&nvmlDeviceGetGpuInstanceId)>());
  CHECK(is_alike<Number, decltype(&nvmlDeviceGetComputeInstanceId)>());
}

TEST_CASE("NVML's functions on use, modes and links are called as its header declares them") {
  using Number = int (*)(Device, unsigned*);
  using Mode = int (*)(Device, int*);
  CHECK(is_alike<int (*)(int*), decltype(&nvmlSystemGetCudaDriverVersion_v2)>());
  CHECK(is_alike<int (*)(Device, MemoryV2*), decltype(&nvmlDeviceGetMemoryInfo_v2)>());
  CHECK(is_alike<int (*)(Device, Utilization*), decltype(&nvmlDeviceGetUtilizationRates)>());
  CHECK(is_alike<int (*)(Device, unsigned*, ProcessInfo*),
                 decltype(&nvmlDeviceGetComputeRunningProcesses_v3)>());
  CHECK(is_alike<Mode, decltype(&nvmlDeviceGetPersistenceMode)>());
  CHECK(is_alike<Mode, decltype(&nvmlDeviceGetComputeMode)>());
  CHECK(is_alike<int (*)(Device, int*, int*), decltype(&nvmlDeviceGetEccMode)>());
  CHECK(is_alike<int (*)(Device, unsigned long long*),
                 decltype(&nvmlDeviceGetCurrentClocksEventReasons)>());
  CHECK(is_alike<Number, decltype(&nvmlDeviceGetCurrPcieLinkWidth)>());
  CHECK(is_alike<Number, decltype(&nvmlDeviceGetMaxPcieLinkWidth)>());
  CHECK(is_alike<Number, decltype(&nvmlDeviceGetCurrPcieLinkGeneration)>());
  CHECK(is_alike<Number, decltype(&nvmlDeviceGetMaxPcieLinkGeneration)>());
  CHECK(is_alike<int (*)(Device, Device, int, int*), decltype(&nvmlDeviceGetP2PStatus)>());
}

#endif
