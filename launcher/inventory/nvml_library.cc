// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/nvml_library.h"

#include "src/base/symbol.h"

namespace hv::launcher {

std::string Nvml::find(void* library) {
  std::string missing;
  const auto need = [&](const char* symbol, auto* function) {
    if (!find_function(library, symbol, function) && missing.empty()) missing = symbol;
  };
  const auto want = [&](const char* symbol, auto* function) {
    (void)find_function(library, symbol, function);
  };
  need("nvmlInit_v2", &init);
  need("nvmlShutdown", &shutdown);
  need("nvmlErrorString", &words_of);
  need("nvmlDeviceGetCount_v2", &count);
  need("nvmlDeviceGetHandleByIndex_v2", &by_index);
  need("nvmlDeviceGetPciInfo_v3", &pci);
  need("nvmlDeviceGetUUID", &uuid);
  want("nvmlSystemGetDriverVersion", &driver);
  want("nvmlDeviceGetHandleByPciBusId_v2", &by_address);
  want("nvmlDeviceGetName", &name);
  want("nvmlDeviceGetMinorNumber", &minor);
  want("nvmlDeviceGetMemoryInfo", &memory);
  want("nvmlDeviceGetTotalEccErrors", &ecc_errors);
  want("nvmlDeviceGetRetiredPagesPendingStatus", &pages_pending);
  want("nvmlDeviceGetRemappedRows", &remapped_rows);
  want("nvmlDeviceGetNvLinkState", &link_state);
  want("nvmlDeviceGetNvLinkRemotePciInfo_v2", &link_far_end);
  want("nvmlDeviceGetNvLinkRemoteDeviceType", &link_type);
  want("nvmlDeviceGetMigMode", &mig_mode);
  want("nvmlDeviceGetMaxMigDeviceCount", &mig_count);
  want("nvmlDeviceGetMigDeviceHandleByIndex", &mig_by_index);
  want("nvmlDeviceGetGpuInstanceId", &gpu_instance);
  want("nvmlDeviceGetComputeInstanceId", &compute_instance);
  want("nvmlSystemGetCudaDriverVersion_v2", &cuda);
  want("nvmlDeviceGetMemoryInfo_v2", &memory_v2);
  want("nvmlDeviceGetUtilizationRates", &utilization);
  want("nvmlDeviceGetComputeRunningProcesses_v3", &processes);
  if (processes == nullptr) want("nvmlDeviceGetComputeRunningProcesses_v2", &processes);
  want("nvmlDeviceGetComputeRunningProcesses", &old_processes);
  want("nvmlDeviceGetPersistenceMode", &persistence);
  want("nvmlDeviceGetEccMode", &ecc_mode);
  want("nvmlDeviceGetComputeMode", &compute_mode);
  want("nvmlDeviceGetCurrentClocksThrottleReasons", &slowdowns);  // its older name
  if (slowdowns == nullptr) want("nvmlDeviceGetCurrentClocksEventReasons", &slowdowns);
  want("nvmlDeviceGetCurrPcieLinkWidth", &pcie_width);
  want("nvmlDeviceGetMaxPcieLinkWidth", &most_pcie_width);
  want("nvmlDeviceGetCurrPcieLinkGeneration", &pcie_generation);
  want("nvmlDeviceGetMaxPcieLinkGeneration", &most_pcie_generation);
  want("nvmlDeviceGetP2PStatus", &peer_status);
  return missing;
}

}  // namespace hv::launcher
