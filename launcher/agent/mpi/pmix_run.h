// hvrun-pmix as a child of the agent: started, told of the job, spoken with while ranks run, and
// let go when they are gone.
// SPDX-License-Identifier: Apache-2.0
//
//   starting -> ready -> let go        until it is ready whatever becomes of it is an answer in
//                                      words; afterwards its end is told, and the ranks go on
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/helper_program.h"
#include "launcher/agent/mpi/pmix_meeting.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"
#include "src/process/exit_status.h"
#include "src/wire/frame.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {

struct PmixCallbacks {
  std::function<void(const wire::WiringReply&)> on_ready;  // once, from the loop
  std::function<void(const wire::FenceIn&)> on_fence;
  std::function<void(const std::string& words)> on_loss;  // it ended while ranks may need it
  std::function<void()> on_change;                        // of who waits for whom
};

class PmixRun {
 public:
  // programs: the folder where hvrun-pmix may lie.
  PmixRun(EventLoop& loop, const Environment& environment, const std::string& programs,
          const wire::WiringRequest& request, std::uint32_t host, PmixCallbacks callbacks);
  // Kills what still runs.
  ~PmixRun();
  PmixRun(const PmixRun&) = delete;
  PmixRun& operator=(const PmixRun&) = delete;

  // Empty until one was made; whoever outlives this agent removes it.
  const std::string& folder() const { return folder_.path(); }
  // A child of this process has been reaped. True: it was this one.
  bool child_ended(pid_t pid, const ExitStatus& status);
  void pass(const wire::FenceOut& out);
  // The rank's process was reaped; what the rank had told before is heard first.
  wire::MpiEnd rank_ended(std::uint32_t rank);
  const PmixMeeting& meeting() const { return meeting_; }
  // Sets what that rank is to be born with.
  void prepare(std::uint32_t rank, Environment* environment) const;
  // Hangs up: it ends by itself.
  void let_go();

 private:
  void start(const Environment& environment, const std::string& programs,
             const wire::WiringRequest& request);
  Status spawn(const std::string& program, const Environment& environment);
  void watch_socket(std::uint32_t events);
  // False: nothing was there to read any more.
  bool receive();
  void hear_complaints();
  bool handle(const Frame& frame);
  void take(wire::PmixReady ready);
  void send(const std::string& frame);
  void flush();
  void hang_up();
  void look_if_lost();
  void fail(const std::string& problem, const std::string& hint = {});
  void answer(wire::WiringReply reply);
  void kill();

  EventLoop& loop_;
  const PmixCallbacks callbacks_;
  const std::uint32_t host_;
  PrivateFolder folder_;
  pid_t pid_ = -1;  // -1: not running, or reaped
  std::optional<ExitStatus> status_;
  UniqueFd socket_, complaints_;
  FrameParser parser_{wire::kMaxAgentPayload};
  PmixMeeting meeting_;
  std::string outgoing_;
  std::string words_;  // its first complaints
  bool has_answered_ = false;
  bool is_let_go_ = false;
  EventLoop::Timer deadline_{};
  EventLoop::Timer answer_{};
  std::map<std::uint32_t, wire::Pairs> variables_;
  wire::Pairs defaults_;
};

}  // namespace hv::launcher
