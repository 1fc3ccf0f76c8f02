// Tests of what may be left of a lost agent whose guard is gone, too.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/sweeper.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "src/base/text.h"
#include "tests/unit/agent/agent_client.h"

using namespace hv;
using namespace hv::tests;
using launcher::process_id;
using namespace std::chrono_literals;

TEST_CASE(
    "orphans that may be a lost agent's are told from processes that are certainly another's") {
  constexpr std::uint64_t kAgent = 1000;  // its start
  const auto process = [](pid_t pid, pid_t parent, pid_t session, std::uint64_t start,
                          const char* name) {
    launcher::ProcessEntry entry;
    entry.pid = pid;
    entry.parent = parent;
    entry.session = session;
    entry.start_time = start;
    entry.name = name;
    return entry;
  };
  const std::vector<launcher::ProcessEntry> all{
      process(1, 0, 1, 1, "init"),
      process(20, 1, 20, 500, "systemd"),  // a user's: a subreaper
      process(21, 1, 21, 1001, "slurmstepd"),
      process(30, 20, 30, 600, "bash"),
      process(40, 1, 40, 1500, "daemon"),   // of init
      process(41, 20, 41, 1500, "daemon"),  // of the user's systemd
      process(42, 21, 39, 1000, "daemon"),  // of slurmstepd; its session's leader is gone
      process(50, 1, 50, 999, "daemon"),    // older than the agent
      process(51, 1, 30, 1500, "orphan"),   // in a shell's session
      process(52, 30, 52, 1500, "child"),   // no orphan
      process(53, 40, 53, 1500, "descendant")};
  std::vector<pid_t> pids;
  for (const auto& orphan : launcher::orphans_since(all, kAgent)) pids.push_back(orphan.pid);
  CHECK(pids == std::vector<pid_t>{21, 40, 41, 42});
}

TEST_CASE("a sweep after the death of agent and guard names a daemon that nothing identifies") {
  AgentClient client;
  if (client.set_up().has_cgroup) return;  // which would hold it
  wire::SetupRequest setup;
  setup.job_id = client.job_id();
  // The first one's environment is empty, the second one is of the job.
  client.start(launch_of({"/usr/bin/python3", "-c",
                          "import os\n"
                          "for environ in ({}, os.environ):\n"
                          "  if os.fork() == 0:\n"
                          "    os.setsid()\n"
                          "    if os.fork(): os._exit(0)\n"
                          "    print(os.getpid(), flush=True)\n"
                          "    os.execve('/usr/bin/tail', ['tail', '-f', '/dev/null'], environ)\n"
                          "import signal; signal.pause()\n"}));
  const auto lines = [&] { return split(std::string(trim(client.output_so_far(0))), '\n'); };
  client.until([&] { return lines().size() == 2 && client.output_so_far(0).back() == '\n'; },
               "two daemons");
  std::vector<pid_t> daemons;
  for (const std::string& line : lines())
    daemons.push_back(static_cast<pid_t>(*parse_integer(line)));
  setup.sweep = wire::LostAgent{process_id(client.agent()), process_id(client.guard()),
                                launcher::cgroup_of(client.agent()), false};
  for (const pid_t pid : {client.guard(), client.agent()}) {
    ::kill(pid, SIGSTOP);
    wait_until([pid] { return state_of(pid) == 'T'; }, "a stop");
  }
  for (const pid_t pid : {client.guard(), client.agent()}) ::kill(pid, SIGKILL);
  AgentClient fresh;
  fresh.send(setup);
  const auto empty = fresh.expect<wire::Empty>(4000ms);
  std::vector<pid_t> left;
  for (const pid_t pid : daemons)
    if (is_alive(pid)) left.push_back(pid);
  REQUIRE(left.size() == 1);
  const std::string name = "pid " + std::to_string(left[0]) + " (tail)";
  CHECK(std::count(empty.may_remain.begin(), empty.may_remain.end(), name) == 1);
  ::kill(left[0], SIGKILL);
}
