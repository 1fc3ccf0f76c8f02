// How MPI programs that hvrun starts are told of each other, and what PMI is told of the hosts.
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/plan/common_environment.h"
#include "src/base/environment.h"

namespace hv::launcher {

// What each rank gets; an MPI takes the one that it knows: Open MPI PMIx, MPICH PMI-1.
struct MpiWires {
  bool pmix = false;
  bool pmi = false;
};

// By itself: where HVRUN_BACKEND names mpi, for the MPI that HVRUN_MPI names, else for both.
MpiWires mpi_wires(WireMpi wanted, const CommonEnvironment& environment);

// --mpi: exports HVRUN_BACKEND with mpi first, to all ranks, unless it names mpi already. own:
// hvrun's environment. Returns a warning for each list of the user's that this changes.
std::vector<std::string> put_mpi_first(const Environment& own, JobSpec* spec);

// "(vector,(0,2,4))": PMI_process_mapping, in blocks of (first host, hosts, ranks of each); what is
// said is repeated until every rank has its host. Empty where that takes more letters than PMI has.
std::string pmi_mapping(const std::vector<int>& host_of_rank);

}  // namespace hv::launcher
