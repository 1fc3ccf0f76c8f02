// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "launcher/check/report/report_text.h"
#include "tests/unit/check/made_up_hosts.h"

namespace hv::launcher {
namespace {

using Verdicts = std::vector<std::string>;

TEST_CASE("healthy hosts give no finding") {
  for (const std::size_t count : {1, 2, 9}) {
    const CheckInput input = healthy_hosts(count);
    const CheckReport report = judge(input);
    CHECK((report.findings.empty() && report.can_start()));
  }
}

TEST_CASE("reach tells what a launch met, by its name, hosts of one trouble together") {
  const std::pair<Error, const char*> cases[] = {
      {{ErrorKind::kStart, "find the address of host n2: Name or service not known"},
       "name-unknown"},
      {{ErrorKind::kStart, "connect to host n2: Connection refused"}, "ssh-refused"},
      {{ErrorKind::kStart, "connect to host n2: No route to host"}, "ssh-no-route"},
      {{ErrorKind::kTimeout, "connect to host n2: not done within 30 s (--start-timeout)"},
       "ssh-filtered"},
      {{ErrorKind::kStart, "connect to host n2: Connection timed out"}, "ssh-filtered"},
      {{ErrorKind::kStart, "check the key of host n2: it is not known here; it shows x"},
       "host-key-unknown"},
      {{ErrorKind::kStart, "check the key of host n2: THE KEY HAS CHANGED: it now shows x"},
       "host-key-changed"},
      {{ErrorKind::kStart, "log in to host n2: no key that was tried is accepted"},
       "login-refused"},
      {{ErrorKind::kStart, "copy the agent: no folder there can hold and run it: /tmp: full"},
       "agent-not-copied"},
      {{ErrorKind::kStart, "start the agent: its start-up files print without end"},
       "start-up-noise"},
      {{ErrorKind::kHostLost, "start the agent: the connection ended"}, "agent-not-started"},
      {{ErrorKind::kTimeout, "start the agent: no answer within --start-timeout"}, "agent-late"}};
  for (const auto& [error, verdict] : cases) {
    CAPTURE(error.what());
    CheckInput input = healthy_hosts(3);
    for (const std::size_t host : {1, 2}) {
      std::string text = error.what();
      if (const std::size_t at = text.find("n2"); at != std::string::npos)
        text.replace(at, 2, input.hosts[host].name);
      input.hosts[host].failure = Error(error.kind(), text);
      input.hosts[host].facts.reset();
      input.hosts[host].told.reset();
    }
    input.pairs.clear();
    CHECK(verdicts_of(input) == Verdicts{std::string(verdict) + ": n2 n3"});
    CHECK(!judge(input).can_start());
  }
}

TEST_CASE("a host that has answered no probe keeps the check from saying that a job could start") {
  CheckInput input = healthy_hosts(3);
  wire::CheckReply silent;
  for (const char* probe : {"program", "folders", "limits"})
    silent.unanswered.push_back({probe, "start it: Argument list too long"});
  input.hosts[1].told = silent;
  const CheckReport report = judge(input);
  CHECK(verdicts_of(input) == Verdicts{"nothing-known: n2"});
  CHECK_FALSE(report.can_start());
  CHECK(report.findings[0].fact == "n2: start it: Argument list too long");
  // One answer is enough.
  input.hosts[1].told->load.cores = 4;
  CHECK(judge(input).can_start());
}

TEST_CASE("a fact of reach is what the launch says of all these hosts, once") {
  CheckInput input = healthy_hosts(4);
  for (const std::size_t host : {0, 1, 3}) {
    const std::string name = host == 3 ? "" : " on host " + input.hosts[host].name;
    input.hosts[host].failure =
        Error(ErrorKind::kTimeout, "start the agent" + name + ": not done within 6 s");
  }
  const CheckReport report = judge(input);
  CHECK(report.findings.at(0).fact ==
        "n[1-2]: start the agent on hosts n[1-2]: not done within 6 s");
  CHECK(report.findings.at(1).fact == "n4: start the agent: not done within 6 s");
}

TEST_CASE("an advice of the launch takes the place of a verdict's fix") {
  CheckInput input = healthy_hosts(1);
  input.hosts[0].failure = Error(ErrorKind::kStart, "Connection refused", "knock twice");
  CHECK(judge(input).findings.at(0).fix == "knock twice");
  input.hosts[0].failure = Error(ErrorKind::kStart, "Connection refused");
  CHECK(judge(input).findings.at(0).fix.find("sshd runs on n1") != std::string::npos);
}

TEST_CASE("a clock is told where it is off by more than is in doubt") {
  CheckInput input = healthy_hosts(3);
  input.hosts[1].clock_ahead_s = -300;
  CHECK(verdicts_of(input) == Verdicts{"clock-skew: n2"});
  const Finding finding = judge(input).findings.at(0);
  CHECK(finding.fact == "n2: 5 min behind, beside this machine's clock");
  CHECK(finding.fix == "ssh n2 sudo timedatectl set-ntp true");
  CHECK(judge(input).can_start());
  input.hosts[1].clock_ahead_s = 1.9;
  CHECK(verdicts_of(input).empty());
  input.hosts[1].clock_ahead_s = 20;
  input.hosts[1].clock_error_s = 19;
  CHECK(verdicts_of(input).empty());
  for (CheckedHost& host : input.hosts) host.clock_ahead_s = 300;
  CHECK(verdicts_of(input) == Verdicts{"clock-here: n1 n2 n3"});
}

TEST_CASE("what the plan cannot do, and hosts that are one machine, are told as a launch would") {
  CheckInput input = healthy_hosts(2);
  forget_plan(&input);
  input.plan_problem = Error(ErrorKind::kUsage, "-np 9 asks for 9 ranks", "lower -np");
  CHECK(verdicts_of(input) == Verdicts{"ranks-do-not-fit:"});
  input = healthy_hosts(2);
  input.same_machines = Error(ErrorKind::kUsage, "n1 and n2 are one machine", "name it once");
  CHECK(verdicts_of(input) == Verdicts{"one-machine-twice:"});
}

TEST_CASE("interfaces that a host does not have are told, where its ranks need any") {
  CheckInput input = healthy_hosts(3);
  input.hosts[1].unmet_interfaces = input.hosts[2].unmet_interfaces = "eth9";
  CHECK(verdicts_of(input) == Verdicts{"interfaces-unmet: n2 n3"});
  CHECK(judge(input).findings[0].fact == "n[2-3]: eth9 allows no address");
  CheckInput one = healthy_hosts(1);
  one.hosts[0].unmet_interfaces = "eth9";
  CHECK(verdicts_of(one) == Verdicts{});
}

TEST_CASE("hosts that do not reach each other are told by whom they are not reached, and how") {
  const std::pair<const char*, const char*> cases[] = {
      {"connect to 10.0.0.3:99: Connection refused", "ranks-refused"},
      {"connect to 10.0.0.3:99: No route to host", "ranks-no-route"},
      {"connect to 10.0.0.3:99: no answer in time", "ranks-filtered"}};
  for (const auto& [reason, verdict] : cases) {
    CheckInput input = healthy_hosts(3);
    for (PairFacts& pair : input.pairs)
      if (pair.to == 2) {
        pair.reached.clear();
        pair.reason = reason;
      }
    CHECK(verdicts_of(input) == Verdicts{std::string(verdict) + ": n3 n1 n2"});
    CHECK(judge(input).findings[0].fact ==
          std::string("n[1-2] reach no address of n3 (") + reason + ")");
  }
}

TEST_CASE("a host that is cut off is one finding, and so is each of several") {
  const auto cut = [](CheckInput* input, std::size_t from, std::size_t to, const char* reason) {
    for (PairFacts& pair : input->pairs) {
      if (pair.from != from || pair.to != to) continue;
      pair.reached.clear();
      pair.reason = reason;
    }
  };
  constexpr const char* kSilent = "no answer in time";
  CheckInput input = healthy_hosts(4);
  for (const std::size_t other : {0, 1, 3}) {
    cut(&input, other, 2, kSilent);
    cut(&input, 2, other, kSilent);
  }
  CHECK(verdicts_of(input) == Verdicts{"ranks-filtered: n3 n1 n2 n4"});
  CHECK(judge(input).findings[0].fact ==
        "n[1-2,4] reach no address of n3 (no answer in time), and n3 none of n[1-2,4]");
  cut(&input, 0, 1, kSilent);
  CHECK(verdicts_of(input) == Verdicts{"ranks-filtered: n3 n1 n2 n4", "ranks-filtered: n2 n1"});
  CheckInput out = healthy_hosts(4);
  for (const std::size_t other : {0, 1, 3}) cut(&out, 2, other, "connect: Network is unreachable");
  CHECK(verdicts_of(out) == Verdicts{"ranks-no-route: n3 n1 n2 n4"});
  const Finding finding = judge(out).findings[0];
  CHECK(finding.fact == "n3 reaches no address of n[1-2,4] (connect: Network is unreachable)");
  CHECK(finding.fix.find("'ssh n3 ip route'") != std::string::npos);
  CHECK(finding.fix.find("likewise") == std::string::npos);
}

TEST_CASE("hosts without an address of their own are each at fault alone") {
  CheckInput input = healthy_hosts(3);
  for (PairFacts& pair : input.pairs) {
    if (pair.to == 0) continue;
    pair.reached.clear();
    pair.tried.clear();
  }
  CHECK(verdicts_of(input) == Verdicts{"no-address: n2 n1 n3", "no-address: n3 n1 n2"});
}

TEST_CASE("the report has the worst first, and says what it comes to") {
  CheckInput input = healthy_hosts(3);
  input.seconds = 0.84;
  CHECK(report_as_text(input, judge(input))
            .find("The job could start: 6 ranks on 3 hosts, in "
                  "about 0.84 s.\n") != std::string::npos);
  input.hosts[0].clock_ahead_s = 10;
  input.hosts[2].failure = Error(ErrorKind::kStart, "connect to host n3: Connection refused");
  const std::string text = report_as_text(input, judge(input));
  CHECK(text.find("cannot start: n3: connect") < text.find("harms: n1: 10 s ahead"));
  CHECK(text.find("\nThe job could not start.\n") != std::string::npos);
  const std::string json = report_as_json(input, judge(input));
  CHECK(json.find("\"can_start\": false") != std::string::npos);
  CHECK(json.find("\"id\": \"ssh-refused\"") != std::string::npos);
}

}  // namespace
}  // namespace hv::launcher
