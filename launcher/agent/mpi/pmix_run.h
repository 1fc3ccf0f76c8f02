// PmixRun: hvrun-pmix on this host: started, given the job, used while ranks run, and let go when
// they are gone.
// SPDX-License-Identifier: Apache-2.0
//
//   starting -> ready -> let go
// Until it is ready, a failure of any kind is an answer in text. Afterwards its end is reported,
// and the ranks go on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/helper_program.h"
#include "launcher/agent/mpi/pmix_process.h"
#include "launcher/agent/mpi/pmix_rendezvous.h"
#include "src/base/environment.h"
#include "src/contract/rank_environment.h"
#include "src/process/exit_status.h"
#include "src/wire/frame.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {

struct PmixCallbacks {
  std::function<void(const wire::WiringReply&)> on_ready;  // once, from the loop
  std::function<void(const wire::FenceIn&)> on_fence;
  std::function<void(const std::string& text)> on_loss;  // it ended while ranks may need it
  std::function<void()> on_change;  // a rank may have begun, or ceased, to wait for others
};

class PmixRun {
 public:
  // programs: the directory that may hold hvrun-pmix.
  PmixRun(EventLoop& loop, const Environment& environment, const std::string& programs,
          const wire::WiringRequest& request, PmixCallbacks callbacks);
  // Kills what still runs.
  ~PmixRun();
  PmixRun(const PmixRun&) = delete;
  PmixRun& operator=(const PmixRun&) = delete;

  // Empty until one was made; the guard removes it where this agent cannot.
  const std::string& directory() const { return directory_.path(); }
  // A child of the agent has been reaped. True: it was this one.
  bool child_ended(pid_t pid, const ExitStatus& status) {
    return process_.child_ended(pid, status);
  }
  void pass(const wire::FenceOut& out);
  // The rank's process was reaped; what hvrun-pmix had reported of the rank before is read first.
  wire::MpiEnd rank_ended(std::uint32_t rank);
  const PmixRendezvous& rendezvous() const { return rendezvous_; }
  // Adds what that rank needs in its environment.
  void prepare(std::uint32_t rank, RankEnvironment* environment) const;
  // Hangs up: hvrun-pmix ends then.
  void let_go();

 private:
  enum class State { kStarting, kReady, kLetGo };

  void start(const Environment& environment, const std::string& programs,
             const wire::WiringRequest& request);
  bool handle(const Frame& frame);
  void accept(wire::PmixReady ready);
  void report_if_lost();
  void fail(const std::string& problem, const std::string& hint = {});
  void answer(wire::WiringReply reply);

  EventLoop& loop_;
  const PmixCallbacks callbacks_;
  const std::uint32_t host_;
  PrivateDirectory directory_;
  PmixProcess process_;
  PmixRendezvous rendezvous_;
  State state_ = State::kStarting;
  EventLoop::Timer deadline_{};
  EventLoop::Timer answer_{};
  std::map<std::uint32_t, wire::Pairs> variables_;
  wire::Pairs defaults_;
};

}  // namespace hv::launcher
