// Ranks are started in turns: events between two turns, and their effect.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/start_turns.h"

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <csignal>
#include <optional>

#include "src/base/text.h"
#include "tests/unit/agent/agent_client.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::tests;
using namespace std::chrono_literals;

namespace {

// Starts that take no time, one per turn.
struct FakeStart {
  EventLoop loop;
  StartTurns turns{loop, Duration::zero()};
  std::size_t started = 0;
  std::size_t fails_at = SIZE_MAX;
  std::optional<Status> over;

  void begin(std::size_t count) {
    turns.begin(
        count,
        [this](std::size_t i) {
          if (i == fails_at) return Status{StatusCode::kSystem, "no"};
          ++started;
          return Status::success();
        },
        [this](const Status& status) { over = status; });
  }
  void rounds(int count) {
    for (int i = 0; i < count; ++i) loop.run_once(now());
  }
};

// More than can be started in one turn.
constexpr std::uint32_t kMany = 150;

// An agent that is paused before it has started all of many ranks.
struct HalfStarted {
  AgentClient client;

  explicit HalfStarted(std::vector<std::string> argv = {"sleep", "1000"},
                       const wire::SetupRequest& setup = {},
                       std::vector<std::string> more_environment = {})
      : client(Streams::kSocket, std::move(more_environment)) {
    client.set_up(setup);
    client.prepare(launch_of(std::move(argv), kMany));
    client.send_bytes(encode_frame_of(wire::Go{}) + encode_frame_of(wire::Pause{true}));
    round_trip();
  }
  // The agent has handled all messages so far, and has run its loop once more.
  void round_trip() {
    const int seen = client.pongs;
    client.send(wire::Ping{});
    client.until([&] { return client.pongs > seen; }, "a Pong");
  }
  std::vector<pid_t> children() const {
    const std::string pid = std::to_string(client.agent());
    std::vector<pid_t> pids;
    for (const std::string& word :
         split(file_content("/proc/" + pid + "/task/" + pid + "/children"), ' ')) {
      if (!word.empty()) pids.push_back(std::stoi(word));
    }
    return pids;
  }
  // Also of ranks that were never started.
  void expect_end_of_every_stream() {
    for (std::uint32_t rank = 0; rank < kMany; ++rank) {
      CHECK(client.output_of(rank) == "");
      CHECK(client.output_of(rank, 2) == "");
    }
  }
};

}  // namespace

TEST_CASE("each turn starts at least one, and the loop goes round in between") {
  FakeStart start;
  start.begin(3);
  CHECK(start.started == 1);
  start.rounds(1);
  CHECK(start.started == 2);
  CHECK(start.turns.is_under_way());
  CHECK(!start.over);
  start.rounds(1);
  REQUIRE(start.over);
  CHECK(start.over->ok());
  CHECK(!start.turns.is_under_way());
}

TEST_CASE("the first failed start is the last") {
  FakeStart start;
  start.fails_at = 1;
  start.begin(4);
  start.rounds(10);
  REQUIRE(start.over);
  CHECK(start.over->message == "no");
  CHECK(start.started == 1);
  CHECK(!start.turns.is_under_way());
}

TEST_CASE("a start that is held goes on where it was, and one that is broken off never does") {
  FakeStart start;
  start.begin(9);
  start.turns.hold();
  start.rounds(5);
  CHECK(start.started == 1);
  start.turns.go_on();
  start.rounds(1);
  CHECK(start.started == 3);
  start.turns.break_off();
  start.turns.go_on();
  start.rounds(5);
  CHECK(start.started == 3);
  CHECK(!start.over);
}

TEST_CASE("Pings are answered during the start of ranks") {
  AgentClient client;
  client.set_up();
  client.prepare(launch_of({"true"}, kMany));
  client.send(wire::Go{});
  int answered = 0;  // before the last had been started
  for (bool started = false; !started;) {
    client.send(wire::Ping{});
    client.until([&] { return client.pongs > answered; }, "a Pong");
    started = client.comes<wire::Started>(0ms);
    answered = client.pongs;
  }
  CHECK(answered >= 3);
  for (std::uint32_t i = 0; i < kMany; ++i) REQUIRE(client.expect<wire::Exited>().code == 0);
  CHECK(client.finish() == 0);
}

TEST_CASE("ranks that end before the last has been started end the job no earlier") {
  HalfStarted half({"true"});
  const auto before = half.children().size();
  half.client.send(wire::Pause{false});
  CHECK(half.client.expect<wire::Started>().pids.size() == kMany);
  CHECK(before < kMany);
  for (std::uint32_t i = 0; i < kMany; ++i) REQUIRE(half.client.expect<wire::Exited>().code == 0);
  CHECK(half.client.finish() == 0);
}

TEST_CASE(
    "a job that is stopped while its ranks are being started starts no more until it goes on") {
  HalfStarted half;
  const auto pids = half.children();
  CHECK(pids.size() >= 1);
  CHECK(pids.size() < kMany);
  for (int i = 0; i < 5; ++i) half.round_trip();
  CHECK(half.children() == pids);
  half.client.send(wire::Pause{false});
  CHECK(half.client.expect<wire::Started>().pids.size() == kMany);
  CHECK(half.client.finish(0) == 0);
}

TEST_CASE("End during the start ends the ranks, starts no more and reports every stream's end") {
  HalfStarted half;
  const auto pids = half.children();
  half.client.send(wire::End{20});
  (void)half.client.expect<wire::Empty>();
  half.expect_end_of_every_stream();
  expect_gone(pids, 0ms);
  for (std::size_t i = 0; i < pids.size(); ++i)
    REQUIRE(half.client.expect<wire::Exited>().by_signal);
  CHECK(!half.client.comes<wire::Exited>(0ms));
  CHECK(!half.client.comes<wire::Started>(0ms));
  CHECK(half.client.wait_for_exit() == 0);
}

TEST_CASE("hvrun lost while ranks are being started: nothing runs 5 s later") {
  HalfStarted half;
  const auto pids = half.children();
  half.client.close_streams();
  expect_gone(pids, 5000ms);
  CHECK(half.client.wait_for_exit() == 1);
}

TEST_CASE("an agent that is ended during the start reports that as the awaited answer") {
  HalfStarted half;
  REQUIRE(::kill(half.client.agent(), SIGTERM) == 0);
  CHECK(half.client.expect<wire::Problem>().what == "its agent was ended by SIGTERM (Terminated)");
  (void)half.client.expect<wire::Empty>();
  half.expect_end_of_every_stream();
  CHECK(half.client.wait_for_exit() == 0);
}

TEST_CASE("an agent that is ended before Go reports the end of every stream") {
  AgentClient client;
  client.set_up();
  client.prepare(launch_of({"true"}, 2));
  REQUIRE(::kill(client.agent(), SIGTERM) == 0);
  CHECK(client.expect<wire::Problem>().what == "its agent was ended by SIGTERM (Terminated)");
  for (const std::uint32_t rank : {0u, 1u})
    for (const std::uint8_t stream : {1, 2}) CHECK(client.output_of(rank, stream) == "");
  CHECK(client.wait_for_exit() == 0);
}

TEST_CASE("ranks that have not started yet are not absent") {
  HalfStarted half({"sleep", "1000"});
  half.client.send(wire::Query{1});
  const auto running = half.children().size();
  const auto absent = half.client.expect<wire::QueryReply>().absent;
  CHECK(absent.size() >= 1);
  CHECK(absent.size() <= running);
  CHECK(half.client.finish(0) == 0);
}

TEST_CASE("a signal for all ranks waits for the last to be started") {
  HalfStarted half;
  half.client.send(wire::Signal{SIGUSR1});
  half.client.send(wire::Pause{false});
  CHECK(half.client.expect<wire::Started>().pids.size() == kMany);
  for (std::uint32_t i = 0; i < kMany; ++i)
    REQUIRE(half.client.expect<wire::Exited>().code == SIGUSR1);
  CHECK(half.client.finish() == 0);
}

TEST_CASE("the agent forwards a signal of Slurm only to ranks that start after it") {
  wire::SetupRequest setup;
  setup.slurm_signals_ranks = true;
  HalfStarted half({"sleep", "1000"}, setup, {"SLURM_STEP_ID=0"});
  const auto started = half.children().size();
  REQUIRE((started > 0 && started < kMany));
  REQUIRE(::kill(half.client.agent(), SIGUSR1) == 0);
  half.round_trip();
  half.client.send(wire::Pause{false});
  CHECK(half.client.expect<wire::Started>().pids.size() == kMany);
  for (std::size_t i = started; i < kMany; ++i) {
    const auto exited = half.client.expect<wire::Exited>();
    REQUIRE((exited.code == SIGUSR1 && exited.rank >= started));
  }
  half.round_trip();
  CHECK(half.children().size() == started);
  CHECK(half.client.finish(0) == 0);
}

TEST_CASE("an agent outside of a step of Slurm forwards a signal to every rank") {
  wire::SetupRequest setup;
  setup.slurm_signals_ranks = true;
  HalfStarted half({"sleep", "1000"}, setup);
  REQUIRE(::kill(half.client.agent(), SIGUSR1) == 0);
  half.round_trip();
  half.client.send(wire::Pause{false});
  CHECK(half.client.expect<wire::Started>().pids.size() == kMany);
  for (std::uint32_t i = 0; i < kMany; ++i)
    REQUIRE(half.client.expect<wire::Exited>().code == SIGUSR1);
  CHECK(half.client.finish() == 0);
}

TEST_CASE("a rank that cannot be started ends those before it, and every stream") {
  HalfStarted half;
  const auto pids = half.children();
  rlimit files{};
  REQUIRE(::prlimit(half.client.agent(), RLIMIT_NOFILE, nullptr, &files) == 0);
  files.rlim_cur = 2 * pids.size() + 40;
  REQUIRE(::prlimit(half.client.agent(), RLIMIT_NOFILE, &files, nullptr) == 0);
  half.client.send(wire::Pause{false});
  const auto problem = half.client.expect<wire::Problem>();
  CHECK(problem.what.find("Too many open files") != std::string::npos);
  CHECK(problem.hint.find("ulimit -n") != std::string::npos);
  half.expect_end_of_every_stream();
  CHECK(half.client.finish() == 0);
  expect_gone(pids, 0ms);
}
