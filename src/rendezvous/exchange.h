// Exchange: how ranks that another launcher has started (srun, mpirun) tell each other who they
// are.
// SPDX-License-Identifier: Apache-2.0
//
// One for each way there is: PMI (pmi_exchange.h), PMIx (below), and, where there is neither, TCP
// (star_exchange.h). Calls block; one thread at a time, and every rank calls gather() as often as
// every other.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/net/port_range.h"

namespace hv {

// How long ranks wait for each other, and after how long those that are missing are named (0:
// never).
struct WaitLimits {
  std::chrono::milliseconds timeout;
  std::chrono::milliseconds stall{0};
};

// What an exchange is opened with.
struct MeetingTerms {
  WaitLimits limits;
  PortRange ports{};  // where ranks may listen
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Gives every rank what each of them has, by rank. Nobody else can read it.
  virtual Status gather(const std::string& mine, const WaitLimits& limits,
                        std::vector<std::string>* all) = 0;
};

// Exchange by PMIx: srun --mpi=pmix, OpenMPI's mpirun, PRRTE. libpmix is opened at run time, and
// one that is there already is taken: two of them in one process would be two clients.
// prefix: where the launcher's own is installed, as PMIX_PREFIX tells; else, or "", the one that
// the system's loader finds. Under a launcher that speaks PMIx (PMIX_NAMESPACE is set).
Status open_pmix(const std::string& prefix, std::unique_ptr<Exchange>* exchange);

}  // namespace hv
