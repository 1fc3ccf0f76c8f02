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
                            {kVersionBytes, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE}};
  for (const auto& [ours, own] : results) CHECK(ours == own);
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

#endif
