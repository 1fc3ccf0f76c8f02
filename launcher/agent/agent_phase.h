// AgentPhase: how far an agent has come with its host's part of a job, which message of hvrun it
// takes when, and why it leaves. Pure.
// SPDX-License-Identifier: Apache-2.0
//
//   greeted -> set up -> ready -> starting -> running -> ending -> ended -> leaving
//                                     \________________/   both lead to ending; running to ended
//   greeted, set up, ready -> leaving        nothing of the job runs yet
//   greeted -> sweeping -> leaving           a fresh agent that only ends what a lost one left
//
// An agent leaves for a reason (LeaveReason), and only once nothing of the job runs: until then the
// reason is set and the phase is starting, running, ending, ended or sweeping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/wire/message_type.h"

namespace hv::launcher {

enum class AgentPhase : std::uint8_t {
  kGreeted,   // Hello is sent
  kSetUp,     // the job is known, and the host is ready for it
  kReady,     // the ranks' programs are found
  kStarting,  // ranks are being started
  kRunning,   // all ranks were started
  kEnding,    // running processes get SIGTERM, later SIGKILL
  kEnded,     // nothing of the job runs; output may still have to be sent, and End is awaited
  kSweeping,  // processes that a lost agent of this job left are being killed
  kLeaving,   // Empty is sent unless hvrun or the guard is lost; the agent exits once it is flushed
};
constexpr std::size_t kAgentPhases = 9;

// Events that may change the phase.
enum class AgentEvent : std::uint8_t {
  kHostSetUp,         // SetupRequest
  kSweepBegun,        // SetupRequest that only asks for a sweep
  kProgramsFound,     // Launch
  kStartBegun,        // Go
  kAllStarted,        // the last rank was started
  kEndBegun,          // End, a reason to leave, a failed start, or ranks left processes behind
  kNothingRuns,       // every child was reaped, or the rest cannot be killed
  kNothingToWaitFor,  // there is a reason to leave, and nothing runs, is read or is swept any more
};
constexpr std::size_t kAgentEvents = 8;

// The phase after that event; nothing: it cannot happen in this phase.
std::optional<AgentPhase> next_phase(AgentPhase phase, AgentEvent event);

// hvrun may send that message while the agent is in this phase. Any message of hvrun may still
// arrive while the agent leaves.
bool is_allowed(AgentPhase phase, wire::Type type);

// The message requests new work. An agent that has a reason to leave ignores it.
bool begins_work(wire::Type type);

// True while processes of the job may run on this host.
bool has_processes(AgentPhase phase);

// Why an agent leaves, in ascending precedence.
enum class LeaveReason : std::uint8_t {
  kEndRequested,  // hvrun said End
  kSwept,         // the sweep is over
  kSignal,        // a signal from this host ended the agent
  kHvrunLost,     // no connection, a broken one, or no heartbeat: Empty would not arrive
  kGuardLost,     // the guard is gone: no Empty, so that hvrun counts this host as lost
};

// The reason of higher precedence.
LeaveReason combine(std::optional<LeaveReason> before, LeaveReason reason);
// The agent's exit code: 1 where hvrun lost this host.
int exit_code_of(LeaveReason reason);

}  // namespace hv::launcher
