// Exchange by PMIx: srun --mpi=pmix, OpenMPI's mpirun, PRRTE. libpmix is opened at run time, and
// one that is there already is taken: two of them in one process would be two clients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "src/rendezvous/exchange.h"

namespace hv {

// library: "" for libpmix.so.2 where the system's loader finds it. Under a launcher that speaks
// PMIx (PMIX_NAMESPACE is set).
Status open_pmix(const std::string& library, std::unique_ptr<Exchange>* exchange);

}  // namespace hv
