// SPDX-License-Identifier: Apache-2.0
#include "src/wire/message_type.h"

#include <algorithm>
#include <iterator>

namespace hv::wire {
namespace {

constexpr struct {
  Type type;
  const char* name;
} kNames[] = {
    {Type::kHello, "Hello"},
    {Type::kSetupRequest, "SetupRequest"},
    {Type::kSetupReply, "SetupReply"},
    {Type::kProbeRequest, "ProbeRequest"},
    {Type::kProbeReply, "ProbeReply"},
    {Type::kLaunch, "Launch"},
    {Type::kReady, "Ready"},
    {Type::kProblem, "Problem"},
    {Type::kGo, "Go"},
    {Type::kStarted, "Started"},
    {Type::kInventoryRequest, "InventoryRequest"},
    {Type::kInventoryReply, "InventoryReply"},
    {Type::kWiringRequest, "WiringRequest"},
    {Type::kWiringReply, "WiringReply"},
    {Type::kCheckRequest, "CheckRequest"},
    {Type::kCheckReply, "CheckReply"},
    {Type::kPairRequest, "PairRequest"},
    {Type::kPairReply, "PairReply"},
    {Type::kOutput, "Output"},
    {Type::kCredit, "Credit"},
    {Type::kExited, "Exited"},
    {Type::kSignal, "Signal"},
    {Type::kPause, "Pause"},
    {Type::kStdin, "Stdin"},
    {Type::kEnd, "End"},
    {Type::kEmpty, "Empty"},
    {Type::kQuery, "Query"},
    {Type::kQueryReply, "QueryReply"},
    {Type::kWindowSize, "WindowSize"},
    {Type::kResult, "Result"},
    {Type::kFenceIn, "FenceIn"},
    {Type::kFenceOut, "FenceOut"},
    {Type::kRankLost, "RankLost"},
    {Type::kRankDied, "RankDied"},
    {Type::kPing, "Ping"},
    {Type::kPong, "Pong"},
    {Type::kNote, "Note"},
    {Type::kFenceStalled, "FenceStalled"},
    {Type::kSilence, "Silence"},
    {Type::kSilenceNoted, "SilenceNoted"},
    {Type::kMpiMissed, "MpiMissed"},
    {Type::kMpiBegun, "MpiBegun"},
    {Type::kStackRequest, "StackRequest"},
    {Type::kStackReply, "StackReply"},
    {Type::kTensorStalled, "TensorStalled"},
    {Type::kCallStalled, "CallStalled"},
    {Type::kStepsRequest, "StepsRequest"},
    {Type::kStepsReply, "StepsReply"},
    {Type::kGraceAfterSignal, "GraceAfterSignal"},
};

}  // namespace

std::string name_of(std::uint8_t type) {
  const auto* const found =
      std::find_if(std::begin(kNames), std::end(kNames),
                   [type](const auto& row) { return static_cast<std::uint8_t>(row.type) == type; });
  return found == std::end(kNames) ? "message type " + std::to_string(type) : found->name;
}

}  // namespace hv::wire
