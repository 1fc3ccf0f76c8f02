// PmixProcess: the child that runs hvrun-pmix, with its socket for frames and a pipe for its
// complaints. PmixRun gives the frames their meaning.
// SPDX-License-Identifier: Apache-2.0
//
// The process is over once it was reaped and all that it sent has been read.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "src/base/environment.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/process/exit_status.h"
#include "src/wire/frame.h"
#include "src/wire/messages.h"

namespace hv::launcher {

constexpr char kPmixName[] = "hvrun-pmix";

struct PmixProcessCallbacks {
  std::function<bool(const Frame&)> on_frame;  // false: malformed; the process is hung up on
  std::function<void()> on_over;               // it is over, or may be: see outcome()
};

class PmixProcess {
 public:
  PmixProcess(EventLoop& loop, PmixProcessCallbacks callbacks)
      : loop_(loop), callbacks_(std::move(callbacks)) {}
  // Kills what still runs.
  ~PmixProcess();
  PmixProcess(const PmixProcess&) = delete;
  PmixProcess& operator=(const PmixProcess&) = delete;

  // Once.
  Status start(const std::string& program, const Environment& environment);
  // A process that does not read what is sent is hung up on.
  void send(const std::string& frame);
  // Reads all that the process has sent so far. Call at a rank's end, which may be noticed before
  // frames about that rank have been read.
  void read_last_frames();
  // Closes the socket: hvrun-pmix ends then.
  void hang_up();
  // A process that hangs in the kernel is not waited for.
  void kill();
  // A child of the agent has been reaped. True: it was this one.
  bool child_ended(pid_t pid, const ExitStatus& status);
  // How it ended, for people: "ended with exit code 1: its complaint", once it is over.
  std::optional<std::string> outcome() const;

 private:
  Status spawn(const std::string& program, const Environment& environment, int socket, int pipe);
  void watch_socket(std::uint32_t events);
  // False: there was nothing left to read.
  bool receive();
  void read_complaints();
  void flush();

  EventLoop& loop_;
  const PmixProcessCallbacks callbacks_;
  pid_t pid_ = -1;  // -1: not running, or reaped
  std::optional<ExitStatus> status_;
  UniqueFd socket_, complaint_pipe_;
  FrameParser parser_{wire::kMaxAgentPayload};
  std::string outgoing_;
  std::string complaints_;  // the first ones
};

}  // namespace hv::launcher
