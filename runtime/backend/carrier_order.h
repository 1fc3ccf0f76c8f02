// In which order HVRUN_BACKEND's list has backends asked, by where a tensor lies. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace hv::runtime {

// How what lies in a GPU's memory can be carried out.
enum class GpuWay {
  kNccl,       // by the plugin for GPUs
  kAddresses,  // by an MPI that is aware of CUDA, which takes the GPU's addresses
  kStaged,     // through the host's memory, by the first that carries it out there
};

struct CarrierOrder {
  std::vector<std::string> of_host;  // "mpi", "native"
  std::vector<GpuWay> of_gpus;
};

// The list's own order. For GPUs' memory nccl is NCCL, mpi the GPU's addresses, and native the way
// through the host's memory, which comes last where native is not named. What stands behind native
// is not there: native carries out all that anybody does. names: nccl, mpi and native; none: nccl,
// native.
CarrierOrder carrier_order(std::vector<std::string> names);

// NCCL is named, and never asked.
bool is_nccl_idle(const std::vector<std::string>& names);

}  // namespace hv::runtime
