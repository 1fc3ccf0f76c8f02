// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/agent_phase.h"

#include <algorithm>
#include <iterator>

namespace hv::launcher {
namespace {

using wire::Type;

struct Transition {
  AgentPhase from;
  AgentEvent event;
  AgentPhase to;
};

constexpr Transition kTransitions[] = {
    {AgentPhase::kGreeted, AgentEvent::kHostSetUp, AgentPhase::kSetUp},
    {AgentPhase::kGreeted, AgentEvent::kSweepBegun, AgentPhase::kSweeping},
    {AgentPhase::kGreeted, AgentEvent::kNothingToWaitFor, AgentPhase::kLeaving},
    {AgentPhase::kSetUp, AgentEvent::kProgramsFound, AgentPhase::kReady},
    {AgentPhase::kSetUp, AgentEvent::kNothingToWaitFor, AgentPhase::kLeaving},
    {AgentPhase::kReady, AgentEvent::kStartBegun, AgentPhase::kStarting},
    {AgentPhase::kReady, AgentEvent::kNothingToWaitFor, AgentPhase::kLeaving},
    {AgentPhase::kStarting, AgentEvent::kAllStarted, AgentPhase::kRunning},
    {AgentPhase::kStarting, AgentEvent::kEndBegun, AgentPhase::kEnding},
    {AgentPhase::kRunning, AgentEvent::kEndBegun, AgentPhase::kEnding},
    {AgentPhase::kRunning, AgentEvent::kNothingRuns, AgentPhase::kEnded},
    {AgentPhase::kEnding, AgentEvent::kEndBegun, AgentPhase::kEnding},  // with a shorter grace
    {AgentPhase::kEnding, AgentEvent::kNothingRuns, AgentPhase::kEnded},
    {AgentPhase::kEnded, AgentEvent::kNothingToWaitFor, AgentPhase::kLeaving},
    {AgentPhase::kSweeping, AgentEvent::kNothingToWaitFor, AgentPhase::kLeaving},
};

// The phases in which hvrun may send a message.
enum class Window : std::uint8_t {
  kNever,        // the agent's own message, or no message at all
  kAlways,       // also while hvrun still waits for other hosts
  kGreeted,      // once
  kSetUp,        // before the ranks' programs are known
  kReady,        // once
  kFromSetUpOn,  // while the job is known
};

Window window_of(Type type) {
  switch (type) {
    case Type::kPing:
    case Type::kPong:
    case Type::kEnd:
    case Type::kInventoryRequest:
    case Type::kCheckRequest:
    case Type::kSignal:
    case Type::kWindowSize:
    case Type::kPause:
    case Type::kSilence:
    case Type::kGraceAfterSignal:
      return Window::kAlways;
    case Type::kSetupRequest:
      return Window::kGreeted;
    case Type::kProbeRequest:
    case Type::kPairRequest:
    case Type::kWiringRequest:
    case Type::kLaunch:
      return Window::kSetUp;
    case Type::kGo:
      return Window::kReady;
    case Type::kCredit:
    case Type::kStdin:
    case Type::kStackRequest:
    case Type::kQuery:
    case Type::kStepsRequest:
    case Type::kFenceOut:
    case Type::kRankDied:
      return Window::kFromSetUpOn;
    default:
      return Window::kNever;
  }
}

}  // namespace

std::optional<AgentPhase> next_phase(AgentPhase phase, AgentEvent event) {
  const auto found = std::find_if(
      std::begin(kTransitions), std::end(kTransitions),
      [&](const Transition& each) { return each.from == phase && each.event == event; });
  return found == std::end(kTransitions) ? std::nullopt : std::optional(found->to);
}

bool is_allowed(AgentPhase phase, Type type) {
  const Window window = window_of(type);
  if (window == Window::kNever || window == Window::kAlways) return window == Window::kAlways;
  switch (phase) {
    case AgentPhase::kLeaving:
      return true;
    case AgentPhase::kGreeted:
      return window == Window::kGreeted;
    case AgentPhase::kSweeping:
      return false;
    case AgentPhase::kSetUp:
      return window == Window::kSetUp || window == Window::kFromSetUpOn;
    case AgentPhase::kReady:
      return window == Window::kReady || window == Window::kFromSetUpOn;
    case AgentPhase::kStarting:
    case AgentPhase::kRunning:
    case AgentPhase::kEnding:
    case AgentPhase::kEnded:
      return window == Window::kFromSetUpOn;
  }
  return false;
}

bool begins_work(Type type) {
  switch (window_of(type)) {
    case Window::kGreeted:
    case Window::kSetUp:
    case Window::kReady:
      return true;
    default:
      return type == Type::kInventoryRequest || type == Type::kCheckRequest;
  }
}

bool has_processes(AgentPhase phase) {
  return phase == AgentPhase::kStarting || phase == AgentPhase::kRunning ||
         phase == AgentPhase::kEnding;
}

LeaveReason combine(std::optional<LeaveReason> before, LeaveReason reason) {
  return before ? std::max(*before, reason) : reason;
}

int exit_code_of(LeaveReason reason) {
  return reason == LeaveReason::kHvrunLost || reason == LeaveReason::kGuardLost ? 1 : 0;
}

}  // namespace hv::launcher
