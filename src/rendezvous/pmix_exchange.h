// Exchange by PMIx: srun --mpi=pmix, OpenMPI's mpirun, PRRTE. libpmix is opened at run time, and
// one that is there already is taken: two of them in one process would be two clients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "src/rendezvous/exchange.h"

namespace hv {

// prefix: where the launcher's own is installed, as PMIX_PREFIX tells; else, or "", the one that
// the system's loader finds. Under a launcher that speaks PMIx (PMIX_NAMESPACE is set).
Status open_pmix(const std::string& prefix, std::unique_ptr<Exchange>* exchange);

}  // namespace hv
