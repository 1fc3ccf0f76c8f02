// Tests of MPI wiring: which hosts get a PMIx server, and hosts that lack its program.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <list>

#include "src/wire/mpi_wiring.h"
#include "tests/unit/supervise/supervised.h"

using namespace hv::launcher;
namespace wire = hv::wire;
using namespace std::chrono_literals;

namespace {

struct MpiHost : FakeAgent {
  MpiHost() {
    on_wiring = [this](const hv::Frame& frame) {
      REQUIRE(hv::decode(frame.payload, &requests.emplace_back()));
      wire::WiringReply reply;
      reply.is_missing = requests.back().program.empty() && is_missing;
      reply.problem = problem;
      reply.hint = problem.empty() ? "" : "mend it";
      send(reply);
    };
  }
  void on_start() override {
    wire::Hello hello;
    hello.build = HVRUN_BUILD_ID;
    hello.facts.machine = machine;
    hello.facts.usable_cores = 4;
    hello.facts.addresses = {"10.0.0.1"};
    send(hello);
  }

  std::vector<wire::WiringRequest> requests;
  std::string machine = "x86_64";
  std::string problem;
  bool is_missing = false;
};

JobSpec wired(WireMpi by = WireMpi::kBoth) {
  JobSpec spec;
  spec.environment.wire_mpi = by;
  return spec;
}

}  // namespace

TEST_CASE("without MPI no host is asked, and no rank has PMI") {
  MpiHost a;
  CHECK(supervise({{"a", &a}}, "a").code == 0);
  CHECK(a.requests.empty());
  CHECK_FALSE(a.launch.pmi);
}

TEST_CASE("every host gets the whole job, by one name that differs from job to job") {
  MpiHost a, b;
  CHECK(supervise({{"a", &a}, {"b", &b}}, "a:2,b:1", wired()).code == 0);
  REQUIRE(a.requests.size() == 1);
  REQUIRE(b.requests.size() == 1);
  CHECK(a.requests[0].world.hosts == std::vector<std::string>{"a", "b"});
  CHECK(a.requests[0].world.host_of_rank == std::vector<std::uint32_t>{0, 0, 1});
  CHECK(a.requests[0].world.program_of_rank == std::vector<std::uint32_t>{0, 0, 0});
  CHECK(a.requests[0].world.space == b.requests[0].world.space);
  const std::string space = a.requests[0].world.space;
  REQUIRE(b.launch.pmi);
  CHECK(b.launch.pmi->size == 3);
  CHECK(b.launch.pmi->mapping == "(vector,(0,1,2),(1,1,1))");
  CHECK(supervise({{"a", &a}}, "a", wired()).code == 0);
  CHECK(a.requests.back().world.space != space);
}

TEST_CASE("PMI alone starts no PMIx server, and PMIx alone no PMI server") {
  MpiHost a;
  CHECK(supervise({{"a", &a}}, "a", wired(WireMpi::kPmi)).code == 0);
  CHECK(a.requests.empty());
  CHECK(a.launch.pmi);
  CHECK(supervise({{"a", &a}}, "a", wired(WireMpi::kPmix)).code == 0);
  CHECK(a.requests.size() == 1);
  CHECK_FALSE(a.launch.pmi);
}

#if defined(__x86_64__)
TEST_CASE("a host that reports that it lacks hvrun-pmix gets it") {
  MpiHost a;
  a.is_missing = true;
  CHECK(supervise({{"a", &a}}, "a", wired()).code == 0);
  REQUIRE(a.requests.size() == 2);
  CHECK(a.requests[1].program.substr(0, 4) ==
        "\x7f"
        "ELF");
}

TEST_CASE("not all hosts that lack hvrun-pmix are sent it at once") {
  constexpr std::size_t kHosts = 70;
  std::list<MpiHost> hosts;
  std::map<std::string, FakeAgent*> agents;
  std::size_t in_flight = 0, most = 0, sent = 0;
  for (std::size_t i = 1; i <= kHosts; ++i) {
    MpiHost& host = hosts.emplace_back();
    host.on_wiring = [&](const hv::Frame& frame) {
      wire::WiringRequest request;
      REQUIRE(hv::decode(frame.payload, &request));
      if (request.program.empty()) return host.send(wire::WiringReply{true, "", ""});
      ++sent;
      most = std::max(most, ++in_flight);
      host.later(50ms, [&] {
        --in_flight;
        host.send(wire::WiringReply{});
      });
    };
    agents["h" + std::to_string(i)] = &host;
  }
  CHECK(supervise(agents, "h[1-70]", wired()).code == 0);
  CHECK(sent == kHosts);
  CHECK(most == 64);
}
#endif

TEST_CASE("a host of another architecture without hvrun-pmix is an error with advice") {
  MpiHost a;
  a.is_missing = true;
  a.machine = "riscv128";
  const Outcome outcome = supervise({{"a", &a}}, "a", wired());
  CHECK(outcome.code == 3);
  CHECK(
      contains(outcome.err,
               "find hvrun-pmix, by which MPI programs find each other, on host a: it is neither"));
  CHECK(contains(outcome.err, "--wire-mpi=pmi"));
  CHECK(a.launch.ranks.empty());
}

TEST_CASE("a host whose server does not start is named with its reason, and nothing is launched") {
  MpiHost a, b;
  b.problem = "open libpmix.so.2: no such file";
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1", wired());
  CHECK(outcome.code == 3);
  CHECK(contains(outcome.err, "b"));
  CHECK(contains(outcome.err, "open libpmix.so.2: no such file"));
  CHECK(contains(outcome.err, "try: mend it"));
  CHECK(a.launch.ranks.empty());
  CHECK(b.launch.ranks.empty());
}
