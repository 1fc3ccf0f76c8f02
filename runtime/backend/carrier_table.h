// Which backend carries out which operation, as a table for the user: what make_backends() would
// choose.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/collective/collective.h"

namespace hv::runtime {

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
