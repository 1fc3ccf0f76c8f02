// RankProcess: one rank that rank_starter.h has started: its process, its streams, how it ended.
// SPDX-License-Identifier: Apache-2.0
//
// Its streams may outlive the process: other processes may hold them open.
#pragma once

#include <sys/types.h>

#include <bitset>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "launcher/agent/ranks/input_pump.h"
#include "launcher/agent/ranks/output_pump.h"
#include "launcher/agent/ranks/rank_ending.h"
#include "src/base/unique_fd.h"
#include "src/process/exit_status.h"

namespace hv::launcher {

struct RankProcess {
  std::uint32_t rank = 0;
  pid_t pid = -1;
  std::optional<ExitStatus> ended;
  std::optional<int> aborts_with;  // the rank asked to be killed, with that exit code
  std::bitset<NSIG> signals_sent;  // by this agent; death by one of them is no failure
  RankEnding ending{};
  bool may_hold_text = false;       // held_text.h; as last polled
  std::uint64_t credit = 0;         // for output
  std::uint64_t result_credit = 0;  // for Results
  std::vector<std::unique_ptr<OutputPump>> outputs;
  std::unique_ptr<InputPump> input;
  // The rank's side of its terminal (--pty), held open while the rank runs: a program that closes
  // its streams and goes on would get SIGHUP.
  UniqueFd held_terminal;

  bool is_running() const { return pid > 0 && !ended; }
  // The end to report: after an abort the requested exit code, not the agent's SIGKILL.
  ExitStatus end_of(const ExitStatus& status) const {
    return aborts_with && status.by_signal ? ExitStatus{false, *aborts_with} : status;
  }
  void note_end(const ExitStatus& status) {
    ended = status;
    held_terminal.reset();
  }
  bool has_open_streams() const {
    for (const auto& output : outputs) {
      if (!output->has_ended()) return true;
    }
    return false;
  }
  void poll_streams() {
    for (const auto& output : outputs) output->poll();
  }
  void poll_held_streams() {
    for (const auto& output : outputs) output->poll_if_held();
  }
};

}  // namespace hv::launcher
