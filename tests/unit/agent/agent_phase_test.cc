// Tests of launcher/agent/agent_phase: which message comes in which phase, and what follows what.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/agent_phase.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

using namespace hv;
using namespace hv::launcher;
using wire::Type;

namespace {

constexpr int kTypes = 256;

AgentPhase phase(std::size_t index) { return static_cast<AgentPhase>(index); }

const std::set<Type> kAlways = {Type::kPing,         Type::kPong,
                                Type::kEnd,          Type::kInventoryRequest,
                                Type::kCheckRequest, Type::kSignal,
                                Type::kWindowSize,   Type::kPause,
                                Type::kSilence,      Type::kGraceAfterSignal};
const std::set<Type> kOfKnownJob = {Type::kCredit,  Type::kStdin,        Type::kStackRequest,
                                    Type::kQuery,   Type::kStepsRequest, Type::kFenceOut,
                                    Type::kRankDied};
const std::set<Type> kBeforeRanks = {Type::kProbeRequest, Type::kPairRequest, Type::kWiringRequest,
                                     Type::kLaunch};

std::set<Type> merged(const std::vector<std::set<Type>>& parts) {
  std::set<Type> types;
  for (const std::set<Type>& part : parts) types.insert(part.begin(), part.end());
  return types;
}

const std::map<AgentPhase, std::set<Type>> kAllowed = {
    {AgentPhase::kGreeted, merged({kAlways, {Type::kSetupRequest}})},
    {AgentPhase::kSetUp, merged({kAlways, kOfKnownJob, kBeforeRanks})},
    {AgentPhase::kReady, merged({kAlways, kOfKnownJob, {Type::kGo}})},
    {AgentPhase::kStarting, merged({kAlways, kOfKnownJob})},
    {AgentPhase::kRunning, merged({kAlways, kOfKnownJob})},
    {AgentPhase::kEnding, merged({kAlways, kOfKnownJob})},
    {AgentPhase::kEnded, merged({kAlways, kOfKnownJob})},
    {AgentPhase::kSweeping, kAlways},
    {AgentPhase::kLeaving,
     merged({kAlways, kOfKnownJob, kBeforeRanks, {Type::kSetupRequest, Type::kGo}})},
};

using P = AgentPhase;
using E = AgentEvent;
const std::map<std::pair<P, E>, P> kNext = {
    {{P::kGreeted, E::kHostSetUp}, P::kSetUp},
    {{P::kGreeted, E::kSweepBegun}, P::kSweeping},
    {{P::kGreeted, E::kNothingToWaitFor}, P::kLeaving},
    {{P::kSetUp, E::kProgramsFound}, P::kReady},
    {{P::kSetUp, E::kNothingToWaitFor}, P::kLeaving},
    {{P::kReady, E::kStartBegun}, P::kStarting},
    {{P::kReady, E::kNothingToWaitFor}, P::kLeaving},
    {{P::kStarting, E::kAllStarted}, P::kRunning},
    {{P::kStarting, E::kEndBegun}, P::kEnding},
    {{P::kRunning, E::kEndBegun}, P::kEnding},
    {{P::kRunning, E::kNothingRuns}, P::kEnded},
    {{P::kEnding, E::kEndBegun}, P::kEnding},
    {{P::kEnding, E::kNothingRuns}, P::kEnded},
    {{P::kEnded, E::kNothingToWaitFor}, P::kLeaving},
    {{P::kSweeping, E::kNothingToWaitFor}, P::kLeaving},
};

}  // namespace

TEST_CASE("the agent accepts each message of hvrun only in its phases") {
  REQUIRE(kAllowed.size() == kAgentPhases);
  for (std::size_t i = 0; i < kAgentPhases; ++i) {
    for (int number = 0; number < kTypes; ++number) {
      CAPTURE(i);
      CAPTURE(number);
      const auto type = static_cast<Type>(number);
      CHECK(is_allowed(phase(i), type) == (kAllowed.at(phase(i)).count(type) > 0));
    }
  }
}

TEST_CASE("the agent accepts none of its own messages, even while it leaves") {
  for (const Type type :
       {Type::kHello, Type::kSetupReply, Type::kReady, Type::kStarted, Type::kOutput, Type::kExited,
        Type::kEmpty, Type::kQueryReply, Type::kStepsReply, Type::kFenceIn, Type::kNote,
        Type::kProblem, Type::kSilenceNoted, Type::kStackReply})
    CHECK_FALSE(is_allowed(AgentPhase::kLeaving, type));
}

TEST_CASE("an agent with a reason to leave ignores the messages that begin work") {
  const std::set<Type> expected =
      merged({kBeforeRanks,
              {Type::kSetupRequest, Type::kGo, Type::kInventoryRequest, Type::kCheckRequest}});
  for (int number = 0; number < kTypes; ++number) {
    CAPTURE(number);
    const auto type = static_cast<Type>(number);
    CHECK(begins_work(type) == (expected.count(type) > 0));
  }
}

TEST_CASE("an agent's phases follow each other as drawn, and in no other order") {
  for (std::size_t i = 0; i < kAgentPhases; ++i) {
    for (std::size_t j = 0; j < kAgentEvents; ++j) {
      CAPTURE(i);
      CAPTURE(j);
      const auto event = static_cast<AgentEvent>(j);
      const auto expected = kNext.find({phase(i), event});
      const auto next = next_phase(phase(i), event);
      CHECK(next.has_value() == (expected != kNext.end()));
      if (next && expected != kNext.end()) CHECK(*next == expected->second);
    }
  }
}

TEST_CASE("every phase but the first is reached, and every phase leads to leaving") {
  std::set<P> reached, leaves = {P::kLeaving};
  for (const auto& [key, to] : kNext) reached.insert(to);
  CHECK(reached.size() == kAgentPhases - 1);
  for (std::size_t round = 0; round < kAgentPhases; ++round)
    for (const auto& [key, to] : kNext)
      if (leaves.count(to) > 0) leaves.insert(key.first);
  CHECK(leaves.size() == kAgentPhases);
}

TEST_CASE("processes of the job run from the first start until all are gone") {
  const std::set<P> expected = {P::kStarting, P::kRunning, P::kEnding};
  for (std::size_t i = 0; i < kAgentPhases; ++i)
    CHECK(has_processes(phase(i)) == (expected.count(phase(i)) > 0));
}

TEST_CASE("the gravest reason to leave stands, and decides the exit code") {
  using R = LeaveReason;
  CHECK(combine({}, R::kEndRequested) == R::kEndRequested);
  CHECK(combine(R::kEndRequested, R::kHvrunLost) == R::kHvrunLost);
  CHECK(combine(R::kGuardLost, R::kEndRequested) == R::kGuardLost);
  CHECK(combine(R::kHvrunLost, R::kGuardLost) == R::kGuardLost);
  CHECK(combine(R::kHvrunLost, R::kSwept) == R::kHvrunLost);
  for (const R reason : {R::kEndRequested, R::kSwept, R::kSignal}) CHECK(exit_code_of(reason) == 0);
  for (const R reason : {R::kHvrunLost, R::kGuardLost}) CHECK(exit_code_of(reason) == 1);
}
