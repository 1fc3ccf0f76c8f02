// MpiWiring: connects the MPI of this host's ranks with the other ranks: by PMIx, by PMI-1, by
// both, or not at all.
// SPDX-License-Identifier: Apache-2.0
//
// An MPI uses the protocol that it knows: Open MPI PMIx, MPICH PMI-1.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/mpi/pmi_server.h"
#include "launcher/agent/mpi/pmix_run.h"
#include "launcher/agent/rendezvous/stall_watch.h"
#include "src/base/environment.h"
#include "src/contract/rank_environment.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {

struct MpiCallbacks {
  std::function<void(const wire::FenceIn&)> on_fence;
  // The rank waits to be ended, with that exit code.
  std::function<void(std::uint32_t rank, int code)> on_abort;
  // A note for the user.
  std::function<void(const std::string& text)> on_note;
  std::function<void(const wire::FenceStalled&)> on_stall;
  std::function<void(const wire::MpiMissed&)> on_missed;  // once for each protocol
  std::function<void(const wire::MpiBegun&)> on_begun;    // once for each protocol
};

// How a rank stood in either protocol when its process ended.
struct MpiEnds {
  wire::MpiEnd pmi = wire::MpiEnd::kInOrder;
  wire::MpiEnd pmix = wire::MpiEnd::kInOrder;
};

class MpiWiring {
 public:
  MpiWiring(EventLoop& loop, MpiCallbacks callbacks)
      : loop_(loop), callbacks_(std::move(callbacks)) {}

  // Sets which waits are reported. Call before all other functions.
  void limit_waits(StallLimits limits);
  // hvrun calls it again, with the program, after the answer that the program is missing.
  void start_pmix(const Environment& environment, const wire::WiringRequest& request,
                  std::function<void(const wire::WiringReply&)> on_ready);
  // If this launch requests PMI-1.
  void start_pmi(const wire::Launch& launch, const std::string& job_id);
  // The directory that the agent removes when it leaves; empty: none.
  std::string directory() const { return pmix_ ? pmix_->directory() : std::string(); }

  // Right before the rank is started. passed: a descriptor that the rank inherits, if any.
  Status prepare(std::uint32_t rank, RankEnvironment* environment, UniqueFd* passed);
  // False: the fence does not belong to MPI.
  bool pass(const wire::FenceOut& out);
  MpiEnds rank_ended(std::uint32_t rank);
  bool is_waiting(std::uint32_t rank) const;
  // Ranks that have begun in the protocol with that epoch, while not all of the job have.
  std::vector<std::uint32_t> beginning(std::uint32_t epoch) const;
  // How long ranks have been waiting for others to begin MPI, or later; 0: none waits.
  double seconds_waited_to_begin() const { return beginning_ ? beginning_->seconds_waited() : 0; }
  double seconds_waited_since() const { return later_ ? later_->seconds_waited() : 0; }
  void pause_waits(bool is_paused);
  // A child of the agent has been reaped. True: it was hvrun-pmix.
  bool child_ended(pid_t pid, const ExitStatus& status) {
    return pmix_ && pmix_->child_ended(pid, status);
  }
  // No rank runs any more.
  void let_go();
  // Ends hvrun-pmix and closes all connections; removes the directory.
  void close();

 private:
  void update_waits();
  void report_missing(std::uint32_t epoch, bool is_missing);
  void report_begun(std::uint32_t epoch);

  EventLoop& loop_;
  const MpiCallbacks callbacks_;
  std::unique_ptr<PmixRun> pmix_;
  std::unique_ptr<PmiServer> pmi_;
  std::uint32_t size_ = 0;
  std::optional<StallWatch> beginning_, later_;
  std::set<std::uint32_t> missed_, begun_;  // epochs already reported
};

}  // namespace hv::launcher
