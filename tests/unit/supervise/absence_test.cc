// Tests of ranks that do not come to the meeting of hvrun_init, as hvrun tells of them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <utility>

#include "launcher/supervise/report/absence_report.h"
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
    }
    std::vector<std::uint32_t> absent_now() override {
      later(200ms, [this] { finish_all(0); });
      return {};
    }
  } a;
  struct Late : FakeAgent {
    void on_go() override {}
    std::vector<std::uint32_t> absent_now() override {
      later(200ms, [this] { finish_all(0); });
      return {1, 2};
    }
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

namespace {

// Says that its rank waits too long, and lives on for a while once it was asked.
struct TooLate : FakeAgent {
  double waited = 3;
  void on_go() override { send(wire::FenceStalled{waited, true}); }
  std::vector<std::uint32_t> absent_now() override {
    later(100ms, [this] { finish_all(0); });
    return {};
  }
};

}  // namespace

TEST_CASE("a wait by MPI is told as one") {
  struct Waiting : FakeAgent {
    void on_go() override { send(wire::FenceStalled{2, true, wire::Meeting::kMpiInit}); }
    std::vector<std::uint32_t> absent_now() override { return {1}; }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:2");
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err, "to meet the others (MPI_Init); not there: rank 1"));
}

namespace {

// Its rank begins MPI, by that way first.
struct Beginning : FakeAgent {
  std::vector<std::uint32_t> ways;
  bool ends = false;
  void on_go() override {
    for (const std::uint32_t epoch : ways) send(wire::MpiBegun{epoch});
    if (ends) later(200ms, [this] { finish_all(0); });
  }
};

}  // namespace

TEST_CASE(
    "ranks of two MPIs that would be one world end the job at once, each named with its way") {
  Beginning a, b;
  a.ways = {wire::kPmixEpoch};
  b.ways = {wire::kPmiEpoch};
  a.in_pmix = {0};
  b.in_pmi = {1, 2};
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:2");
  CHECK(outcome.code == 3);
  CHECK(
      contains(outcome.err,
               "error: in MPI_Init rank 0 on host a came by PMIx (as Open MPI's programs do), and "
               "ranks 1-2 on host b by PMI-1 (as MPICH's): programs of different MPIs cannot be "
               "one world, and wait for each other for ever\n  try: programs that"));
  CHECK((a.ended && b.ended));
}

TEST_CASE("ranks that begin one MPI after the other has met are left alone") {
  Beginning a, b;
  a.ways = b.ways = {wire::kPmixEpoch, wire::kPmiEpoch};
  a.in_pmi = {0};
  a.ends = b.ends = true;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
  CHECK((outcome.code == 0 && outcome.err.empty()));
}

TEST_CASE("a rank that ended out of MPI is the cause as soon as somebody waits for it there") {
  struct Leaving : FakeAgent {
    void on_go() override {
      wire::Exited exited;
      exited.never_joined = true;
      exited.pmi_end = wire::MpiEnd::kNotFinalized;
      exit_rank(1, exited);
    }
  } b;
  struct Waiting : FakeAgent {
    std::function<void()> act;
    void on_go() override { act(); }
  } a;
  a.act = [&a] { a.later(300ms, [&a] { a.finish_all(0); }); };
  CHECK(supervise({{"a", &a}, {"b", &b}}, "a:1,b:1").code == 0);
  a.act = [&a] {
    a.send(wire::FenceIn{wire::kPmixEpoch, 1, {}});  // not where rank 1 is missing
    a.later(300ms, [&a] { a.finish_all(0); });
  };
  CHECK(supervise({{"a", &a}, {"b", &b}}, "a:1,b:1").code == 0);
  for (const bool is_by_fence : {true, false}) {
    a.act = [&a, is_by_fence] {
      if (is_by_fence)
        a.send(wire::FenceIn{wire::kPmiEpoch, 1, {}});
      else
        a.send(wire::MpiMissed{wire::kPmiEpoch});
    };
    const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
    CHECK(outcome.code == 1);
    CHECK(contains(outcome.err, "rank 1 on host b ended after "));
    CHECK(contains(outcome.err, "with exit code 0 without MPI_Finalize, in which others wait"));
    CHECK(contains(outcome.err, "try: let every rank call MPI_Init and MPI_Finalize"));
    CHECK(a.ended);
  }
}

TEST_CASE("a wait that is over when all have been asked ends no job") {
  TooLate a;
  a.waited_s = {0, 1e6, 1e6};  // the others' waits say nothing of this one
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
}

TEST_CASE("ranks that all wait too long, at different meetings, end the job with these words") {
  TooLate a;
  a.waited = 1e300;
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err,
                 "over 1000000 s to meet the others (hvrun_init); all wait, at different meetings: "
                 "the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)\n  try: let every rank call"));
}

TEST_CASE("waits in hvrun_init and in MPI that wait for each other are both told, as at an end") {
  struct Crossed : FakeAgent {
    void on_go() override {
      send(wire::FenceStalled{60, false, wire::Meeting::kMpi});
      send(wire::FenceStalled{60, false});
      later(300ms, [this] { finish_all(0); });
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:2");
  CHECK(outcome.code == 0);
  for (const char* calls : {"MPI_Init, MPI_Finalize", "hvrun_init"})
    CHECK(contains(outcome.err, std::string("warning: ranks have waited over 60 s to meet the "
                                            "others (") +
                                    calls + "); all wait, at different meetings\n  try: let"));
}

TEST_CASE("a wait that becomes too long while all are asked ends the job, too") {
  struct Waiting : FakeAgent {
    bool is_first = true;
    void on_go() override { send(wire::FenceStalled{60, false}); }
    std::vector<std::uint32_t> absent_now() override {
      waited_s[0] = is_first ? 61 : 1e6;
      if (std::exchange(is_first, false)) send(wire::FenceStalled{3000, true});
      later(1s, [this] { finish_all(0); });
      return {1};
    }
  } a;
  CHECK(supervise({{"a", &a}}, "a:2").code == 4);
}

TEST_CASE("a wait that is too long is no reason to end a job whose rank has failed") {
  struct Failing : TooLate {
    void on_go() override {
      exit_rank(0, {0, false, 7, false, false, 0, false, false});
      TooLate::on_go();
    }
    std::vector<std::uint32_t> absent_now() override {
      TooLate::absent_now();
      return {1};
    }
  } a;
  CHECK(supervise({{"a", &a}}, "a:2").code == 7);
}

TEST_CASE("hosts whose ranks began to wait one after the other are told of once each time") {
  struct Waiting : FakeAgent {
    int queries = 0;
    void on_go() override { send(wire::FenceStalled{60, false}); }
    std::vector<std::uint32_t> absent_now() override {
      const bool is_first = ++queries == 1;
      later(100ms, [this, is_first] {
        for (const double waited : {60, 120}) send(wire::FenceStalled{waited, false});
        if (!is_first) later(100ms, [this] { finish_all(0); });
      });
      return {0};
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 0);
  CHECK(a.queries == 2);
  CHECK(contains(outcome.err, "waited over 60 s"));
  CHECK(contains(outcome.err, "waited over 120 s"));
}

TEST_CASE("a rank whose process is not known yet is named without it") {
  struct Starting : FakeAgent {
    Starting() { tells_started = false; }
    void on_go() override { send(wire::FenceStalled{60, false}); }
    std::vector<std::uint32_t> absent_now() override {
      later(100ms, [this] {
        send_started();
        finish_all(0);
      });
      return {0};
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(contains(outcome.err, "try: look what rank 0 does, on host a; HVRUN_STALL_SECONDS sets"));
}
