// Tests of launcher/supervise/report/exit_summary.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/exit_summary.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "launcher/record/end_text.h"
#include "launcher/record/record_json.h"

using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

// A job of two ranks on each of two hosts, whose ranks have ended as a test says.
struct EndedJob {
  boost::asio::io_context io;
  Job job;
  std::map<int, std::vector<std::string>> lines;
  JobEnd end{1, "rank_failed", {}, "", 2.25};

  explicit EndedJob(const std::vector<int>& host_of_rank = {0, 0, 1, 1}, std::size_t hosts = 2,
                    JobSpec spec = {})
      : job(io.get_executor(), std::move(spec)) {
    LaunchPlan plan;
    for (std::size_t host = 0; host < hosts; ++host) {
      HostTarget target;
      target.name = host == 0 ? "a" : "b";
      job.add_host(target);
      plan.hosts.emplace_back().entry = host;
    }
    for (const int host : host_of_rank) {
      PlannedRank& rank = plan.ranks.emplace_back();
      rank.identity.rank = static_cast<int>(plan.ranks.size()) - 1;
      rank.host = host;
    }
    job.begin_epoch(plan);
  }
  void ended(int rank, hv::ExitStatus status, bool by_hvrun = false) {
    job.policy->rank_ended({rank, status, by_hvrun, rank}, hv::now());
  }
  void killed_after(int rank, double grace_s,
                    hv::wire::SigtermUse use = hv::wire::SigtermUse::kDefault) {
    RankEnd killed;
    killed.rank = rank;
    killed.status = {true, 9};
    killed.signal_was_ours = true;
    killed.on_sigterm = use;
    killed.grace_s = grace_s;
    job.policy->rank_ended(killed, hv::now());
  }
  std::string text() {
    end.cause = job.policy->cause();
    return end_text(record_of(job, end), [this](int rank) { return lines[rank]; });
  }
  nlohmann::json json() {
    if (job.policy->failed()) end.cause = job.policy->cause();
    return nlohmann::json::parse(
        record_as_json(record_of(job, end), [this](int rank) { return lines[rank]; }));
  }
};

// The text of libhvrun.
const std::string kSilent =
    "gave no sign of life for 3 s (HVRUN_PEER_TIMEOUT): it is stopped or its host hangs, or the "
    "link to it is dead";

hv::ExitStatus exited(int code) { return {false, code}; }
hv::ExitStatus killed(int signal) { return {true, signal}; }

}  // namespace

TEST_CASE("the summary names the rank, its host, how it ended and its last lines") {
  EndedJob job;
  job.lines[1] = {"Traceback", "ValueError: \x1b[31mno"};
  job.ended(1, killed(11));
  CHECK(job.text() ==
        "hvrun: error: rank 1 on host a ended with SIGSEGV (Segmentation fault) after 2.25 s\n"
        "hvrun: its last lines:\n"
        "    Traceback\n"
        "    ValueError: \\x1b[31mno\n");
}

TEST_CASE("ranks that SIGKILL had to end are told, with what their programs do with SIGTERM") {
  using hv::wire::SigtermUse;
  const auto told = [](SigtermUse use, double grace_s, JobSpec spec = {}) {
    EndedJob job({0, 0, 1, 1}, 2, std::move(spec));
    job.ended(0, exited(1));
    job.killed_after(1, grace_s);
    job.killed_after(2, grace_s, use);
    job.killed_after(3, grace_s, use);
    return job.text();
  };
  CHECK(told(SigtermUse::kHandled, 0).find("SIGKILL") == std::string::npos);  // a second signal
  CHECK(told(SigtermUse::kHandled, 3)
            .ends_with("hvrun: SIGKILL ended rank 1 (host a) after 3 s\n"
                       "hvrun: SIGKILL ended ranks 2-3 (host b) after 3 s; they caught SIGTERM\n"));
  CHECK(told(SigtermUse::kIgnored, 3).ends_with("(host b) after 3 s; they ignored SIGTERM\n"));
  CHECK(told(SigtermUse::kHandledByDescendant, 3)
            .ends_with("(host b) after 3 s; only descendants of them caught SIGTERM\n"));
  JobSpec spec;
  spec.ending.grace = 300ms;
  CHECK(told(SigtermUse::kIgnored, 0.3, spec)
            .ends_with("after --grace 0.3 s; they ignored SIGTERM\n"));
  // A lost host, or the loss of hvrun, has shortened it.
  CHECK(told(SigtermUse::kIgnored, 0.2, spec).ends_with("after 0.2 s; they ignored SIGTERM\n"));
}

TEST_CASE("an exit code that hvrun's own errors have, too, is told as the program's") {
  for (const int code : {1, 2, 3, 4, 5, 6}) {
    EndedJob job;
    job.ended(2, exited(code));
    const std::string text = "hvrun: " + std::to_string(code) + " is the program's own exit code";
    CHECK((job.text().find(text) != std::string::npos) == (code > 1 && code < 6));
  }
  EndedJob job;
  job.ended(2, killed(2));
  CHECK(job.text().find("own exit code") == std::string::npos);
}

TEST_CASE("a rank that wanted input is told how to get it, unless it had some") {
  for (const char* last : {"EOFError: EOF when reading a line", "bdb.BdbQuit",
                           "[rank2]: EOFError: EOF when reading a line", "[rank2]: bdb.BdbQuit"}) {
    EndedJob job;
    job.lines[2] = {"Traceback (most recent call last):", last};
    job.ended(2, exited(1));
    const std::string advice =
        "  try: --stdin=2 hands hvrun's standard input to this rank and no other; without it a "
        "rank has "
        "/dev/null\n";
    CHECK(job.text().find(advice) != std::string::npos);
    JobRecord record = record_of(job.job, job.end);
    record.ranks[2].has_input = true;
    const auto lines = [&job](int rank) { return job.lines[rank]; };
    CHECK(end_text(record, lines).find("try:") == std::string::npos);
    std::swap(record.ranks[2].has_input, record.ranks[0].has_input);
    CHECK(end_text(record, lines).find(advice) != std::string::npos);
  }
}

TEST_CASE("a rank that was killed after it had written nothing for long may have held text back") {
  const std::string text = " wrote nothing for 12.5 s";
  EndedJob job;
  job.job.slots.of_rank(1).quiet = 12500ms;
  job.ended(1, killed(11));
  CHECK(job.text().find(text) == std::string::npos);  // nothing is known of its program
  JobRecord record = record_of(job.job, job.end);
  const auto told = [&record] {
    return end_text(record, [](int) { return std::vector<std::string>(); });
  };
  record.ranks[1].quiet_s = 12.5;
  CHECK(told().find("hvrun: rank 1" + text +
                    " before that; C's printf holds text back where it "
                    "writes to a pipe\n  try: --pty, or stdbuf -oL program\n") !=
        std::string::npos);
  record.ranks[1].quiet_s = 4.9;
  CHECK(told().find(" wrote nothing") == std::string::npos);
  record.ranks[1].quiet_s = 12.5;
  record.ranks[1].end = exited(1);
  CHECK(told().find(" wrote nothing") == std::string::npos);
  record.cause.reset();  // Ctrl-C
  for (int rank = 0; rank < 3; ++rank) {
    record.ranks[static_cast<std::size_t>(rank)].end = killed(15);
    record.ranks[static_cast<std::size_t>(rank)].quiet_s = 12.5 + rank;
  }
  CHECK(told().find("hvrun: ranks 0-2" + text + " or longer before that") == 0);
}

TEST_CASE("a rank's quiet is known where it may hold text back, as its agent says: in a pipe") {
  const auto quiet_of = [](bool may_hold_text, bool pty) {
    boost::asio::io_context io;
    JobSpec spec;
    spec.output.pty = pty;
    Job job{io.get_executor(), spec};
    LaunchPlan plan;
    job.add_host({});
    plan.hosts.emplace_back();
    plan.ranks.emplace_back();
    job.begin_epoch(plan);
    job.slots.of_rank(0).quiet = 7s;
    RankEnd end{0, killed(9)};
    end.may_hold_text = may_hold_text;
    job.policy->rank_ended(end, hv::now());
    return record_of(job).ranks.at(0).quiet_s;
  };
  CHECK(quiet_of(true, false) == 7);
  CHECK(quiet_of(true, true) == 0);
  CHECK(quiet_of(false, false) == 0);
}

TEST_CASE("the summary says that the kernel may have killed a rank") {
  EndedJob job;
  job.ended(1, killed(9));
  CHECK(job.text() ==
        "hvrun: error: rank 1 on host a ended with SIGKILL (Killed) after 2.25 s\n"
        "hvrun: SIGKILL comes from a person or, where memory is short, from the kernel; dmesg on a "
        "tells which\n");
}

TEST_CASE("a rank that left before is reported below the cause, with the calls that it left out") {
  for (const bool never_joined : {false, true}) {
    EndedJob job;
    const RankEnd left{1, exited(0), false, 1, !never_joined, never_joined};
    job.job.policy->rank_ended(left, hv::now());
    job.job.policy->rank_ended({2, exited(1), false, 2, true}, hv::now());
    const std::string beginning =
        "hvrun: error: rank 2 on host b ended with exit code 1 after 2.25 s\n"
        "hvrun: before that rank 1 on host a had ended with exit code 0";
    const std::string end =
        never_joined
            ? " and had not joined the job (hvrun_init): if others still needed it, that "
              "is the reason\n  try: let every rank join (hvd.init(), hvrun_init), or start fewer "
              "ranks\n"
            : " without hvrun_shutdown: if others still needed it, that is the reason\n"
              "  try: let every rank take as many steps, or join where one has fewer (hvd.join(), "
              "hvrun_join)\n";
    CHECK(job.text() == beginning + end);
    CHECK(job.json()["cause"]["rank"] == 2);
  }
}

TEST_CASE("a rank that had left in order is reported so below the cause") {
  EndedJob job;
  job.job.policy->rank_ended({2, exited(1), false, 3, true}, hv::now());
  job.job.policy->rank_ended({1, exited(0), false, 4, false, false, 2}, hv::now());
  CHECK(job.text().find("before that rank 1 on host a had left the job (hvd.shutdown(), "
                        "hvrun_shutdown), and ended with exit code 0: if others") !=
        std::string::npos);
}

TEST_CASE("a rank that peers lost and that then ended with 0 is reported so") {
  EndedJob job;
  job.job.policy->named_lost(1, "was silent", 2);
  job.ended(2, exited(1));
  job.ended(1, exited(0));
  CHECK(
      job.text().find("rank 1 on host a was lost to the others: it ended with exit code 0 after") !=
      std::string::npos);
}

TEST_CASE("a rank that was lost while it was stopped is reported so, however hvrun then ended it") {
  EndedJob job;
  job.job.policy->named_lost(3, kSilent, 0);
  job.job.policy->stopped_ranks({3});
  job.ended(0, exited(1));
  job.end.cause = job.job.policy->cause();
  job.ended(3, killed(9), true);
  const std::string text =
      end_text(record_of(job.job, job.end), [](int) { return std::vector<std::string>(); });
  CHECK(text ==
        "hvrun: error: rank 3 on host b was lost to the others after 2.25 s: it " + kSilent +
            "; hvrun found it stopped (SIGSTOP, or a debugger)\n"
            "  try: find out what stopped it; HVRUN_PEER_TIMEOUT=0 lets the others wait for one "
            "that is being debugged\n"
            "hvrun: as a consequence also ended: rank 0 with exit code 1\n");
}

TEST_CASE("the advice names the network only where a rank was lost among several hosts") {
  for (const std::size_t hosts : {1, 2}) {
    EndedJob job({0, 0, 0, 0}, hosts);
    job.job.policy->named_lost(3, kSilent, 0);
    job.ended(0, exited(1));
    const std::string text = job.text();
    CHECK(text.find("rank 3 on host a was lost to the others after 2.25 s: it " + kSilent +
                    "; hvrun found it running\n  try: look what it is stuck in") !=
          std::string::npos);
    CHECK((text.find("network") != std::string::npos) == (hosts > 1));
  }
}

TEST_CASE("a program that misses a library gets advice, another exit code 127 does not") {
  for (const bool misses : {true, false}) {
    EndedJob job;
    job.lines[1] = {misses ? "./t: error while loading shared libraries: libx.so.0: cannot open"
                           : "sh: 1: trian: not found"};
    job.ended(1, exited(127));
    const std::string text = job.text();
    CHECK((text.find("  try: install that library on a, ") != std::string::npos) == misses);
    CHECK((text.find("-x LD_LIBRARY_PATH=DIR") != std::string::npos) == misses);
    if (!misses) continue;
    JobRecord record = record_of(job.job, job.end);
    record.findings.emplace_back().id = "library-missing";  // with a fix of its own
    CHECK(end_text(record, [](int) { return std::vector<std::string>(); }).find("install that") ==
          std::string::npos);
  }
}

TEST_CASE("equal last lines are shown once, with all their ranks") {
  EndedJob job;
  for (const int rank : {0, 2, 3})
    job.lines[rank] = {"[rank" + std::to_string(rank) + "]: ImportError: no torch"};
  job.lines[1] = {"something else"};
  for (int rank = 0; rank < 4; ++rank) job.ended(rank, exited(1));
  const std::string text = job.text();
  CHECK(text.find("hvrun: ranks 0,2-3 said, here as rank 0:\n    [rank0]: ImportError: no "
                  "torch\nhvrun: rank 1 said:\n    something else\n") != std::string::npos);
  CHECK(text.find("hvrun: also ended: ranks 1-3 with exit code 1\n") != std::string::npos);
  CHECK(text.find("ImportError") == text.rfind("ImportError"));
}

TEST_CASE("a rank that only lost a peer, or was ended by hvrun, is not quoted") {
  EndedJob job;
  for (int rank = 0; rank < 4; ++rank) job.lines[rank] = {"output of " + std::to_string(rank + 10)};
  job.ended(0, exited(1));
  job.ended(1, exited(3));
  job.job.policy->named_lost(0, "closed its connection", 2);
  job.ended(2, exited(1));
  job.ended(3, killed(15), true);
  const std::string text = job.text();
  CHECK(text.find("hvrun: its last lines:\n    output of 10\n") != std::string::npos);
  CHECK(text.find("hvrun: rank 1 said:\n    output of 11\n") != std::string::npos);
  CHECK(text.find("output of 12") == std::string::npos);
  CHECK(text.find("output of 13") == std::string::npos);
}

TEST_CASE("of many different texts five are shown besides the cause's, ten lines each") {
  EndedJob job({0, 0, 1, 1, 1, 1, 1, 1, 1});
  for (int rank = 0; rank < 9; ++rank) {
    for (int i = 0; i < 12; ++i)
      job.lines[rank].push_back(std::string(1, static_cast<char>('a' + rank)) + std::to_string(i));
    job.ended(rank, exited(1));
  }
  const std::string text = job.text();
  CHECK(text.find("    a0\n") != std::string::npos);
  CHECK(text.find("    b1\n") == std::string::npos);
  CHECK(text.find("    b2\n") != std::string::npos);
  CHECK(text.find("hvrun: rank 5 said:\n") != std::string::npos);
  CHECK(text.find("hvrun: and 3 more texts, of ranks 6-8\n") != std::string::npos);
}

TEST_CASE("the agent's findings about the cause are reported: the core file, and lack of memory") {
  using hv::wire::OutOfMemory;
  const auto finding_of = [](OutOfMemory out, hv::ExitStatus status) {
    EndedJob job;
    RankEnd end{1, status};
    end.found = {status.code == 11 ? "its core file is /c" : "", out, "by this"};
    job.job.policy->rank_ended(end, hv::now());
    const std::string text = job.text();
    return text.substr(text.find('\n') + 1);
  };
  CHECK(finding_of(OutOfMemory::kNotAsked, killed(11)) == "hvrun: its core file is /c\n");
  CHECK(finding_of(OutOfMemory::kThisRank, killed(9)) ==
        "hvrun: the kernel ended it for want of memory: by this\n  try: more memory for the job "
        "(Slurm: --mem), fewer ranks on a host, or smaller batches\n");
  CHECK(finding_of(OutOfMemory::kBesideIt, exited(1))
            .find("hvrun: the kernel ended a process beside it for want of memory: by this\n") ==
        0);
  CHECK(finding_of(OutOfMemory::kNo, killed(9)).find("hvrun: a person or a program killed it") ==
        0);
  CHECK(finding_of(OutOfMemory::kNo, exited(137)).empty());
  CHECK(finding_of(OutOfMemory::kUnknown, killed(9)) ==
        "hvrun: SIGKILL comes from a person or, where memory is short, from the kernel: by this; "
        "dmesg on a tells which\n");
}

TEST_CASE("ranks without output are not reported to have the same output") {
  EndedJob job;
  for (int rank = 0; rank < 4; ++rank) job.ended(rank, exited(1));
  CHECK(job.text().find("said the same") == std::string::npos);
}

TEST_CASE("a rank that ended as the cause did is its consequence only where it had lost a peer") {
  EndedJob job;
  for (const int rank : {0, 1}) job.ended(rank, exited(1));
  job.ended(2, exited(3));
  job.job.policy->named_lost(0, "closed its connection", 3);
  job.ended(3, exited(1));
  const std::string text = job.text();
  CHECK(text.find("hvrun: also ended: rank 1 with exit code 1\n"
                  "hvrun: as a consequence also ended: rank 3 with exit code 1; rank 2 with exit "
                  "code 3\n") != std::string::npos);
}

TEST_CASE("ranks that hvrun ended are not listed as consequences") {
  EndedJob job;
  job.ended(0, exited(1));
  job.ended(1, killed(15), true);
  CHECK(job.text().find("as a consequence") == std::string::npos);
}

TEST_CASE("a lost host is named with its ranks and the reason") {
  EndedJob job;
  job.job.policy->host_lost(1, "the connection was reset", {2, 3}, hv::now());
  const std::string text = job.text();
  CHECK(text.find("host b with ranks 2-3 was lost: the connection was reset\n") !=
        std::string::npos);
}

struct Loss {
  std::function<void(EndedJob&, Host&)> happens;
  std::string left_behind, text;
};

void lose_b(EndedJob& job, Host& host) {
  (void)host.phase.lose("reset");
  job.job.policy->host_lost(1, "reset", {2, 3}, hv::now());
}

void begin_sweep_of_b(EndedJob& job, Host& host) {
  lose_b(job, host);
  host.phase.begin_sweep();
}

void end_by_agent_of_b(EndedJob& job, Host& host) {
  for (const auto step :
       {&HostPhase::greet, &HostPhase::set_up, &HostPhase::make_ready, &HostPhase::start_ranks})
    REQUIRE((host.phase.*step)());
  host.phase.end(UnrequestedEnd{"ask", true});
  job.job.policy->host_lost(1, "ended by SIGTERM", {2, 3}, hv::now());
}

// text: after "hvrun: error: ".
void check_loss(const Loss& loss) {
  EndedJob job;
  job.job.identity.id = "j7";
  loss.happens(job, job.job.hosts.at(HostId{1}));
  const std::string text = job.text();
  CHECK(text == "hvrun: error: " + loss.text);
  const auto json = job.json();
  CHECK(json["cause"]["left_behind"] == loss.left_behind);
  CHECK(json["unswept"].size() == (loss.left_behind == "unknown" ? 1 : 0));
  const auto read = record_from_json(json.dump());
  CHECK(end_text(std::get<JobRecord>(read), [](int) { return std::vector<std::string>(); }) ==
        text);
}

const std::string kSoon = "what still runs there ends by itself within seconds";

TEST_CASE("what may still run on a lost host is told by what its second agent has reported") {
  const std::string lost = "host b with ranks 2-3 was lost: reset\nhvrun: ",
                    look = "look at that host and its network\n",
                    unswept =
                        "hvrun: processes of this job may still run on host b: no second agent "
                        "has ended them: ",
                    list =
                        "\n  try: once that host can be reached, list them there: grep -lsz "
                        "^HVRUN_JOB_ID=j7 /proc/[0-9]*/environ\n";
  const auto with_sweep = [](std::function<void(HostPhase&)> end) {
    return [end](EndedJob& job, Host& host) {
      begin_sweep_of_b(job, host);
      end(host.phase);
    };
  };
  for (const Loss& loss : std::vector<Loss>{
           {lose_b, "ends_soon", lost + kSoon + "; " + look},
           {with_sweep([](HostPhase& phase) { phase.become_empty(); }), "nothing",
            lost + "nothing of the job runs there any more; " + look},
           {with_sweep([](HostPhase& phase) { phase.become_empty(true); }), "named", lost + look},
           {with_sweep([](HostPhase& phase) {
              phase.finish_sweep(hv::Error(hv::ErrorKind::kStart, "connect to b: refused"));
            }),
            "unknown", lost + look + unswept + "connect to b: refused" + list},
           {begin_sweep_of_b, "unknown",
            lost + look + unswept + "none could be started in time" + list},
           {with_sweep([](HostPhase& phase) { phase.finish_sweep(); }), "unknown",
            lost + look + unswept + "the one that was started did not report in time" + list}})
    check_loss(loss);
}

TEST_CASE("the record of a running job does not give up a sweep that goes on") {
  EndedJob job;
  begin_sweep_of_b(job, job.job.hosts.at(HostId{1}));
  CHECK(record_of(job.job).hosts.at(1).left_behind == LeftBehind::kEndsSoon);
  CHECK(record_of(job.job).hosts.at(1).unswept.empty());
}

TEST_CASE("a sweep that confirms nothing counts more than ranks that have ended") {
  const auto sweep_of_ended = [](EndedJob& job, Host& host) {
    end_by_agent_of_b(job, host);
    for (const int rank : {2, 3})
      job.job.policy->rank_ended({rank, exited(0), true, rank}, hv::now());
    (void)host.phase.lose("reset");
    host.phase.begin_sweep();
    host.phase.finish_sweep();
  };
  EndedJob job;
  sweep_of_ended(job, job.job.hosts.at(HostId{1}));
  CHECK(job.json()["unswept"].size() == 1);
}

TEST_CASE("an end that an agent has reported is no loss, and leaves nothing once all have ended") {
  const std::string ended =
      "the job was ended on host b with ranks 2-3: ended by SIGTERM\n  try: ask\n";
  check_loss({end_by_agent_of_b, "ends_soon", ended + "hvrun: " + kSoon + "\n"});
  check_loss({[](EndedJob& job, Host& host) {
                end_by_agent_of_b(job, host);
                host.phase.become_empty();
              },
              "nothing", ended});
  check_loss({[](EndedJob& job, Host& host) {
                end_by_agent_of_b(job, host);
                host.phase.become_empty(true);
              },
              "named", ended});
  // Its connection breaks before it has said so.
  EndedJob job;
  Host& host = job.job.hosts.at(HostId{1});
  end_by_agent_of_b(job, host);
  for (const int rank : {2, 3}) job.ended(rank, killed(15), true);
  (void)host.phase.lose("reset");
  CHECK(job.text() == "hvrun: error: " + ended);
  // What the ranks had started may run on, unless a second agent says that nothing does.
  host.phase.begin_sweep();
  CHECK(job.text().find("may still run on host b") != std::string::npos);
  host.phase.finish_sweep(hv::Error(hv::ErrorKind::kStart, "connect to b: refused"));
  CHECK(job.text().find("may still run on host b") != std::string::npos);
}

TEST_CASE("a lost host that nothing has swept is named whatever ended the job") {
  EndedJob job;
  Host& host = job.job.hosts.at(HostId{0});
  (void)host.phase.lose("reset");
  host.phase.begin_sweep();
  job.end.state = "interrupted";
  CHECK(end_text(record_of(job.job, job.end), [](int) {
          return std::vector<std::string>();
        }).starts_with("hvrun: processes of this job may still run on host a: "));
}

TEST_CASE("a job that ended well has no summary, and its JSON has every rank's code") {
  EndedJob job;
  for (int rank = 0; rank < 4; ++rank) job.ended(rank, exited(0));
  job.end.state = "ok";
  job.end.exit_code = 0;
  const auto json = job.json();
  CHECK(end_text(record_of(job.job, job.end), [](int) { return std::vector<std::string>{"x"}; }) ==
        "");
  CHECK(json["state"] == "ok");
  CHECK(json["cause"].is_null());
  CHECK(json["size"] == 4);
  REQUIRE(json["ranks"].size() == 4);
  CHECK(json["ranks"][3]["host"] == "b");
  CHECK(json["ranks"][3]["exit_code"] == 0);
  CHECK(json["ranks"][3]["signal"].is_null());
}

TEST_CASE("the JSON names the cause, separates signals from codes, and takes output of any bytes") {
  EndedJob job;
  job.lines[2] = {"bad \xff byte"};
  job.ended(2, killed(9));
  job.ended(0, exited(1));
  const auto json = job.json();
  CHECK(json["cause"]["rank"] == 2);
  CHECK(json["cause"]["host"] == "b");
  CHECK(json["cause"]["last_lines"][0] == "bad \\xff byte");
  CHECK(json["ranks"][2]["signal"] == 9);
  CHECK(json["ranks"][2]["exit_code"].is_null());
  CHECK(json["ranks"][0]["exit_code"] == 1);
  CHECK(json["ranks"][1]["exit_code"].is_null());
}

TEST_CASE("a training is reported with its limit, whether the job ended well or not") {
  EndedJob job;
  CHECK(training_summary(record_of(job.job)) == "");
  CHECK(job.json()["training"].is_null());
  // 100 steps of 50 ms: rank 2 waits 30 ms of each for data, the others for rank 2.
  for (int rank = 0; rank < 3; ++rank) {
    const bool waits = rank == 2;
    job.job.slots.of_rank(rank).step_times = {100, 5'000'000'000, waits ? 3'000'000'000u : 0,
                                              waits ? 500'000'000u : 3'500'000'000u,
                                              waits ? 100u : 0};
  }
  CHECK(training_summary(record_of(job.job))
            .find("hvrun: the training was input-bound: a step took 50 ms: "
                  "data 30 ms (60 %), compute 15 ms (30 %), exchange, with "
                  "waiting for others, 5 ms (10 %); without the wait for "
                  "data it would take at best 20 ms; measured on 3 of 4 ranks\n"
                  "hvrun: rank 2 on host b was the slowest: the others waited "
                  "30 ms a step for it, as its wait for data is 30 ms longer "
                  "than theirs\n  try: ") == 0);
  job.ended(1, exited(1));
  const auto json = job.json();
  CHECK(json["training"]["bound"] == "input");
  CHECK(json["training"]["slowest_rank"] == 2);
  CHECK(json["training"]["slow_part"] == "data");
  CHECK(json["training"]["step_seconds"] == doctest::Approx(0.05));
  CHECK(json["training"]["step_seconds_without_bound"] == doctest::Approx(0.02));
  CHECK(json["training"]["data_share"] == doctest::Approx(0.6));
  CHECK(json["ranks"][0]["step_times"]["exchange_seconds"] == doctest::Approx(3.5));
  CHECK(json["ranks"][0]["step_times"]["compute_seconds"] == doctest::Approx(1.5));
  CHECK(json["ranks"][3]["step_times"].is_null());
}

TEST_CASE("the JSON of a job that could not start holds the error") {
  EndedJob job;
  job.job.policy.reset();
  job.end = {3, "not_started", {}, "host b: refused", 0.5};
  const auto json = nlohmann::json::parse(
      record_as_json(record_of(job.job, job.end), [](int) { return std::vector<std::string>{}; }));
  CHECK(json["error"] == "host b: refused");
  CHECK(json["exit_code"] == 3);
  CHECK(json["state"] == "not_started");
}
