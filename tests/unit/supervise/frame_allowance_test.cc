// Tests of launcher/supervise/hosts/frame_allowance: what an agent may send, and how often.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/frame_allowance.h"

#include <doctest/doctest.h>

#include <csignal>

#include "src/wire/check.h"
#include "src/wire/mpi_wiring.h"
#include "src/wire/stacks.h"

using namespace hv;
using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

struct Allowed {
  TimePoint at = now();
  FrameAllowance allowance{15s, at};

  template <class Message>
  std::string take(const Message& message) {
    return allowance.take({static_cast<std::uint8_t>(Message::kType), encode(message)}, at);
  }
  // How many of `count` may come.
  template <class Message>
  int taken(const Message& message, int count) {
    int taken = 0;
    while (taken < count && take(message).empty()) ++taken;
    return taken;
  }
};

template <class Reply, class Request>
void expect_answer_to(const Request& request) {
  Allowed trial;
  const std::string name = wire::name_of(static_cast<std::uint8_t>(Reply::kType));
  CAPTURE(name);
  const std::string refusal = "its agent sent " + name + ", which hvrun had not asked for";
  CHECK(trial.take(Reply{}) == refusal);
  trial.allowance.note_sent(request);
  trial.allowance.note_sent(request);
  CHECK(trial.taken(Reply{}, 10) == 2);
  CHECK(trial.take(Reply{}) == refusal);
}

}  // namespace

TEST_CASE("an answer may come once for each request") {
  expect_answer_to<wire::SetupReply>(wire::SetupRequest{});
  expect_answer_to<wire::Ready>(wire::Launch{});
  expect_answer_to<wire::Started>(wire::Go{});
  expect_answer_to<wire::InventoryReply>(wire::InventoryRequest{});
  expect_answer_to<wire::ProbeReply>(wire::ProbeRequest{});
  expect_answer_to<wire::WiringReply>(wire::WiringRequest{});
  expect_answer_to<wire::CheckReply>(wire::CheckRequest{});
  expect_answer_to<wire::PairReply>(wire::PairRequest{});
  expect_answer_to<wire::QueryReply>(wire::Query{});
  expect_answer_to<wire::StepsReply>(wire::StepsRequest{});
  expect_answer_to<wire::StackReply>(wire::StackRequest{});
  expect_answer_to<wire::SilenceNoted>(wire::Silence{});
  expect_answer_to<wire::Pong>(wire::Ping{});
}

TEST_CASE("an agent greets once, and says once that nothing is left") {
  Allowed trial;
  CHECK(trial.taken(wire::Hello{}, 10) == 1);
  CHECK(trial.take(wire::Hello{}) == "its agent sent Hello twice");
  CHECK(trial.taken(wire::Empty{}, 10) == 1);
  CHECK(trial.taken(wire::Problem{}, 100) == 8);
}

TEST_CASE("notes are counted, and a signal to the ranks may bring more") {
  Allowed trial;
  CHECK(trial.taken(wire::Note{"x"}, 100'000) == 4096);
  CHECK(trial.take(wire::Note{"x"}) == "its agent sent Note too often");
  Allowed signalled;
  signalled.allowance.note_sent(wire::Signal{10});
  CHECK(signalled.take(wire::Signal{12}) == "");  // the agent has got one itself
  CHECK(signalled.taken(wire::Note{"x"}, 100'000) == 4096 + 2 * 1024);
}

TEST_CASE("credit for input may come for what has been sent") {
  Allowed trial;
  const std::string refusal = "its agent sent Credit for more input than hvrun had sent";
  CHECK(trial.take(wire::Credit{0, 1}) == refusal);
  CHECK(trial.take(wire::Credit{0, 0}) == refusal);
  trial.allowance.note_sent(wire::Stdin{0, false, "12345"});
  trial.allowance.note_sent(wire::Stdin{0, true, ""});
  CHECK(trial.take(wire::Credit{0, 3}) == "");
  CHECK(trial.take(wire::Credit{0, 0}) == "");
  CHECK(trial.take(wire::Credit{0, 0}) == refusal);
  // The end of a terminal's input is two bytes more.
  CHECK(trial.take(wire::Credit{0, 5}) == refusal);
  CHECK(trial.take(wire::Credit{0, 4}) == "");
  CHECK(trial.take(wire::Credit{0, 1}) == refusal);
}

TEST_CASE("heartbeats and reports come at a limited rate, in the long run") {
  Allowed trial;
  CHECK(trial.taken(wire::Ping{}, 100'000) == 1005);
  CHECK(trial.take(wire::Ping{}) == "its agent sent Ping too often");
  trial.at += 15s;  // 5 intervals
  CHECK(trial.taken(wire::Ping{}, 100'000) == 20);
  trial.at += 24h;
  CHECK(trial.taken(wire::Ping{}, 100'000) == 1005);
  CHECK(trial.taken(wire::Signal{SIGUSR1}, 100'000) == 10'000);
  trial.at += 24h;
  CHECK(trial.taken(wire::FenceStalled{1, false}, 100'000) == 10'000);
  CHECK(trial.take(wire::TensorStalled{}) == "its agent sent TensorStalled too often");
  CHECK(trial.take(wire::CallStalled{}) == "its agent sent CallStalled too often");
  trial.at += 2s;
  CHECK(trial.taken(wire::MpiBegun{wire::kPmiEpoch}, 1000) == 200);
  CHECK(trial.take(wire::MpiMissed{wire::kPmiEpoch}) != "");
}

TEST_CASE("an agent that pings as agents do is never refused") {
  Allowed trial;
  for (int i = 0; i < 100'000; ++i) {
    trial.at += std::chrono::duration_cast<Duration>(wire::ping_interval(15s));
    REQUIRE(trial.take(wire::Ping{}) == "");
  }
}

TEST_CASE("output, ends and fences are not this one's affair") {
  Allowed trial;
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE(trial.take(wire::Output{}) == "");
    REQUIRE(trial.take(wire::FenceIn{}) == "");
  }
}
