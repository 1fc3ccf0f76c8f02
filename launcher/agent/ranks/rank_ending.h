// RankEnding: what the end of the job has done to one rank so far. Pure: JobEnding
// (launcher/agent/ending/job_ending.h) reads /proc, asks, and acts.
// SPDX-License-Identifier: Apache-2.0
//
//   running -> program signalled -> wrapper alone -> signalled     its own process is a wrapper
//   running -> signalled
//   each of these -> ended
//
//   running            has got nothing yet
//   program signalled  descendants have got SIGTERM in place of the rank's own process
//   wrapper alone      they have ended; the rank's own process has kWrapperTime to end, too: what
//                      it does last, such as an `echo` after the program, is part of the rank
//   signalled          the rank's own process has got SIGTERM, perhaps after its program: it may
//                      run the next one otherwise
//   ended              the rank's own process has ended; what it leaves behind is leftovers.h's
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "launcher/facts/process_table.h"
#include "src/base/clock.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class RankEnding {
 public:
  enum class State : std::uint8_t {
    kRunning,
    kProgramSignalled,
    kWrapperAlone,
    kSignalled,
    kEnded
  };
  static constexpr auto kWrapperTime = std::chrono::milliseconds(500);

  // SIGTERM has gone to these descendants, or, with none, to the rank's own process. own_use: what
  // that does with the signal.
  void begin(wire::SigtermUse own_use, std::vector<ProcessEntry> descendants);
  // Call at intervals while awaits_program(). True: the rank's own process gets SIGTERM now.
  bool advance(TimePoint at, const std::function<bool(const ProcessEntry&)>& still_runs);
  // The rank's own process has ended. True: this is the first call.
  bool end();
  // The grace is over, and the rank's own process gets SIGKILL.
  void note_kill(Duration grace) { killed_after_ = grace; }

  State state() const { return state_; }
  bool awaits_program() const {
    return state_ == State::kProgramSignalled || state_ == State::kWrapperAlone;
  }
  wire::SigtermUse use() const { return use_; }
  Duration killed_after() const { return killed_after_; }  // 0: not killed

 private:
  State state_ = State::kRunning;
  wire::SigtermUse own_use_ = wire::SigtermUse::kDefault;
  wire::SigtermUse use_ = wire::SigtermUse::kDefault;
  std::vector<ProcessEntry> program_;
  TimePoint alone_since_{};
  Duration killed_after_{};
};

}  // namespace hv::launcher
