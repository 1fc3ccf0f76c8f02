// Tests of launcher/supervise/report/absence_report, and of ranks that end without joining.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <utility>

#include "launcher/supervise/report/absence_report.h"
#include "tests/unit/supervise/supervised.h"

using namespace hv::launcher;
namespace wire = hv::wire;
using namespace std::chrono_literals;

TEST_CASE("ranks that wait for a rank that ended without joining learn of it, others do not") {
  for (const bool has_waiting_rank : {true, false}) {
    struct Waiting : FakeAgent {
      bool waits = true;
      void on_go() override {
        if (waits) send(wire::FenceIn{0, 1, {}});
        later(300ms, [this] { finish_all(0); });
      }
    } a;
    a.waits = has_waiting_rank;
    struct NeverJoined : FakeAgent {
      void on_go() override {
        wire::Exited exited;
        exited.never_joined = true;
        exit_rank(1, exited);
      }
    } b;
    supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
    REQUIRE(a.deaths.size() == (has_waiting_rank ? 1 : 0));
    if (!has_waiting_rank) continue;
    CHECK(a.deaths[0].rank == 1);
    CHECK(a.deaths[0].reason ==
          "ended with exit code 0 and had not joined the job (hvrun_init), on host b");
  }
}

TEST_CASE("ranks that are missing where others wait are reported once, by rank and host") {
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
  const std::string text =
      "ranks have waited over 60 s to meet the others (hvrun_init); not there: ranks 1-2 on host b";
  CHECK(contains(outcome.err, text));
  CHECK(outcome.err.find(text) == outcome.err.rfind(text));
  CHECK(contains(outcome.err, "try: look what rank 1 does, on host b: py-spy dump --pid 1000, or"));
}

TEST_CASE("missing ranks of several hosts are one list, and their hosts, too") {
  struct Waiting : FakeAgent {
    void on_go() override { send(wire::FenceStalled{60, false}); }
    std::vector<std::uint32_t> absent_now() override {
      later(200ms, [this] { finish_all(0); });
      return {};
    }
  } a;
  struct Late : FakeAgent {
    std::vector<std::uint32_t> absent;
    explicit Late(std::vector<std::uint32_t> ranks) : absent(std::move(ranks)) {}
    void on_go() override {}
    std::vector<std::uint32_t> absent_now() override {
      later(200ms, [this] { finish_all(0); });
      return absent;
    }
  } n1({1, 2}), n2({4});
  const Outcome outcome = supervise({{"a", &a}, {"n1", &n1}, {"n2", &n2}}, "a:1,n1:2,n2:2");
  CHECK(contains(outcome.err, "(hvrun_init); not there: ranks 1-2,4 on hosts n[1-2]\n"));
}

TEST_CASE("a wait for other ranks that is too long ends the job, with the missing ranks") {
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
  // No process can be looked at once the job has ended.
  CHECK(contains(outcome.err, "try: look what rank 1 does, on host a; HVRUN_STALL_SHUTDOWN_"));
  CHECK(a.ended);
}

namespace {

// Reports that its rank waits too long, and ends some time after the query.
struct TooLate : FakeAgent {
  double waited = 3;
  void on_go() override { send(wire::FenceStalled{waited, true}); }
  std::vector<std::uint32_t> absent_now() override {
    later(100ms, [this] { finish_all(0); });
    return {};
  }
};

}  // namespace

TEST_CASE("a wait in MPI is reported as a wait in MPI") {
  struct Waiting : FakeAgent {
    void on_go() override { send(wire::FenceStalled{2, true, wire::Meeting::kMpiInit}); }
    std::vector<std::uint32_t> absent_now() override { return {1}; }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:2");
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err, "to meet the others (MPI_Init); not there: rank 1"));
}

namespace {

// A rank there begins MPI, by these interfaces in turn.
struct Beginning : FakeAgent {
  std::vector<std::uint32_t> epochs;
  bool ends = false;
  void on_go() override {
    for (const std::uint32_t epoch : epochs) send(wire::MpiBegun{epoch});
    if (ends) later(200ms, [this] { finish_all(0); });
  }
};

}  // namespace

TEST_CASE("ranks of two MPIs in one world end the job at once, each named with its interface") {
  Beginning a, b;
  a.epochs = {wire::kPmixEpoch};
  b.epochs = {wire::kPmiEpoch};
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

TEST_CASE("ranks that begin one MPI after all have begun the other do not end the job") {
  Beginning a, b;
  a.epochs = b.epochs = {wire::kPmixEpoch, wire::kPmiEpoch};
  a.in_pmi = {0};
  a.ends = b.ends = true;
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
  CHECK((outcome.code == 0 && outcome.err.empty()));
}

TEST_CASE("a rank that ended out of MPI is the cause as soon as another rank waits for it there") {
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

TEST_CASE("a wait that is over when all agents have answered ends no job") {
  TooLate a;
  a.waited_s = {0, 1e6, 1e6};  // the others' waits say nothing of this one
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
}

TEST_CASE("ranks that all wait too long, in different calls, end the job") {
  TooLate a;
  a.waited = 1e300;
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err,
                 "over 11.6 d to meet the others (hvrun_init); all wait, at different meetings: "
                 "the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)\n  try: let every rank call"));
}

TEST_CASE("waits in hvrun_init and in MPI that wait for each other are both reported") {
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

TEST_CASE("a wait that becomes too long during the query ends the job, too") {
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

TEST_CASE("a wait that is too long does not replace the failure of a rank") {
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

TEST_CASE("a wait that goes on is told again only where other ranks are missing by then") {
  struct Waiting : FakeAgent {
    int queries = 0;
    void on_go() override { send(wire::FenceStalled{60, false}); }
    std::vector<std::uint32_t> absent_now() override {
      const int query = ++queries;
      later(100ms, [this, query] {
        if (query == 3) return finish_all(0);
        for (const double waited : {60, 60 << query}) send(wire::FenceStalled{waited, false});
      });
      return query == 3 ? std::vector<std::uint32_t>{1} : std::vector<std::uint32_t>{0};
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:2");
  CHECK(outcome.code == 0);
  CHECK(a.queries == 3);
  CHECK(
      contains(outcome.err, "waited over 60 s to meet the others (hvrun_init); not there: rank 0"));
  CHECK_FALSE(contains(outcome.err, "waited over 2 min"));
  CHECK(contains(outcome.err,
                 "waited over 4 min to meet the others (hvrun_init); not there: rank 1"));
}

TEST_CASE("a rank that is missing in two kinds of rendezvous is told of once") {
  struct Waiting : FakeAgent {
    void on_go() override {
      waited_s = {60, 60, 0};
      send(wire::FenceStalled{60, false, wire::Meeting::kMpiInit});
      send(wire::FenceStalled{60, false});
    }
    std::vector<std::uint32_t> absent_now() override {
      later(200ms, [this] { finish_all(0); });
      return {1};
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:2");
  const std::string text = "not there: rank 1 on host a";
  CHECK(contains(outcome.err, text));
  CHECK(outcome.err.find(text) == outcome.err.rfind(text));
}

TEST_CASE("a rank whose process is not known yet is named without its pid") {
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
