// Tests of how an agent in a Slurm step ends its ranks, where Slurm signals them, too.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "src/base/clock.h"
#include "src/base/unique_fd.h"
#include "tests/unit/agent/agent_client.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::tests;
using namespace std::chrono_literals;

TEST_CASE("ranks that Slurm has signalled get no SIGTERM from the agent") {
  TemporaryFolder folder;
  for (const bool in_step : {true, false}) {
    AgentClient client(Streams::kSocket, in_step ? std::vector<std::string>{"SLURM_STEP_ID=0"}
                                                 : std::vector<std::string>());
    wire::SetupRequest setup;
    setup.slurm_signals_ranks = true;
    setup.grace_after_signal_s = 60;
    client.set_up(setup);
    wire::Launch launch = launch_of({"/usr/bin/python3", "-c",
                                     "import os, signal\n"
                                     "signal.signal(signal.SIGTERM, lambda *_: print('term', "
                                     "flush=True))\n"
                                     "print('on', flush=True)\n"
                                     "open('go').read()\n"});
    launch.programs[0].directory = folder.path();
    const std::string go = folder / "go";
    REQUIRE(::mkfifo(go.c_str(), 0600) == 0);
    const auto rank = static_cast<pid_t>(client.start(launch).pids.at(0));
    client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
    ::kill(rank, SIGTERM);
    client.until([&] { return client.output_so_far(0) == "on\nterm\n"; }, "SIGTERM of Slurm");
    ::kill(client.agent(), SIGTERM);
    (void)client.expect<wire::Problem>();
    client.send(wire::Ping{});
    client.until([&] { return client.pongs > 0; }, "the begin of the end");
    UniqueFd(::open(go.c_str(), O_WRONLY | O_CLOEXEC)).reset();
    CHECK(client.expect<wire::Exited>().code == 0);
    CHECK(client.output_of(0) == (in_step ? "on\nterm\n" : "on\nterm\nterm\n"));
    (void)client.expect<wire::Empty>();
    ::unlink(go.c_str());
  }
}

TEST_CASE("a rank gets SIGTERM once where hvrun hears sooner of the scheduler's than this host") {
  for (const bool comes_here : {true, false}) {
    AgentClient client(Streams::kSocket, {"SLURM_STEP_ID=0"});
    wire::SetupRequest setup;
    setup.slurm_signals_ranks = true;
    client.set_up(setup);
    const auto rank = static_cast<pid_t>(
        client
            .start(launch_of({"/usr/bin/python3", "-c",
                              "import signal\n"
                              "awaited = [signal.SIGTERM, signal.SIGCONT]\n"
                              "signal.pthread_sigmask(signal.SIG_BLOCK, awaited)\n"
                              "print('on', flush=True)\n"
                              "for _ in awaited:\n"
                              "  print(signal.sigwait(awaited).name, flush=True)\n"}))
            .pids.at(0));
    client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
    client.send(wire::End{60, true});
    if (comes_here) {
      client.send(wire::Ping{});
      client.until([&] { return client.pongs > 0; }, "the end expected");
      CHECK(client.output_so_far(0) == "on\n");
      ::kill(rank, SIGTERM);
      ::kill(client.agent(), SIGTERM);
    }
    client.until([&] { return client.output_so_far(0) == "on\nSIGTERM\n"; }, "SIGTERM");
    ::kill(rank, SIGCONT);
    CHECK(client.expect<wire::Exited>().code == 0);
    CHECK(client.output_of(0) == "on\nSIGTERM\nSIGCONT\n");
    (void)client.expect<wire::Empty>();
  }
}

TEST_CASE("an agent that expects the scheduler's SIGTERM sends it where the grace is short") {
  AgentClient client(Streams::kSocket, {"SLURM_STEP_ID=0"});
  wire::SetupRequest setup;
  setup.slurm_signals_ranks = true;
  client.set_up(setup);
  client.start(launch_shell("trap 'exit 5' TERM; echo on; while :; do sleep 0.02; done"));
  client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
  client.send(wire::End{2, true});
  CHECK(client.expect<wire::Exited>().code == 5);
  (void)client.expect<wire::Empty>();
}

TEST_CASE("the grace starts at SIGTERM, even if the expected one of the scheduler never comes") {
  AgentClient client(Streams::kSocket, {"SLURM_STEP_ID=0"});
  wire::SetupRequest setup;
  setup.slurm_signals_ranks = true;
  client.set_up(setup);
  client.start(
      launch_shell("trap 'sleep 0.7; exit 5' TERM; echo on; while :; do sleep 0.02; done"));
  client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
  client.send(wire::End{2.1, true});
  CHECK(client.expect<wire::Exited>().code == 5);
  (void)client.expect<wire::Empty>();
}

TEST_CASE("a rank that the scheduler's SIGTERM ends before its agent's is no failure") {
  AgentClient client(Streams::kSocket, {"SLURM_STEP_ID=0"});
  wire::SetupRequest setup;
  setup.slurm_signals_ranks = true;
  client.set_up(setup);
  const auto rank = static_cast<pid_t>(client.start(launch_of({"sleep", "1000"})).pids.at(0));
  client.send(wire::End{60, true});
  client.send(wire::Ping{});
  client.until([&] { return client.pongs > 0; }, "the end expected");
  ::kill(rank, SIGTERM);
  const auto exited = client.expect<wire::Exited>();
  CHECK(exited.code == SIGTERM);
  CHECK(exited.signal_was_ours);
  (void)client.expect<wire::Empty>();
}

TEST_CASE("outside a step of Slurm the loss of hvrun ends ranks soon, also of a signalled agent") {
  AgentClient client;
  wire::SetupRequest setup;
  setup.grace_s = setup.grace_after_signal_s = 1000;
  client.set_up(setup);
  const auto rank = static_cast<pid_t>(
      client.start(launch_shell("trap '' TERM; echo on; exec tail -f /dev/null")).pids.at(0));
  client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
  ::kill(client.agent(), SIGTERM);
  (void)client.expect<wire::Problem>();
  client.send(wire::End{1000});
  client.close_streams();
  CHECK(client.wait_for_exit() == 1);
  CHECK(!is_alive(rank));
}

TEST_CASE("an agent uses the time that the scheduler leaves once hvrun knows it") {
  AgentClient client;
  wire::SetupRequest setup;
  setup.grace_after_signal_s = 0.1;
  client.set_up(setup);
  client.send(wire::GraceAfterSignal{1000});
  client.start(
      launch_shell("trap 'sleep 0.7; exit 3' TERM; echo on; while :; do sleep 0.02; done"));
  client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
  ::kill(client.agent(), SIGTERM);
  CHECK(client.expect<wire::Exited>().code == 3);
  (void)client.expect<wire::Empty>();
}

TEST_CASE("an agent in a step of Slurm reports SIGTERM to hvrun whenever it comes") {
  for (const bool in_step : {true, false}) {
    AgentClient client(Streams::kSocket, in_step ? std::vector<std::string>{"SLURM_STEP_ID=0"}
                                                 : std::vector<std::string>());
    client.set_up();
    client.start(launch_shell("trap '' TERM; echo on; exec tail -f /dev/null"));
    client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
    client.send(wire::End{1000});
    client.send(wire::Ping{});
    client.until([&] { return client.pongs > 0; }, "the begin of the end");
    ::kill(client.agent(), SIGTERM);
    if (in_step)
      CHECK(client.expect<wire::Signal>().number == SIGTERM);
    else
      CHECK(!client.comes<wire::Signal>(200ms));
    client.send(wire::End{0});
    (void)client.expect<wire::Empty>();
  }
}

TEST_CASE(
    "ranks keep the time that Slurm's SIGTERM leaves them, if hvrun goes before it or after") {
  enum class First { kSigterm, kEnd, kHvrunLost };
  for (const First first : {First::kSigterm, First::kEnd, First::kHvrunLost}) {
    const TemporaryFolder folder;
    AgentClient client(Streams::kSocket, {"SLURM_STEP_ID=0"});
    wire::SetupRequest setup;
    setup.grace_after_signal_s = 60;
    client.set_up(setup);
    client.start(launch_shell("trap 'echo >" + (folder / "told") + "; until [ -e " +
                              (folder / "go") + " ]; do sleep 0.02; done; echo saved >" +
                              (folder / "saved") +
                              "; exit 0' TERM; echo on; while :; do sleep 0.02; done"));
    client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
    TimePoint gone = now();
    if (first == First::kHvrunLost) {
      client.close_streams();
      wait_until([&] { return std::filesystem::exists(folder / "told"); }, "the rank's SIGTERM");
      ::kill(client.agent(), SIGTERM);
    } else {
      if (first == First::kEnd) {
        client.send(wire::End{60, true});
        wait_until([&] { return std::filesystem::exists(folder / "told"); }, "the rank's SIGTERM");
      }
      ::kill(client.agent(), SIGTERM);
      if (first == First::kSigterm) (void)client.expect<wire::Problem>();
      client.send(wire::Ping{});
      client.until([&] { return client.pongs > 0; }, "the agent's SIGTERM");
      gone = now();
      client.close_streams();
    }
    wait_until([&] { return seconds_since(gone) > 2.5; }, "what ranks have without a signal");
    std::ofstream(folder / "go").close();
    CHECK(client.wait_for_exit() == 1);
    CHECK(file_content(folder / "saved") == "saved\n");
  }
}
