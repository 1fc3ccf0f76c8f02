// In which order HVRUN_BACKEND's list has backends asked, by where a tensor lies. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/collective/collective.h"

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

// Who carries out which operation where, as a table for people: what make_backends() would choose.
struct CarrierQuestion {
  std::vector<std::string> names{};  // HVRUN_BACKEND's, in order
  bool deterministic = false;        // HVRUN_DETERMINISTIC
  enum class Addresses { kNever, kPerhaps, kAlways };
  Addresses of_gpus = Addresses::kPerhaps;  // HVRUN_MPI_CUDA: whether MPI is given them
  // What NCCL carries out on every GPU; empty: hvrun's part for it is not here.
  std::function<bool(const CollectiveRequest&)> nccl{};
};

// Nothing is opened: what stands behind "else" serves where ranks turn out not to have what comes
// before it. Lines, of at most 100 columns. Pure.
std::string carrier_table(const CarrierQuestion& question);

}  // namespace hv::runtime
