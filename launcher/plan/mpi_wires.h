// Which interfaces MPI programs find each other by, and how PMI describes the hosts. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/plan/common_environment.h"

namespace hv::launcher {

// The interfaces that each rank gets. Open MPI uses PMIx, MPICH PMI-1.
struct MpiWires {
  bool pmix = false;
  bool pmi = false;
};

// kAuto: where HVRUN_BACKEND names mpi, for the MPI that HVRUN_MPI names, else for both.
MpiWires mpi_wires(WireMpi requested, const CommonEnvironment& environment);

// --mpi: puts mpi first in every rank's HVRUN_BACKEND, unless that names mpi already. Returns a
// warning for each list of the user's that this changes.
std::vector<std::string> put_mpi_first(CommonEnvironment* environment);

// PMI_process_mapping, "(vector,(0,2,4))": blocks of (first host, hosts, ranks on each), which
// readers repeat until every rank has its host. Empty where the text exceeds PMI's limit.
std::string pmi_mapping(const std::vector<int>& host_of_rank);

}  // namespace hv::launcher
