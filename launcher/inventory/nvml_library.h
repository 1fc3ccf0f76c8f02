// NVML's functions, as they are found in the driver's library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/inventory/nvml_abi.h"

namespace hv::launcher {

// Old drivers lack some of the second group: what they would tell stays unknown.
struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*words_of)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, nvml::Device*) = nullptr;
  int (*pci)(nvml::Device, nvml::PciInfo*) = nullptr;
  int (*uuid)(nvml::Device, char*, unsigned) = nullptr;

  int (*driver)(char*, unsigned) = nullptr;
  int (*by_address)(const char*, nvml::Device*) = nullptr;
  int (*name)(nvml::Device, char*, unsigned) = nullptr;
  int (*minor)(nvml::Device, unsigned*) = nullptr;
  int (*memory)(nvml::Device, nvml::Memory*) = nullptr;
  int (*ecc_errors)(nvml::Device, int, int, unsigned long long*) = nullptr;
  int (*pages_pending)(nvml::Device, int*) = nullptr;
  int (*remapped_rows)(nvml::Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  int (*link_state)(nvml::Device, unsigned, int*) = nullptr;
  int (*link_far_end)(nvml::Device, unsigned, nvml::PciInfo*) = nullptr;
  int (*link_type)(nvml::Device, unsigned, int*) = nullptr;
  int (*mig_mode)(nvml::Device, unsigned*, unsigned*) = nullptr;
  int (*mig_count)(nvml::Device, unsigned*) = nullptr;
  int (*mig_by_index)(nvml::Device, unsigned, nvml::Device*) = nullptr;
  int (*gpu_instance)(nvml::Device, unsigned*) = nullptr;
  int (*compute_instance)(nvml::Device, unsigned*) = nullptr;
  int (*cuda)(int*) = nullptr;
  int (*memory_v2)(nvml::Device, nvml::MemoryV2*) = nullptr;
  int (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
  int (*processes)(nvml::Device, unsigned*, nvml::ProcessInfo*) = nullptr;
  int (*old_processes)(nvml::Device, unsigned*, nvml::OldProcessInfo*) = nullptr;
  int (*persistence)(nvml::Device, int*) = nullptr;
  int (*ecc_mode)(nvml::Device, int*, int*) = nullptr;
  int (*compute_mode)(nvml::Device, int*) = nullptr;
  int (*slowdowns)(nvml::Device, unsigned long long*) = nullptr;
  int (*pcie_width)(nvml::Device, unsigned*) = nullptr;
  int (*most_pcie_width)(nvml::Device, unsigned*) = nullptr;
  int (*pcie_generation)(nvml::Device, unsigned*) = nullptr;
  int (*most_pcie_generation)(nvml::Device, unsigned*) = nullptr;
  int (*peer_status)(nvml::Device, nvml::Device, int, int*) = nullptr;

  // The name of a function that it cannot do without, and that is not there; "": all are.
  std::string find(void* library);
};

}  // namespace hv::launcher
