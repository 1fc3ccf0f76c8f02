// Nothing escapes the agent: every way a job can end, against processes that try to stay.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "launcher/agent/ending/sweeper.h"
#include "launcher/facts/cgroup_paths.h"
#include "launcher/facts/read_file.h"
#include "src/base/text.h"
#include "src/rendezvous/messages.h"
#include "tests/unit/agent/agent_client.h"

using namespace hv;
using namespace hv::tests;
using launcher::process_id;
using namespace std::chrono_literals;

namespace {

// A rank, a child of it, one in a session of its own and a double fork, all deaf to every polite
// signal. Each writes its pid; four in all per rank.
std::string orphan_maker(const TemporaryFolder& folder) {
  return "import os,signal,sys\n"
         "for s in (1,2,3,10,12,15): signal.signal(s, signal.SIG_IGN)\n"
         "def sign(): f=open('" +
         (folder / "pids") +
         "','a'); f.write('%d\\n'%os.getpid()); f.close()\n"
         "def stay():\n"
         "    sign()\n"
         "    while True: signal.pause()\n"
         "if os.fork()==0: stay()\n"
         "if os.fork()==0:\n"
         "    os.setsid(); stay()\n"
         "if os.fork()==0:\n"
         "    if os.fork()==0:\n"
         "        os.setsid()\n"
         "        if os.fork()==0: stay()\n"
         "    os._exit(0)\n"
         "stay()\n";
}

long lines_in(const std::string& path) {
  const std::string text = file_content(path);
  return std::count(text.begin(), text.end(), '\n');
}

struct OrphanJob {
  TemporaryFolder folder;
  AgentClient client;
  std::vector<pid_t> pids;

  explicit OrphanJob(double lost_after_s = 15) {
    wire::SetupRequest setup;
    setup.lost_after_s = lost_after_s;
    setup.grace_s = 30;  // longer than the test waits
    client.set_up(setup);
    client.start(launch_of({"/usr/bin/python3", "-c", orphan_maker(folder)}));
    // The agent's pings are answered meanwhile.
    client.until([&] { return lines_in(folder / "pids") >= 4; }, "four pids");
    pids = pids_in(folder / "pids", 4);
  }
};

// The job's remaining cgroups; none where no cgroup v2 can be made.
std::vector<std::string> groups_of(const std::string& job_id) {
  std::vector<std::string> found;
  const std::string own = launcher::own_v2_folder("");
  for (const std::string& name : launcher::names_in(own)) {
    if (name.rfind("hvrun-" + job_id + "-", 0) == 0) found.push_back(name);
  }
  return found;
}

int count_fork_bomb(const std::string& mark) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos && is_alive(std::stoi(name)) &&
        file_content(entry.path() / "environ").find(mark) != std::string::npos) {
      ++count;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("End with grace 0 leaves no process that tries to stay") {
  OrphanJob job;
  CHECK(job.client.finish(0) == 0);
  expect_gone(job.pids, 0ms);  // Empty has reported it
}

TEST_CASE("End kills processes that ignore SIGTERM after the grace, and reports its own signal") {
  OrphanJob job;
  const TimePoint begun = now();
  job.client.send(wire::End{0.3});
  const auto exited = job.client.expect<wire::Exited>();
  CHECK(exited.by_signal);
  CHECK(exited.code == SIGKILL);
  CHECK(exited.signal_was_ours);
  CHECK(exited.termination.use == wire::SigtermUse::kIgnored);
  CHECK(exited.termination.grace_s == doctest::Approx(0.3));
  CHECK(seconds_since(begun) >= 0.29);
  (void)job.client.expect<wire::Empty>();
  expect_gone(job.pids, 0ms);
  CHECK(job.client.wait_for_exit() == 0);
}

TEST_CASE("End lets ranks that handle SIGTERM end on their own") {
  AgentClient client;
  client.set_up();
  client.start(launch_shell("trap 'echo bye; exit 5' TERM; echo on; while :; do sleep 0.02; done"));
  client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
  const TimePoint begun = now();
  client.send(wire::End{20});
  CHECK(client.expect<wire::Exited>().code == 5);
  CHECK(client.output_of(0).find("bye\n") != std::string::npos);
  (void)client.expect<wire::Empty>();
  CHECK(client.wait_for_exit() == 0);
  CHECK(seconds_since(begun) < 10);
}

// The program handles SIGTERM, which the shell around it does not get; then the shell runs `after`.
wire::Launch wrapped(const std::string& handler, const std::string& after) {
  return launch_shell(
      "/usr/bin/python3 -c 'import os, signal\n"
      "signal.signal(signal.SIGTERM, lambda *_: " +
      handler +
      ")\n"
      "print(\"on\", flush=True)\n"
      "while True: signal.pause()'\n" +
      after);
}

TEST_CASE("a wrapper that runs on after its program has ended gets SIGTERM, too") {
  AgentClient client;
  client.set_up();
  client.start(wrapped("os._exit(0)", "echo after; sleep 1000"));
  client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
  client.send(wire::End{1000});
  const auto exited = client.expect<wire::Exited>();
  CHECK((exited.by_signal && exited.code == SIGTERM && exited.signal_was_ours));
  CHECK(client.output_of(0) == "on\nafter\n");
  (void)client.expect<wire::Empty>();  // the sleep has got it as well
  CHECK(client.wait_for_exit() == 0);
}

TEST_CASE("a program in a wrapper that handles SIGTERM and runs on is reported as such") {
  AgentClient client;
  client.set_up();
  client.start(wrapped("None", ":"));
  client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
  client.send(wire::End{0.3});
  const auto exited = client.expect<wire::Exited>();
  CHECK(exited.code == SIGKILL);
  CHECK(exited.termination.use == wire::SigtermUse::kHandledByDescendant);
  (void)client.expect<wire::Empty>();
}

TEST_CASE("what a rank leaves behind has half a second, however little is left of the grace") {
  AgentClient client;
  client.set_up();
  client.start(launch_of({"/usr/bin/python3", "-c",
                          "import os, signal\n"
                          "if os.fork() == 0:\n"
                          "  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                          "  print('on', flush=True)\n"
                          "signal.pause()\n"}));
  client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
  const TimePoint begun = now();
  client.send(wire::End{0.4});
  CHECK(client.expect<wire::Exited>().code == SIGTERM);
  (void)client.expect<wire::Empty>();
  CHECK(seconds_since(begun) >= 0.5);
}

TEST_CASE("what a rank had left behind before the end has half a second, too") {
  AgentClient client;
  client.set_up();
  client.start(launch_of({"/usr/bin/python3", "-c",
                          "import os, signal\n"
                          "if os.environ['RANK'] == '0':\n"
                          "  if os.fork() > 0: os._exit(0)\n"
                          "  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                          "  print('on', flush=True)\n"
                          "signal.pause()\n"},
                         2));
  client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
  CHECK(client.expect<wire::Exited>().code == 0);
  const TimePoint begun = now();
  client.send(wire::End{0.1});
  (void)client.expect<wire::Empty>();
  CHECK(seconds_since(begun) >= 0.5);
}

TEST_CASE("a rank that ignores SIGTERM has the grace, whatever another one leaves behind") {
  TemporaryFolder folder;
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_of({"/usr/bin/python3", "-c",
                                   "import os, select, signal\n"
                                   "if os.environ['RANK'] == '0' or os.fork() == 0:\n"
                                   "  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                                   "  if os.environ['RANK'] == '0':\n"
                                   "    open('pid', 'w').write(str(os.getpid()))\n"
                                   "  else:\n"
                                   "    pid = open('pid').read()\n"
                                   "    rank = os.pidfd_open(int(pid))\n"
                                   "    print('on', flush=True)\n"
                                   "    select.select([rank], [], [])\n"
                                   "    open('seen', 'w')\n"
                                   "signal.pause()\n"},
                                  2);
  launch.programs[0].directory = folder.path();
  REQUIRE(::mkfifo((folder / "pid").c_str(), 0600) == 0);
  client.start(launch);
  client.until([&] { return client.output_so_far(1) == "on\n"; }, "on");
  client.send(wire::End{0.25});
  (void)client.expect<wire::Empty>();
  CHECK(std::filesystem::exists(folder / "seen"));
}

TEST_CASE("a second End with a shorter grace shortens the first") {
  OrphanJob job;
  job.client.send(wire::End{1000});
  CHECK(!job.client.comes<wire::Empty>(200ms));
  CHECK(job.client.finish(0) == 0);
  expect_gone(job.pids, 0ms);
}

TEST_CASE("nothing runs 5 s after hvrun's end of the stream, whatever the grace") {
  OrphanJob job;
  job.client.close_streams();
  expect_gone(job.pids, 5000ms);
  CHECK(job.client.wait_for_exit() == 1);
}

TEST_CASE("nothing runs 5 s after the heartbeat timeout") {
  OrphanJob job(1.0);
  job.client.fall_silent();
  wait_until([&] { return !is_alive(job.client.agent()); }, "the agent's end", 6000ms);
  expect_gone(job.pids, 0ms);
}

TEST_CASE("SIGKILL of the agent: its guard ends everything within two seconds") {
  OrphanJob job;
  REQUIRE(::kill(job.client.agent(), SIGKILL) == 0);
  expect_gone(job.pids, 2000ms);
  CHECK(job.client.wait_for_exit() == 128 + SIGKILL);
  CHECK(groups_of(job.client.job_id()).empty());
}

TEST_CASE("SIGKILL of the guard: the agent ends everything, reports why and leaves without Empty") {
  OrphanJob job;
  REQUIRE(::kill(job.client.guard(), SIGKILL) == 0);
  CHECK(job.client.expect<wire::Problem>().what.find("guard was killed") != std::string::npos);
  (void)job.client.expect<wire::Exited>();
  expect_gone(job.pids, 4000ms);
  CHECK(!job.client.comes<wire::Empty>(5000ms));
  expect_gone({job.client.agent()});
  CHECK(groups_of(job.client.job_id()).empty());
}

TEST_CASE("SIGKILL of agent and guard: a fresh agent ends the processes that escaped") {
  OrphanJob job;
  ::kill(job.client.guard(), SIGKILL);
  ::kill(job.client.agent(), SIGKILL);
  AgentClient fresh;
  wire::SetupRequest setup;
  setup.sweep.emplace();
  setup.job_id = job.client.job_id();
  fresh.send(setup);
  (void)fresh.expect<wire::Empty>(4000ms);
  expect_gone(job.pids, 0ms);
  CHECK(groups_of(job.client.job_id()).empty());
  CHECK(fresh.wait_for_exit() == 0);
}

TEST_CASE("a sweep ends the lost agent itself, should it stand still, and its guard") {
  OrphanJob job;
  wire::SetupRequest setup;
  setup.job_id = job.client.job_id();
  setup.sweep =
      wire::LostAgent{process_id(job.client.agent()), process_id(job.client.guard()), "", false};
  ::kill(job.client.agent(), SIGSTOP);
  AgentClient fresh;
  fresh.send(setup);
  const auto empty = fresh.expect<wire::Empty>(4000ms);
  CHECK(empty.may_remain.empty());
  expect_gone(job.pids, 0ms);
  expect_gone({job.client.agent(), job.client.guard()});
  CHECK(fresh.wait_for_exit() == 0);
}

TEST_CASE("a sweep does not take another process of that pid for the lost agent") {
  AgentClient other;
  wire::SetupRequest setup;
  setup.job_id = "of-nobody";
  setup.sweep = wire::LostAgent{process_id(other.agent()), process_id(other.guard()), "", false};
  ++setup.sweep->agent.start_time;
  ++setup.sweep->guard.start_time;
  AgentClient fresh;
  fresh.send(setup);
  (void)fresh.expect<wire::Empty>(4000ms);
  CHECK(fresh.wait_for_exit() == 0);
  other.set_up();
  CHECK(other.finish() == 0);
}

TEST_CASE("a sweep spares other jobs, and its own agent if that has the job's environment") {
  AgentClient other;
  other.set_up();
  const auto pid = static_cast<pid_t>(other.start(launch_of({"sleep", "1000"})).pids.at(0));
  AgentClient fresh(Streams::kSocket, {"HVRUN_JOB_ID=of-another"});
  wire::SetupRequest setup;
  setup.sweep.emplace();
  setup.job_id = "of-another";
  fresh.send(setup);
  (void)fresh.expect<wire::Empty>();
  CHECK(fresh.wait_for_exit() == 0);
  CHECK(is_alive(pid));
  CHECK(other.finish() == 0);
}

TEST_CASE("names of agent and guard do not match each other") {
  AgentClient client;
  const auto words = [](pid_t pid, const char* file) {
    return file_content("/proc/" + std::to_string(pid) + "/" + file);
  };
  CHECK(words(client.agent(), "comm") == "hvrun-agent\n");
  // The guard is forked first and takes its name then.
  wait_until([&] { return words(client.guard(), "comm") == "hvrun-guard\n"; }, "the guard's name");
  CHECK(words(client.guard(), "cmdline").find("agent") == std::string::npos);
  CHECK(client.finish() == 0);
}

TEST_CASE("the guard holds none of hvrun's streams") {
  AgentClient client;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(client.guard()) + "/fd")) {
    const std::string target = std::filesystem::read_symlink(entry.path());
    const bool is_fine =
        target == "/dev/null" || target.rfind("pipe:", 0) == 0;  // the agent's sign of its life
    CHECK_MESSAGE(is_fine, target);
  }
  CHECK(client.finish() == 0);
}

TEST_CASE("SIGTERM to agent or guard ends the job in order") {
  for (const bool to_guard : {false, true}) {
    AgentClient client;
    client.set_up();
    client.start(launch_shell("trap 'exit 4' TERM; echo on; while :; do sleep 0.02; done"));
    client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
    ::kill(to_guard ? client.guard() : client.agent(), SIGTERM);
    CHECK(client.expect<wire::Problem>().what.find("SIGTERM") != std::string::npos);
    CHECK(client.expect<wire::Exited>().code == 4);
    (void)client.expect<wire::Empty>();
    CHECK(client.wait_for_exit() == 0);
  }
}

TEST_CASE("processes that fork and exit all the time, and many that stay, are ended") {
  AgentClient client;
  client.set_up();
  const std::string mark = "BOMB_OF=" + client.job_id();
  wire::Launch launch = launch_of({"/usr/bin/python3", "-c",
                                   "import os,signal\n"
                                   "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                                   "for i in range(60):\n"
                                   "  if os.fork()==0: signal.pause()\n"
                                   "for i in range(3):\n"
                                   "  if os.fork()==0:\n"
                                   "    os.setsid()\n"
                                   "    while True:\n"
                                   "      if os.fork(): os._exit(0)\n"
                                   "print('burning',flush=True)\n"
                                   "signal.pause()\n"});
  launch.environment.push_back(mark);
  client.start(launch);
  client.until([&] { return client.output_so_far(0) == "burning\n"; }, "the bomb");
  CHECK(client.finish(0) == 0);
  CHECK(count_fork_bomb(mark) == 0);
}

TEST_CASE("Pause stops all descendants beyond the heartbeat timeout, then continues them") {
  OrphanJob job(1.0);
  job.client.send(wire::Pause{true});
  job.client.fall_silent();
  wait_until(
      [&] {
        return std::all_of(job.pids.begin(), job.pids.end(),
                           [](pid_t pid) { return state_of(pid) == 'T'; });
      },
      "the stop of all");
  const TimePoint begun = now();
  wait_until([&] { return seconds_since(begun) > 2.5; }, "the time of silence and more");
  CHECK(is_alive(job.client.agent()));
  job.client.send(wire::Pause{false});
  wait_until(
      [&] {
        return std::none_of(job.pids.begin(), job.pids.end(),
                            [](pid_t pid) { return state_of(pid) == 'T'; });
      },
      "the going on of all");
  CHECK(job.client.finish(0) == 0);
}

TEST_CASE("a paused job can be ended in order") {
  AgentClient client;
  client.set_up();
  client.start(launch_shell("trap 'exit 4' TERM; echo on; while :; do sleep 0.02; done"));
  client.until([&] { return client.output_so_far(0) == "on\n"; }, "on");
  client.send(wire::Pause{true});
  client.send(wire::End{20});
  CHECK(client.expect<wire::Exited>().code == 4);
  (void)client.expect<wire::Empty>();
}

TEST_CASE(
    "time in which the agent itself was stopped does not count towards the heartbeat timeout") {
  AgentClient client;
  wire::SetupRequest setup;
  setup.lost_after_s = 1.0;
  client.set_up(setup);
  const auto pid = static_cast<pid_t>(client.start(launch_of({"sleep", "1000"})).pids.at(0));
  ::kill(client.agent(), SIGSTOP);
  const TimePoint begun = now();
  wait_until([&] { return seconds_since(begun) > 2.5; }, "more than the time of silence");
  ::kill(client.agent(), SIGCONT);
  CHECK(!client.comes<wire::Exited>(300ms));  // answers pings meanwhile
  CHECK(is_alive(pid));
  CHECK(client.finish(0) == 0);
}

TEST_CASE("signals reach every rank") {
  AgentClient client;
  client.set_up();
  client.start(launch_shell("trap 'exit 9' USR1; echo on; while :; do sleep 0.02; done", 3));
  client.until(
      [&] {
        return client.output_so_far(0) + client.output_so_far(1) + client.output_so_far(2) ==
               "on\non\non\n";
      },
      "on");
  client.send(wire::Signal{SIGUSR1});
  for (int i = 0; i < 3; ++i) CHECK(client.expect<wire::Exited>().code == 9);
  CHECK(client.finish() == 0);
}

TEST_CASE("a query reports the ranks that are ending") {
  AgentClient client;
  client.set_up();
  // A big process takes its time to be reaped; it must be touched to be resident.
  wire::Launch launch =
      launch_of({"/usr/bin/python3", "-c",
                 "x=b'x'*(300<<20)\nprint('big',flush=True)\nimport signal\nsignal.pause()"});
  const auto pid = static_cast<pid_t>(client.start(launch).pids.at(0));
  client.until([&] { return client.output_so_far(0) == "big\n"; }, "big", 60s);
  client.send(wire::Query{1});
  CHECK(client.expect<wire::QueryReply>().exiting.empty());
  ::kill(pid, SIGKILL);
  // Either it is ending or its end has been reported already: never neither, once the signal
  // was taken.
  std::size_t seen_exiting = 0;
  for (std::uint32_t number = 2; !client.comes<wire::Exited>(0ms); ++number) {
    client.send(wire::Query{number});
    seen_exiting += client.expect<wire::QueryReply>().exiting.size();
  }
  CHECK(seen_exiting > 0);
  CHECK(client.finish() == 0);
}

TEST_CASE("the end of a rank that had joined and sent no leave notice is reported as such") {
  AgentClient client;
  const wire::SetupReply reply = client.set_up();
  wire::Launch launch = launch_of({"/usr/bin/python3", "-c",
                                   "import socket,struct,os\ns=socket.socket(socket.AF_UNIX)\n"
                                   "s.connect('\\0'+os.environ['SOCKET'][1:])\n"
                                   "s.sendall(struct.pack('<IBIII',13,1," +
                                       std::to_string(rendezvous::kRankProtocol) +
                                       ",0,0))\nassert len(s.recv(100))==37"});
  launch.environment.push_back("SOCKET=" + reply.agent_socket);
  client.start(launch);
  const auto exited = client.expect<wire::Exited>();
  CHECK(exited.code == 0);
  CHECK(exited.left_unannounced);
  CHECK(client.finish() == 0);
}
