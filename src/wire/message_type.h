// The numbers of the messages between hvrun and its agents (messages.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace hv::wire {

enum class Type : std::uint8_t {
  kHello = 1,
  kSetupRequest,
  kSetupReply,
  kProbeRequest,
  kProbeReply,
  kLaunch,
  kReady,
  kProblem,
  kGo,
  kStarted,
  kInventoryRequest,
  kInventoryReply,
  kWiringRequest,  // mpi_wiring.h
  kWiringReply,
  kCheckRequest,  // check.h
  kCheckReply,
  kPairRequest,
  kPairReply,
  kOutput = 20,
  kCredit,
  kExited,
  kSignal,
  kPause,
  kStdin,
  kEnd,
  kEmpty,
  kQuery,
  kQueryReply,
  kWindowSize,
  kResult,
  kFenceIn = 40,
  kFenceOut,
  kRankLost,
  kRankDied,
  kPing,
  kPong,
  kNote,
  kFenceStalled,
  kSilence,
  kSilenceNoted,
  kMpiMissed,
  kMpiBegun,
  kStackRequest,  // stacks.h
  kStackReply,
  kTensorStalled,
  kStepsRequest,
  kStepsReply,
  kGraceAfterSignal,
  kCallStalled,  // stacks.h
};

// "Hello"; "message type 200" for what is none.
std::string name_of(std::uint8_t type);

}  // namespace hv::wire
