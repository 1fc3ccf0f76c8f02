// Kubernetes' MPI operator: the launcher's pod has the hostfile in the variables of whichever MPI
// the job names.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "launcher/allocation/hostfile.h"
#include "launcher/allocation/scheduler.h"

namespace hv::launcher {
namespace {

// Of OpenMPI 4, OpenMPI 5, Intel's MPI and MPICH.
constexpr std::array kHostfiles{"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
                                "I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE"};

}  // namespace

std::optional<HostList> hosts_of_mpi_operator(const Environment& environment,
                                              const ReadFile& read) {
  // Outside of a pod these variables are somebody's configuration of MPI, not ours.
  if (!environment.has("KUBERNETES_SERVICE_HOST")) return std::nullopt;
  const auto found = std::find_if(kHostfiles.begin(), kHostfiles.end(),
                                  [&](const char* name) { return environment.has(name); });
  if (found == kHostfiles.end()) return std::nullopt;
  const std::string file = *environment.get(*found);
  return parse_hostfile(read(file, std::string("$") + *found), file);
}

}  // namespace hv::launcher
