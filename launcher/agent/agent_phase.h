// AgentPhase: how far an agent has come with its host's part of a job, which message of hvrun it
// takes when, and why it leaves. Pure.
// SPDX-License-Identifier: Apache-2.0
//
//   greeted -> set up -> ready -> starting -> running -> ending -> ended -> leaving
//                                     \________________/   from either, or straight to ended
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
  kEnding,    // what still runs gets SIGTERM, later SIGKILL
  kEnded,     // nothing of the job runs; output may still be on its way, and hvrun's End is awaited
  kSweeping,  // what a lost agent of this job left is being killed
  kLeaving,   // Empty is sent where hvrun still counts on this host; gone once that is flushed
};
constexpr std::size_t kAgentPhases = 9;

// What moves an agent on.
enum class AgentEvent : std::uint8_t {
  kHostSetUp,         // SetupRequest
  kSweepBegun,        // SetupRequest that only asks for a sweep
  kProgramsFound,     // Launch
  kStartBegun,        // Go
  kAllStarted,        // the last rank was started
  kEndBegun,          // of what runs: End, a failed start, ranks that left processes behind, ...
  kNothingRuns,       // every child was reaped, or what is left cannot be ended
  kNothingToWaitFor,  // there is a reason to leave, and nothing runs, is read or is swept any more
};
constexpr std::size_t kAgentEvents = 8;

// The phase after that event; nothing: it cannot happen in this phase.
std::optional<AgentPhase> next_phase(AgentPhase phase, AgentEvent event);

// hvrun may send that message while the agent is in this phase. While the agent leaves, every
// message of hvrun's may still be on its way.
bool is_allowed(AgentPhase phase, wire::Type type);

// The message asks for new work. An agent that has a reason to leave takes it and does nothing.
bool begins_work(wire::Type type);

// Processes of the job may run on this host.
bool has_processes(AgentPhase phase);

// Why an agent leaves, in order of precedence: a later reason replaces an earlier one.
enum class LeaveReason : std::uint8_t {
  kEndRequested,  // hvrun said End
  kSwept,         // the sweep is over
  kSignal,        // a signal from this host ended the agent
  kHvrunLost,     // no connection, a broken one, or no heartbeat: Empty would not arrive
  kGuardLost,     // the guard is gone: no Empty, so that hvrun counts this host as lost
};

// The reason that stands once another one has come up.
LeaveReason combine(std::optional<LeaveReason> before, LeaveReason reason);
// The agent's exit code: 1 where hvrun lost this host.
int exit_code_of(LeaveReason reason);

}  // namespace hv::launcher
