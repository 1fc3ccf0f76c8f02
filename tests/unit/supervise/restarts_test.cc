// Tests of launcher/supervise/restarts, and of jobs over scripted agents that start again.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/restarts.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <set>

#include "tests/unit/supervise/supervised.h"
#include "tests/unit/temporary_folder.h"

using namespace hv::launcher;
namespace wire = hv::wire;
using namespace std::chrono_literals;

namespace {

EndingSpec restarts(int most, hv::Duration delay = 1s) {
  EndingSpec spec;
  spec.restarts = most;
  spec.restart_delay = delay;
  return spec;
}

JobSpec job_with_restarts(int most, hv::Duration delay = 0s) {
  JobSpec spec;
  spec.ending = restarts(most, delay);
  return spec;
}

std::map<std::string, std::string> environment_of_rank(const FakeAgent& agent) {
  const auto& environment = agent.launch.ranks.at(0).environment;
  return {environment.begin(), environment.end()};
}

std::size_t entries_in(const char* directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), {}));
}

// Its rank ends with this code in every attempt.
struct Failing : FakeAgent {
  explicit Failing(std::uint32_t with_code) : code(with_code) {}
  void on_go() override {
    ++attempts;
    finish_all(code);
  }
  const std::uint32_t code;
  int attempts = 0;
};

}  // namespace

TEST_CASE("which ends start a job again, after how long, and what the user is told otherwise") {
  struct Case {
    EndedAttempt ended;
    EndingSpec spec;
    std::optional<hv::Duration> delay;
    const char* why_not;
  };
  const Case cases[] = {
      {{"rank_failed", 7, 0}, restarts(3), 1s, ""},
      {{"rank_failed", 139, 1}, restarts(3), 2s, ""},
      {{"host_lost", 3, 2}, restarts(3), 4s, ""},
      {{"not_started", 3, 1}, restarts(3), 2s, ""},
      {{"rank_failed", 7, 4}, restarts(99), 16s, ""},
      {{"rank_failed", 7, 5}, restarts(99), 30s, ""},
      {{"rank_failed", 7, 98}, restarts(99), 30s, ""},
      {{"rank_failed", 7, 0}, restarts(3, 0s), 0s, ""},
      {{"rank_failed", 7, 9}, restarts(99, 0s), 0s, ""},
      {{"rank_failed", 7, 9}, restarts(99, 60s), 60s, ""},
      {{"rank_failed", 7, 3}, restarts(3), {}, "used up (--restarts 3)"},
      {{"rank_failed", 7, 0}, restarts(0), {}, ""},
      {{"rank_failed", 2, 0}, restarts(3), {}, "exit code 2"},
      {{"not_started", 2, 1}, restarts(3), {}, "exit code 2"},
      {{"not_started", 3, 0}, restarts(3), {}, "it never ran"},
      {{"rank_failed", 7, 0, false, "the job was sent SIGUSR1"}, restarts(3), {}, "sent SIGUSR1"},
      {{"rank_failed", 7, 0, true}, restarts(3), {}, ""},
      {{"rank_failed", 7, 0, true, "--timeout 5 s is over"}, restarts(3), {}, "5 s is over"},
      {{"host_lost", 3, 0, true}, restarts(3), {}, ""},
      {{"ok", 0, 0}, restarts(3), {}, ""},
      {{"timeout", 4, 0, true}, restarts(3), {}, ""},
      {{"timeout", 4, 0}, restarts(3), {}, ""},
      {{"interrupted", 130, 0}, restarts(3), {}, ""},
      {{"output_closed", 141, 0}, restarts(3), {}, ""},
      {{"output_failed", 3, 0}, restarts(3), {}, ""}};
  for (const Case& each : cases) {
    CAPTURE(each.ended.state);
    CAPTURE(each.ended.exit_code);
    CAPTURE(each.ended.restarts);
    const RestartDecision decision = decide_restart(each.ended, each.spec);
    CHECK(decision.delay == each.delay);
    CHECK(decision.why_not.empty() == (each.why_not[0] == '\0'));
    CHECK(contains(decision.why_not, each.why_not));
  }
}

TEST_CASE("restarts have directories of their own, below that of the first attempt") {
  JobSpec spec;
  CHECK(spec_of_attempt(spec, 1).output.output_directory.empty());
  spec.output.output_directory = "logs";
  CHECK(spec_of_attempt(spec, 0).output.output_directory == "logs");
  CHECK(spec_of_attempt(spec, 2).output.output_directory == "logs/restart.2");
  spec.output.output_directory = "logs/";
  CHECK(spec_of_attempt(spec, 1).output.output_directory == "logs/restart.1");
}

TEST_CASE("a job whose rank fails starts again as another job, until its ranks end well") {
  struct Healing : FakeAgent {
    std::set<std::string> ids;
    std::vector<std::string> numbers;
    void on_go() override {
      std::map<std::string, std::string> environment = environment_of_rank(*this);
      ids.insert(environment["HVRUN_JOB_ID"]);
      numbers.push_back(environment["HVRUN_RESTART"]);
      output(0, "attempt " + environment["HVRUN_RESTART"] + "\n");
      finish_all(numbers.size() < 3 ? 7 : 0);
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:1", job_with_restarts(3));
  CHECK(outcome.code == 0);
  CHECK(a.ids.size() == 3);
  CHECK(a.numbers == std::vector<std::string>{"0", "1", "2"});
  CHECK(contains(outcome.out, "[0] attempt 0\n[0] attempt 1\n[0] attempt 2\n"));
  CHECK(contains(outcome.err,
                 "hvrun: the job starts again now (restart 2 of 3): rank 0 on host a ended with "
                 "exit code 7 after "));
  CHECK_FALSE(contains(outcome.err, "used up"));
}

TEST_CASE("after the last restart the exit code is that of the last attempt") {
  Failing a(9);
  const Outcome outcome = supervise({{"a", &a}}, "a:1", job_with_restarts(2));
  CHECK(outcome.code == 9);
  CHECK(a.attempts == 3);
  CHECK(contains(outcome.err,
                 "the job does not start again: its restarts are used up (--restarts 2)\n"));
}

TEST_CASE("a lost host starts the job again, and a start that fails then uses a restart") {
  struct Rebooting : FakeAgent {
    int starts = 0, goes = 0;
    // The second agent sweeps what the first one may have left; the third cannot do its part.
    void on_start() override {
      if (++starts == 3) return vanish();
      FakeAgent::on_start();
    }
    void on_go() override {
      if (++goes > 1) return finish_all(0);
      later(10ms, [this] { vanish(); });
    }
  } a;
  FakeAgent b;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1", job_with_restarts(2));
  CHECK(outcome.code == 0);
  CHECK(a.goes == 2);
  CHECK(contains(outcome.err, "(restart 1 of 2): host a with rank 0 was lost: "));
  CHECK(contains(outcome.err, "(restart 2 of 2): start the agent"));
}

TEST_CASE("a first start that fails, a usage error and a forwarded signal start nothing again") {
  const Outcome unreachable = supervise({}, "a:1", job_with_restarts(3));
  CHECK(unreachable.code == 3);
  CHECK(contains(unreachable.err, "the job does not start again: it never ran"));
  Failing misused(2);
  CHECK(supervise({{"a", &misused}}, "a:1", job_with_restarts(3)).code == 2);
  CHECK(misused.attempts == 1);
  struct Warned : FakeAgent {
    int attempts = 0;
    void on_go() override {
      ++attempts;
      ::kill(::getpid(), SIGUSR1);
      end_when_warned();
    }
    void end_when_warned() {
      if (!signals.empty()) return finish_all(7);
      later(1ms, [this] { end_when_warned(); });
    }
  } warned;
  const Outcome outcome = supervise({{"a", &warned}}, "a:1", job_with_restarts(3));
  CHECK(outcome.code == 7);
  CHECK(contains(outcome.err, "the job does not start again: the job was sent SIGUSR1"));
  CHECK(warned.attempts == 1);
}

TEST_CASE("a job that its scheduler ends, or has warned through the agents, does not start again") {
  struct Warned : FakeAgent {
    int attempts = 0;
    void on_go() override {
      ++attempts;
      send(wire::Signal{SIGUSR2});
      finish_all(7);
    }
  } warned;
  const Outcome after_warning = supervise({{"a", &warned}}, "a:1", job_with_restarts(3));
  CHECK(after_warning.code == 7);
  CHECK(contains(after_warning.err, "does not start again: the job was sent SIGUSR2"));
  CHECK(warned.attempts == 1);

  struct Terminated : FakeAgent {
    int attempts = 0;
    bool is_in_step = false;
    void on_go() override {
      ++attempts;
      if (is_in_step) send(wire::Signal{SIGTERM});
      send(wire::Problem{"its agent was ended by SIGTERM", "look", true});
      end_running_ranks();
    }
  };
  for (const bool is_slurm : {true, false}) {
    Terminated a;
    a.is_in_step = is_slurm;
    const Outcome outcome = supervise({{"a", &a}}, "a:1", job_with_restarts(1));
    CHECK(a.attempts == (is_slurm ? 1 : 2));
    CHECK(contains(outcome.err, "Slurm has sent its agents SIGTERM") == is_slurm);
  }
}

TEST_CASE("nor does one that Slurm ends while it starts again, or once a rank has failed") {
  struct Late : FakeAgent {
    int attempts = 0;
    void on_go() override {
      ++attempts;
      finish_all(7);
    }
    void on_end() override {
      send(wire::Signal{SIGTERM});
      end_running_ranks();
    }
  } late;
  const Outcome after_failure = supervise({{"a", &late}}, "a:1", job_with_restarts(3));
  CHECK(late.attempts == 1);
  CHECK(contains(after_failure.err, "does not start again: Slurm has sent its agents SIGTERM"));

  struct Starting : FakeAgent {
    int set_ups = 0;
    void on_setup() override {
      if (++set_ups == 1) return FakeAgent::on_setup();
      send(wire::Signal{SIGTERM});
      send(wire::Problem{"its agent was ended by SIGTERM", "look", true});
    }
    void on_go() override { finish_all(7); }
  } starting;
  const Outcome while_starting = supervise({{"a", &starting}}, "a:1", job_with_restarts(3));
  CHECK(starting.set_ups == 2);
  CHECK(contains(while_starting.err, "does not start again: Slurm has sent its agents SIGTERM"));
}

TEST_CASE("--timeout limits all attempts together, with the time between them") {
  for (const hv::Duration delay : {hv::Duration(0s), hv::Duration(1h)}) {
    Failing a(7);
    JobSpec spec = job_with_restarts(10000, delay);
    spec.ending.timeout = 500ms;
    const Outcome outcome = supervise({{"a", &a}}, "a:1", spec);
    CHECK((outcome.code == 4 || outcome.code == 7));  // 7: an attempt was just ending
    CHECK(contains(outcome.err, "--timeout 0.5 s"));
    if (delay > 0s) CHECK(contains(outcome.err, "try: a longer --timeout\n"));
  }
}

TEST_CASE("a job that starts again and again keeps neither descriptors nor threads") {
  struct Counting : FakeAgent {
    std::vector<std::size_t> descriptors, threads;
    void on_go() override {
      descriptors.push_back(entries_in("/proc/self/fd"));
      threads.push_back(entries_in("/proc/self/task"));
      finish_all(7);
    }
  } a;
  supervise({{"a", &a}}, "a:1", job_with_restarts(20));
  REQUIRE(a.descriptors.size() == 21);
  CHECK(a.descriptors.back() == a.descriptors[1]);
  CHECK(a.threads.back() == a.threads[1]);
}

TEST_CASE("the summary is that of the last attempt, with the number of restarts") {
  const hv::tests::TemporaryFolder folder;
  Failing a(7);
  JobSpec spec = job_with_restarts(1);
  spec.output.summary_file = folder.path() + "/end.json";
  spec.output.output_directory = folder.path() + "/logs";
  supervise({{"a", &a}}, "a:1", spec);
  const std::string summary = hv::tests::file_content(spec.output.summary_file);
  CHECK(contains(summary, "\"restarts\": 1,\n  \"is_restarted\": false"));
  CHECK(hv::tests::file_content(folder.path() + "/logs/restart.1/job.json") == summary);
  CHECK(contains(hv::tests::file_content(folder.path() + "/logs/job.json"),
                 "\"restarts\": 0,\n  \"is_restarted\": true"));
}
