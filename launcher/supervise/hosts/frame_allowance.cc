// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/frame_allowance.h"

#include <algorithm>

namespace hv::launcher {
namespace {

using wire::Type;

struct Exchange {
  Type answer;
  Type request;
};
constexpr Exchange kExchanges[] = {
    {Type::kSetupReply, Type::kSetupRequest},
    {Type::kReady, Type::kLaunch},
    {Type::kStarted, Type::kGo},
    {Type::kProbeReply, Type::kProbeRequest},
    {Type::kInventoryReply, Type::kInventoryRequest},
    {Type::kWiringReply, Type::kWiringRequest},
    {Type::kCheckReply, Type::kCheckRequest},
    {Type::kPairReply, Type::kPairRequest},
    {Type::kQueryReply, Type::kQuery},
    {Type::kStepsReply, Type::kStepsRequest},
    {Type::kStackReply, Type::kStackRequest},
    {Type::kSilenceNoted, Type::kSilence},
    {Type::kPong, Type::kPing},
};

// An agent reports a request that failed, and each reason to end without being asked.
constexpr std::uint64_t kMostProblems = 8;
// hvrun keeps notes until its console has taken them. A signal, sent by hvrun or got by the agent
// itself, can bring one for every process of the host that belongs to another user.
constexpr std::uint64_t kMostNotes = 4096, kNotesBySignal = 1024;
// To a terminal (--pty) the end of input is two bytes in mid-line, which its agent adds.
constexpr std::uint64_t kEndOfTerminal = 2;
// While hvrun was stopped, the stream holds what has been sent meanwhile: pings for lost_after, for
// then its agent has given hvrun up.
constexpr double kPingsAtOnce = 1000, kPingsInAnInterval = 4;
constexpr double kReportsAtOnce = 10'000, kReportsInASecond = 100;

constexpr std::size_t index_of(Type type) { return static_cast<std::size_t>(type); }

}  // namespace

FrameAllowance::FrameAllowance(Duration lost_after, TimePoint begun)
    : pings_(kPingsAtOnce + Seconds(lost_after) / Seconds(wire::ping_interval(lost_after)),
             kPingsInAnInterval / Seconds(wire::ping_interval(lost_after)).count(), begun),
      reports_(kReportsAtOnce, kReportsInASecond, begun) {}

bool FrameAllowance::Rate::take(TimePoint now) {
  left = std::min(most, left + per_second * Seconds(now - since).count());
  since = now;
  if (left < 1) return false;
  left -= 1;
  return true;
}

void FrameAllowance::note_input(const wire::Stdin& input) {
  input_bytes_ += input.bytes.size() + (input.end ? kEndOfTerminal : 0);
  if (input.bytes.empty()) ++empty_inputs_;
}

bool FrameAllowance::take_answer(Type request) {
  std::uint64_t& open = sent_[index_of(request)];
  if (open == 0) return false;
  --open;
  return true;
}

bool FrameAllowance::take_counted(Type type, std::uint64_t most) {
  return ++received_[index_of(type)] <= most;
}

std::uint64_t FrameAllowance::signals() const {
  return sent_[index_of(Type::kSignal)] + received_[index_of(Type::kSignal)];
}

std::string FrameAllowance::take_credit(const Frame& frame) {
  wire::Credit credit;
  if (!decode(frame.payload, &credit)) return "its agent sent what is no Credit";
  if (credit.bytes > input_bytes_ || (credit.bytes == 0 && empty_inputs_ == 0))
    return "its agent sent Credit for more input than hvrun had sent";
  input_bytes_ -= credit.bytes;
  if (credit.bytes == 0) --empty_inputs_;
  return "";
}

std::string FrameAllowance::take(const Frame& frame, TimePoint now) {
  const auto type = static_cast<Type>(frame.type);
  const auto sent = [&frame](const char* how) {
    return "its agent sent " + wire::name_of(frame.type) + how;
  };
  for (const Exchange& exchange : kExchanges)
    if (type == exchange.answer)
      return take_answer(exchange.request) ? "" : sent(", which hvrun had not asked for");
  switch (type) {
    case Type::kHello:
    case Type::kEmpty:
      return take_counted(type, 1) ? "" : sent(" twice");
    case Type::kProblem:
      return take_counted(type, kMostProblems) ? "" : sent(" too often");
    case Type::kNote:
      return take_counted(type, kMostNotes + kNotesBySignal * signals()) ? "" : sent(" too often");
    case Type::kCredit:
      return take_credit(frame);
    case Type::kPing:
      return pings_.take(now) ? "" : sent(" too often");
    case Type::kSignal:
      ++received_[index_of(type)];
      return reports_.take(now) ? "" : sent(" too often");
    case Type::kFenceStalled:
    case Type::kTensorStalled:
    case Type::kCallStalled:
    case Type::kMpiMissed:
    case Type::kMpiBegun:
      return reports_.take(now) ? "" : sent(" too often");
    default:
      return "";
  }
}

}  // namespace hv::launcher
