// Tests of launcher/supervise/hosts/host_phase.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/host_phase.h"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace hv;
using namespace hv::launcher;

namespace {

const Error kRefused(ErrorKind::kStart, "refused");

std::string name_of(const HostPhase& phase) {
  static const std::vector<std::string> names{"connecting", "greeted", "set up", "ready", "running",
                                              "failed",     "ending",  "empty",  "lost"};
  return names.at(phase.value().index());
}

HostPhase after(std::vector<std::function<bool(HostPhase&)>> steps) {
  HostPhase phase;
  for (const auto& step : steps) REQUIRE(step(phase));
  return phase;
}

const auto greet = [](HostPhase& phase) { return phase.greet(); };
const auto set_up = [](HostPhase& phase) { return phase.set_up(); };
const auto make_ready = [](HostPhase& phase) { return phase.make_ready(); };
const auto start_ranks = [](HostPhase& phase) { return phase.start_ranks(); };
const auto fail = [](HostPhase& phase) { return phase.fail(kRefused); };
const auto end = [](HostPhase& phase) { return phase.end(); };
const auto end_unrequested = [](HostPhase& phase) { return phase.end(UnrequestedEnd{"advice"}); };
const auto lose = [](HostPhase& phase) { return phase.lose("silent"); };
const auto become_empty = [](HostPhase& phase) {
  phase.become_empty();
  return phase.is_empty();
};
const auto begin_sweep = [](HostPhase& phase) { return phase.begin_sweep(); };

// A host in each phase.
std::map<std::string, HostPhase> all_phases() {
  return {{"connecting", after({})},
          {"greeted", after({greet})},
          {"set up", after({greet, set_up})},
          {"ready", after({greet, set_up, make_ready})},
          {"running", after({greet, set_up, make_ready, start_ranks})},
          {"failed", after({greet, fail})},
          {"ending", after({greet, set_up, make_ready, start_ranks, end})},
          {"empty", after({greet, end, become_empty})},
          {"lost", after({greet, lose})}};
}

// For each phase, the one that follows it by this step; "" where the step is refused.
std::map<std::string, std::string> outcomes(const std::function<bool(HostPhase&)>& step) {
  std::map<std::string, std::string> result;
  for (auto& [name, phase] : all_phases()) {
    REQUIRE(name_of(phase) == name);
    result[name] = step(phase) ? name_of(phase) : "";
    if (result[name].empty()) CHECK(name_of(phase) == name);  // a refused step changes nothing
  }
  return result;
}

// One report moves a host from one phase to the next. It may still arrive after a failure, an end
// or a loss, and then changes nothing. Everywhere else it is impossible.
void check_report(const std::function<bool(HostPhase&)>& report, const std::string& from,
                  const std::string& to) {
  for (const auto& [phase, next] : outcomes(report)) {
    CAPTURE(phase);
    const bool is_late = phase == "failed" || phase == "ending" || phase == "lost";
    CHECK(next == (phase == from ? to : is_late ? phase : ""));
  }
}

}  // namespace

TEST_CASE("each report of an agent moves its host one step, and is impossible elsewhere") {
  check_report(greet, "connecting", "greeted");
  check_report(set_up, "greeted", "set up");
  check_report(make_ready, "set up", "ready");
  check_report(start_ranks, "ready", "running");
}

TEST_CASE("a host fails until its ranks run") {
  const std::set<std::string> can_fail{"connecting", "greeted", "set up", "ready"};
  for (const auto& [phase, next] : outcomes(fail)) {
    CAPTURE(phase);
    CHECK(next == (can_fail.count(phase) ? "failed" : ""));
  }
  CHECK(after({greet, fail}).failure()->what() == std::string("refused"));
}

TEST_CASE("a host that works ends once, by hvrun's request or on its own") {
  const std::set<std::string> can_end{"connecting", "greeted", "set up", "ready", "running"};
  for (const auto& step : std::vector<std::function<bool(HostPhase&)>>{end, end_unrequested})
    for (const auto& [phase, next] : outcomes(step)) {
      CAPTURE(phase);
      CHECK(next == (can_end.count(phase) ? "ending" : ""));
    }
  CHECK(!after({greet, end}).unrequested_end());
  const HostPhase first = after({greet, end_unrequested});
  CHECK(first.unrequested_end()->advice == "advice");
}

TEST_CASE("a host becomes empty from every phase but lost, and stays so") {
  for (const auto& [phase, next] : outcomes(become_empty)) {
    CAPTURE(phase);
    CHECK(next == (phase == "lost" ? "" : "empty"));
  }
}

TEST_CASE("a host is lost as long as it is not empty, and only once") {
  for (const auto& [phase, next] : outcomes(lose)) {
    CAPTURE(phase);
    CHECK(next == (phase == "lost" || phase == "empty" ? "" : "lost"));
  }
  CHECK(after({greet, lose}).lost()->reason == "silent");
}

TEST_CASE("a failure and an unrequested end are still known of a host that is empty or lost") {
  for (const auto& last : std::vector<std::function<bool(HostPhase&)>>{lose, become_empty}) {
    CHECK(after({greet, fail, last}).failure());
    CHECK(!after({greet, fail, last}).unrequested_end());
    CHECK(after({greet, end_unrequested, last}).unrequested_end()->advice == "advice");
    CHECK(!after({greet, end, last}).unrequested_end());
    CHECK(!after({greet, end, last}).failure());
  }
}

TEST_CASE("only a lost host is swept, once, and it stays lost") {
  for (const auto& [phase, next] : outcomes(begin_sweep)) {
    CAPTURE(phase);
    CHECK(next == (phase == "lost" ? "lost" : ""));
  }
  HostPhase phase = after({greet, lose});
  CHECK(!phase.finish_sweep());
  CHECK(phase.begin_sweep());
  CHECK(phase.is_sweeping());
  CHECK(phase.greet());  // the second agent
  phase.become_empty(true);
  CHECK(!phase.is_sweeping());
  CHECK(phase.is_lost());
  CHECK(phase.lost()->sweep == HostLost::Sweep::kSwept);
  CHECK(phase.lost()->may_processes_remain);
  CHECK(!phase.begin_sweep());
  CHECK(!phase.finish_sweep());

  HostPhase unreachable = after({greet, lose, begin_sweep});
  CHECK(unreachable.finish_sweep(kRefused));
  CHECK(unreachable.lost()->sweep_error->what() == std::string("refused"));
  CHECK(unreachable.lost()->sweep == HostLost::Sweep::kUnconfirmed);
}

TEST_CASE("the loss of a host is explained once, and never replaces its failure") {
  HostPhase phase = after({greet, lose});
  CHECK(!phase.failure());
  CHECK(phase.explain_loss(Error(ErrorKind::kHostLost, "lost")));
  CHECK(!phase.explain_loss(kRefused));
  CHECK(phase.failure()->what() == std::string("lost"));
  CHECK(!after({greet}).lost());
}
