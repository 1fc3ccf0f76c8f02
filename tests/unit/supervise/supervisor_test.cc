// Tests of a job's whole life over scripted agents.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/supervisor.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "launcher/supervise/job.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "tests/fakes/fake_agents.h"
#include "tests/unit/supervise/supervised.h"

using namespace hv::launcher;
namespace wire = hv::wire;
using namespace std::chrono_literals;

TEST_CASE("a job whose ranks end well has exit code 0 and no message of its own") {
  struct Agent : FakeAgent {
    void on_go() override {
      output(launch.ranks[0].rank, "hello\n");
      finish_all(0);
    }
  } a, b;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "[0] hello\n"));
  CHECK(contains(outcome.out, "[1] hello\n"));
  CAPTURE(hv::hex(outcome.err.data(), outcome.err.size()));
  CHECK(outcome.err == "");
  CHECK(a.ended);
  CHECK(b.ended);
}

TEST_CASE("each host gets its ranks, their contract and the same master address") {
  FakeAgent a, b;
  supervise({{"a", &a}, {"b", &b}}, "a:2,b:1");
  CHECK(a.setup.hold_port);
  CHECK_FALSE(b.setup.hold_port);
  REQUIRE(a.launch.ranks.size() == 2);
  REQUIRE(b.launch.ranks.size() == 1);
  CHECK(b.launch.ranks[0].rank == 2);
  std::map<std::string, std::string> contract(b.launch.ranks[0].environment.begin(),
                                              b.launch.ranks[0].environment.end());
  CHECK(contract["HVRUN_SIZE"] == "3");
  CHECK(contract["GROUP_RANK"] == "1");
  CHECK(contract["MASTER_ADDR"] == "10.0.0.1");
  CHECK(contract["MASTER_PORT"] == "29500");
}

TEST_CASE(
    "a rank's exit code is the job's, its last lines are shown, and other ranks learn of its end") {
  struct Failing : FakeAgent {
    void on_go() override {
      output(0, "the reason\n");
      exit_rank(0, {0, false, 7, false, false, 0, false, false});
    }
  } a;
  struct Waiting : FakeAgent {
    void on_go() override {}
  } b;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
  CHECK(outcome.code == 7);
  CHECK(contains(outcome.err, "rank 0 on host a ended with exit code 7"));
  CHECK(contains(outcome.err, "    the reason\n"));
  CHECK(b.ended);
  REQUIRE(b.deaths.size() == 1);
  CHECK(b.deaths[0].rank == 0);
}

TEST_CASE("an exit code that no process has is no message, and never a job that ended well") {
  struct Lying : FakeAgent {
    wire::Exited said;
    void on_go() override { exit_rank(0, said); }
  };
  for (const std::uint32_t code : {256u, UINT32_MAX}) {
    for (const bool by_signal : {false, true}) {
      Lying a;
      a.said.code = code;
      a.said.by_signal = by_signal;
      CHECK(supervise({{"a", &a}}, "a:1").code == 5);
    }
  }
}

TEST_CASE("the rank that was killed is named although a victim reported first") {
  // a's rank is killed and takes 400 ms to be reaped; b's exits with 1 at the first EOF.
  struct Killed : FakeAgent {
    bool exiting = false;
    void on_go() override {
      exiting = true;
      later(400ms, [this] {
        exiting = false;
        exit_rank(0, {0, true, SIGKILL, false, false, 0, false, false});
      });
    }
    std::vector<std::uint32_t> exiting_now() override {
      return exiting ? std::vector<std::uint32_t>{0} : std::vector<std::uint32_t>{};
    }
  } a;
  struct Victim : FakeAgent {
    void on_go() override { finish_all(1); }
  } b;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
  CHECK(outcome.code == 137);
  CHECK(contains(outcome.err, "rank 0 on host a ended with SIGKILL"));
  CHECK(contains(outcome.err, "as a consequence also ended: rank 1 with exit code 1"));
}

TEST_CASE("a lost agent ends the job with code 5, and a fresh one sweeps its host") {
  struct Vanishing : FakeAgent {
    int starts = 0;
    void on_start() override {
      ++starts;
      FakeAgent::on_start();
    }
    void on_go() override {
      later(10ms, [this] { vanish(); });
    }
  } a;
  struct Waiting : FakeAgent {
    void on_go() override {}
  } b;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
  CHECK(outcome.code == 5);
  CHECK(contains(outcome.err, "host a with rank 0 was lost"));
  CHECK(contains(outcome.err, "nothing of the job runs there any more; look at that host and"));
  CHECK_FALSE(contains(outcome.err, "may still run"));
  CHECK(a.starts == 2);
  CHECK(a.setup.sweep);
  CHECK(b.ended);
}

TEST_CASE("an agent that is ended on its own host is a lost host, not a good end") {
  struct Ended : FakeAgent {
    void on_go() override {
      later(10ms, [this] { end_running_ranks(); });
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 5);
  CHECK(contains(outcome.err, "its agent ended rank 0 there unasked"));
}

TEST_CASE(
    "the ends of ranks after an unrequested end of their host are no good end and no failure") {
  struct Leaving : FakeAgent {
    bool reports_reason = false;
    wire::Exited end;
    void on_go() override {
      if (reports_reason) send(wire::Problem{"its agent's guard was killed", ""});
      exit_rank(0, end);
    }
  } a;
  const wire::Exited of_sigterm{0, true, SIGTERM, true, false, 0, false, false};
  for (const wire::Exited& end : {wire::Exited{}, wire::Exited{0, false, 7}, of_sigterm}) {
    a.reports_reason = true;
    a.end = end;
    const Outcome outcome = supervise({{"a", &a}}, "a:1");
    CHECK(outcome.code == 5);
    CHECK(contains(outcome.err, "ended on host a with rank 0: its agent's guard was killed"));
    CHECK_FALSE(contains(outcome.err, "still run"));
  }
  a.reports_reason = false;
  CHECK(supervise({{"a", &a}}, "a:1").code == 5);
}

TEST_CASE("an unrequested end of a host shortens the grace like a lost host") {
  struct Leaving : FakeAgent {
    void on_go() override {
      send(wire::Problem{"its agent's guard was killed", "find out what ends processes there"});
    }
  } a;
  struct Working : FakeAgent {
    void on_go() override {}
  } b;
  JobSpec spec;
  spec.ending.grace = 600s;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1", spec);
  CHECK(outcome.code == 5);
  CHECK(b.grace_s == 2);
  CHECK(contains(outcome.err, "guard was killed\n  try: find out what ends processes there\n"));
  CHECK_FALSE(contains(outcome.err, "network"));
}

TEST_CASE("repeated reports of a loss by one rank count once") {
  struct Repeating : FakeAgent {
    void on_go() override {
      for (int i = 0; i < 5; ++i) send(wire::RankLost{0, 2, "is slow"});
      for (const std::uint32_t by : {0, 1}) send(wire::RankLost{by, 3, "is silent"});
      later(100ms, [this] { finish_all(1); });
    }
  } a;
  struct Failing : FakeAgent {
    void on_go() override {
      later(200ms, [this] { finish_all(1); });
    }
  } b;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:2,b:2");
  CHECK(outcome.code == 1);
  CHECK(contains(outcome.err, "error: rank 3 on host b ended with exit code 1"));
}

// Reports Started only when the test says so, like a host with many ranks.
struct SlowStarter : FakeAgent {
  SlowStarter() { tells_started = false; }
};

TEST_CASE("ranks may take longer to start than a host to answer") {
  struct Slow : SlowStarter {
    void on_go() override {
      later(1500ms, [this] {
        send_started();
        finish_all(0);
      });
    }
  } a;
  JobSpec spec;
  spec.access.start_timeout = 100ms;  // and a second
  const Outcome outcome = supervise({{"a", &a}}, "a:2", spec);
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
}

TEST_CASE("a rank that fails before the last has been started is the cause") {
  struct Failing : SlowStarter {
    void on_go() override { exit_rank(0, {0, false, 7, false, false, 0, false, false}); }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:2");
  CHECK(outcome.code == 7);
  CHECK(contains(outcome.err, "rank 0 on host a ended with exit code 7"));
  CHECK(a.ended);
}

TEST_CASE("ranks have ended when all have ended or will not be started") {
  boost::asio::io_context io;
  Job job(io.get_executor(), JobSpec{});
  job.add_host({});
  LaunchPlan plan;
  plan.hosts.resize(1);
  for (const int rank : {0, 1}) plan.ranks.emplace_back().identity.rank = rank;
  job.begin_epoch(plan);
  Slot &first = job.slots.of_rank(0), &second = job.slots.of_rank(1);
  CHECK(!job.have_ranks_ended());  // none may run yet
  job.stage.begin_ranks();
  second.open_streams = 1;
  first.phase = Slot::Phase::kEnded;
  CHECK(!job.have_ranks_ended());
  second.open_streams = 0;  // closed by an agent that starts no more ranks
  CHECK(job.have_ranks_ended());
  second.phase = Slot::Phase::kRunning;  // without streams
  CHECK(!job.have_ranks_ended());
  second.phase = Slot::Phase::kEnded;
  CHECK(job.have_ranks_ended());
}

TEST_CASE("a process that SIGKILL does not end is named, even after SIGTERM to hvrun") {
  struct Stuck : FakeAgent {
    void on_go() override {
      later(10ms, [] { ::kill(::getpid(), SIGTERM); });
    }
    void on_end() override {
      exit_rank(0, {0, true, SIGTERM, true, false, 0, false, false});
      later(2200ms,
            [this] { send(wire::Empty{{"pid 12 (train)"}}); });  // the agent's search takes 2 s
    }
  } a;
  JobSpec spec;
  spec.ending.grace = 100ms;
  const Outcome outcome = supervise({{"a", &a}}, "a:2", spec);
  CHECK(outcome.code == 143);
  CHECK(contains(outcome.err, "on host a pid 12 (train) is stuck in the kernel (state D)"));
}

TEST_CASE("a silent host is lost after --lost-after") {
  struct Silent : FakeAgent {
    void on_go() override { answers_pings = false; }
  } a;
  JobSpec spec;
  spec.ending.lost_after = 600ms;
  const Outcome outcome = supervise({{"a", &a}}, "a:1", spec);
  CHECK(outcome.code == 5);
  CHECK(contains(outcome.err, "silent for 0.6 s"));
}

TEST_CASE(
    "a program that is missing everywhere is one error naming all hosts, and nothing starts") {
  struct Lacking : FakeAgent {
    bool has_gone = false;
    void on_launch() override { send(wire::Problem{"program train: not found", "install it"}); }
    void on_go() override { has_gone = true; }
  } a, b;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
  CHECK(outcome.code == 3);
  CHECK(contains(outcome.err, "error: on a,b: program train: not found"));
  CHECK(contains(outcome.err, "try: install it"));
  CHECK_FALSE(a.has_gone);
}

TEST_CASE("a host that cannot be reached is named, and the other agents are ended") {
  FakeAgent a;
  const Outcome outcome = supervise({{"a", &a}}, "a:1,dead:1");
  CHECK(outcome.code == 3);
  CHECK(contains(outcome.err, "connect to host dead: no such host"));
  CHECK(a.ended);
  CHECK(a.launch.ranks.empty());
}

TEST_CASE("an agent of another build is refused") {
  struct Other : FakeAgent {
    void on_start() override {
      wire::Hello hello;
      hello.build = "another";
      send(hello);
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 3);
  CHECK(contains(outcome.err, "another build"));
}

TEST_CASE("an agent that reports impossible values of MPI or of an end is a lost host") {
  struct Babbling : FakeAgent {
    std::function<void(FakeAgent&)> act;
    void on_go() override {
      act(*this);
      later(1s, [this] { finish_all(0); });
    }
  };
  const auto expect_refusal = [](std::function<void(FakeAgent&)> act) {
    Babbling a;
    a.act = std::move(act);
    const Outcome outcome = supervise({{"a", &a}}, "a:1");
    CAPTURE(outcome.err);
    CHECK(outcome.code == 5);
    CHECK(contains(outcome.err, "broke the protocol"));
  };
  expect_refusal([](FakeAgent& a) { a.send(wire::MpiMissed{0}); });
  expect_refusal([](FakeAgent& a) { a.send(wire::MpiBegun{0}); });
  expect_refusal([](FakeAgent& a) {
    a.send(wire::FenceStalled{60, false, static_cast<wire::Meeting>(wire::kMeetings)});
  });
  for (wire::MpiEnd wire::Exited::*end : {&wire::Exited::pmi_end, &wire::Exited::pmix_end})
    expect_refusal([end](FakeAgent& a) {
      wire::Exited exited;
      exited.*end = static_cast<wire::MpiEnd>(3);
      a.send(exited);
    });
  const std::string text(wire::PostMortem::kMostWords + 1, 'x');
  for (const wire::PostMortem& found :
       {wire::PostMortem{text, {}, ""}, wire::PostMortem{"", {}, text},
        wire::PostMortem{"", static_cast<wire::OutOfMemory>(5), ""}})
    expect_refusal([&found](FakeAgent& a) {
      wire::Exited exited;
      exited.found = found;
      a.send(exited);
    });
}

TEST_CASE("an agent that sends an invalid message is a lost host") {
  struct Babbling : FakeAgent {
    void on_go() override { send(wire::Output{77, 1, false, 0, "not my rank"}); }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 5);
  CHECK(contains(outcome.err, "broke the protocol"));
}

TEST_CASE("--timeout ends the job with code 4") {
  struct Waiting : FakeAgent {
    void on_go() override {}
  } a;
  JobSpec spec;
  spec.ending.timeout = 100ms;
  const Outcome outcome = supervise({{"a", &a}}, "a:1", spec);
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err, "--timeout"));
  CHECK(a.ended);
}

TEST_CASE("SIGINT ends the job with 130, SIGUSR1 goes to the ranks only") {
  struct Waiting : FakeAgent {
    void on_go() override {
      ::kill(::getpid(), SIGUSR1);
      later(50ms, [] { ::kill(::getpid(), SIGINT); });
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 130);
  CHECK(a.signals == std::vector<int>{SIGUSR1});
  CHECK(a.ended);
}

namespace {

// Continues this process as soon as it has been stopped.
void continue_when_stopped() {
  const pid_t stopped = ::getpid();
  if (::fork() != 0) return;
  const std::string file = "/proc/" + std::to_string(stopped) + "/stat";
  for (std::string stat;; std::this_thread::yield()) {
    std::getline(std::ifstream(file), stat);
    const std::size_t name_ends = stat.rfind(')');
    if (name_ends != std::string::npos && stat.compare(name_ends, 3, ") T") == 0) break;
    if (::getppid() != stopped) ::_exit(1);
  }
  ::kill(stopped, SIGCONT);
  ::_exit(0);
}

}  // namespace

TEST_CASE("Ctrl-Z pauses heartbeats before it stops any rank, until the last host has continued") {
  struct Stopped : FakeAgent {
    std::vector<std::string> heard;
    bool is_late = false, has_continued = false;
    void on_go() override {
      if (is_late) return;
      continue_when_stopped();
      ::kill(::getpid(), SIGTSTP);
    }
    void hear(const wire::Silence& silence) {
      heard.push_back((silence.allowed ? "allowed after " : "over after ") +
                      std::to_string(pauses.size()));
      const auto note = [this, number = silence.number] {
        has_continued = pauses.size() == 2;
        send(wire::SilenceNoted{number});
      };
      is_late&& pauses.size() == 2 ? later(50ms, note) : note();
      if (!silence.allowed) finish_all(0);
    }
  } prompt, late;
  late.is_late = true;
  bool had_late_continued = false;
  prompt.on_silence = [&](const wire::Silence& silence) {
    if (!silence.allowed) had_late_continued = late.has_continued;
    prompt.hear(silence);
  };
  late.on_silence = [&](const wire::Silence& silence) { late.hear(silence); };
  const Outcome outcome = supervise({{"a", &prompt}, {"b", &late}}, "a:1,b:1");
  CHECK(outcome.code == 0);
  const std::vector<std::string> due{"allowed after 0", "allowed after 2", "over after 2"};
  CHECK(prompt.heard == due);
  CHECK(late.heard == due);
  CHECK(had_late_continued);
  REQUIRE(late.pauses.size() == 2);
  CHECK(late.pauses[0].stopped);
  CHECK_FALSE(late.pauses[1].stopped);
}

TEST_CASE("the end of the job is written as JSON") {
  struct Failing : FakeAgent {
    void on_go() override { exit_rank(0, {0, true, SIGSEGV, false, true, 0, false, false}); }
  } a;
  JobSpec spec;
  spec.output.summary_file = "/tmp/hvrun-summary-test-" + std::to_string(::getpid());
  supervise({{"a", &a}}, "a:1", spec);
  std::stringstream text;
  text << std::ifstream(spec.output.summary_file).rdbuf();
  ::unlink(spec.output.summary_file.c_str());
  CHECK(contains(text.str(), "\"state\": \"rank_failed\""));
  CHECK(contains(text.str(), "\"exit_code\": 139"));
  CHECK(contains(text.str(), "\"signal\": 11"));
}

TEST_CASE("output that cannot be written never ends in exit code 0, however late the error comes") {
  for (int round = 0; round < 20; ++round) {
    struct Printing : FakeAgent {
      void on_go() override {
        output(0, "hi\n");
        finish_all(0);
      }
    } a;
    const hv::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC)), err = scratch_file();
    OutputOptions output;
    output.stdout_fd = full.get();
    output.stderr_fd = err.get();
    JobSpec spec;
    spec.programs = {{{"train"}}};
    const hv::Environment environment;
    std::map<std::string, FakeAgent*> agents{{"a", &a}};
    const int code =
        supervise_job(spec, parse_host_expression("a:1"), environment, [&](const JobSpec&) {
          return SupervisedParts{std::make_unique<FakeSpawner>(agents), output};
        });
    CHECK(code == 3);
    CHECK(contains(content_of(err), "No space left on device"));
  }
}

TEST_CASE("a host lost while the job is being ended is swept, too") {
  struct Vanishing : FakeAgent {
    int starts = 0;
    void on_start() override {
      ++starts;
      FakeAgent::on_start();
    }
    void on_go() override {
      later(10ms, [] { ::kill(::getpid(), SIGINT); });
    }
    void on_end() override { vanish(); }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 130);
  CHECK(a.starts == 2);
  CHECK(a.setup.sweep);
}

TEST_CASE("--timeout counts while hosts are still connecting") {
  struct Slow : FakeAgent {
    void on_start() override {}  // never sends Hello
  } a;
  JobSpec spec;
  spec.ending.timeout = 100ms;
  const Outcome outcome = supervise({{"a", &a}}, "a:1", spec);
  CHECK(outcome.code == 4);
  CHECK(a.launch.ranks.empty());
}

TEST_CASE("the exit that came first is the cause, although a host's clock is an hour off") {
  struct First : FakeAgent {
    void on_go() override { exit_rank(0, {0, false, 7, false, false, 0, false, false}); }
  } a;
  struct Second : FakeAgent {
    void on_go() override {
      later(100ms, [this] { exit_rank(1, {0, false, 9, false, false, 0, false, false}); });
    }
    std::int64_t clock_ns() override { return hv::wall_clock_ns() - 3'600'000'000'000; }
  } b;
  CHECK(supervise({{"a", &a}, {"b", &b}}, "a:1,b:1").code == 7);
}

TEST_CASE("log lines and ranks' lines on one stream are each whole, whatever thread logs") {
  constexpr int kLines = 200;
  struct Agent : FakeAgent {
    std::thread logger;
    int sent = 0;
    void on_go() override {
      logger = std::thread([] {
        for (int i = 0; i < kLines; ++i) HV_LOG(kWarn, "test") << "log " << i << " end";
      });
      in_halves();
    }
    // The second half of each line comes only after other lines.
    void in_halves() {
      if (sent == 2 * kLines) {
        logger.join();
        return finish_all(0);
      }
      const std::string number = std::to_string(sent / 2);
      output(0, sent++ % 2 == 0 ? "rank " + number : " end\n");
      later(0ms, [this] { in_halves(); });
    }
  } a;
  const hv::UniqueFd both = scratch_file();
  const Outcome outcome = supervise({{"a", &a}}, "a:1", {}, &both);
  CHECK(outcome.code == 0);
  int logged = 0, written = 0;
  for (const std::string& line : hv::split(content_of(both), '\n')) {
    if (line == "[0] rank " + std::to_string(written) + " end") ++written;
    const std::string log = " warn hvrun test: log " + std::to_string(logged) + " end";
    if (line.size() == 12 + log.size() && line.compare(12, log.size(), log) == 0) ++logged;
  }
  CHECK(written == kLines);
  CHECK(logged == kLines);
}

TEST_CASE("coroutines that wait for a change with different limits do not wake each other") {
  boost::asio::io_context io;
  Change change(io.get_executor());
  int wakes = 0;
  const auto wait = [&](hv::Duration limit) -> boost::asio::awaitable<void> {
    const hv::TimePoint deadline = hv::now() + limit;
    while (hv::now() < deadline) {
      co_await change.wait(deadline);
      ++wakes;
    }
  };
  boost::asio::co_spawn(io, wait(30ms), boost::asio::detached);
  boost::asio::co_spawn(io, wait(60ms), boost::asio::detached);
  io.run();
  CHECK(wakes == 2);
}
