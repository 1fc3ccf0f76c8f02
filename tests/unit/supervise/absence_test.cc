// Tests of ranks that do not come to the meeting of hvrun_init, as hvrun tells of them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "launcher/supervise/absence_report.h"
#include "tests/unit/supervise/supervised.h"

using namespace hv::launcher;
namespace wire = hv::wire;
using namespace std::chrono_literals;

TEST_CASE("ranks that wait to meet a rank that ended without joining are told, others are not") {
  for (const bool somebody_waits : {true, false}) {
    struct Waiting : FakeAgent {
      bool waits = true;
      void on_go() override {
        if (waits) send(wire::FenceIn{0, 1, {}});
        later(300ms, [this] { finish_all(0); });
      }
    } a;
    a.waits = somebody_waits;
    struct Stranger : FakeAgent {
      void on_go() override {
        wire::Exited exited;
        exited.never_joined = true;
        exit_rank(1, exited);
      }
    } b;
    supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
    REQUIRE(a.deaths.size() == (somebody_waits ? 1 : 0));
    if (!somebody_waits) continue;
    CHECK(a.deaths[0].rank == 1);
    CHECK(a.deaths[0].reason ==
          "ended with exit code 0 and had not joined the job (hvrun_init), on host b");
  }
}

TEST_CASE("who is missing from a meeting that stalls is told once, by rank and host") {
  struct Waiting : FakeAgent {
    void on_go() override {
      send(wire::FenceStalled{60, false});
      send(wire::FenceStalled{60, false});
      later(200ms, [this] { finish_all(0); });
    }
  } a;
  struct Late : FakeAgent {
    void on_go() override {
      later(200ms, [this] { finish_all(0); });
    }
    std::vector<std::uint32_t> absent_now() override { return {1, 2}; }
  } b;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:2");
  const std::string words =
      "ranks have waited over 60 s to meet the others (hvrun_init); not there: ranks 1-2 on host b";
  CHECK(contains(outcome.err, words));
  CHECK(outcome.err.find(words) == outcome.err.rfind(words));
  CHECK(contains(outcome.err, "try: look what rank 1 does, on host b: py-spy dump --pid 1000, or"));
}

TEST_CASE("a wait to meet the others that is too long ends the job, with who is missing") {
  struct Waiting : FakeAgent {
    void on_go() override {
      send(wire::FenceStalled{2, false});
      send(wire::FenceStalled{3, true});
    }
    std::vector<std::uint32_t> absent_now() override { return {1}; }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:2");
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err,
                 "error: ranks have waited over 3 s to meet the others (hvrun_init); not there: "
                 "rank 1 on host a: the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)"));
  CHECK(a.ended);
}
