// Tests of launcher/agent/mpi/pmi_rendezvous: PMI-1 as MPICH sends it.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/pmi_rendezvous.h"

#include <doctest/doctest.h>

#include "src/wire/mpi_wiring.h"

using namespace hv;
using namespace hv::launcher;

namespace {

constexpr char kInit[] = "cmd=init pmi_version=1 pmi_subversion=1";

// Two ranks of a job of four, each of a program of its own.
struct PmiHost {
  PmiRendezvous rendezvous{{4, "(vector,(0,2,2))"}, "space", {{2, 0}, {3, 1}}};

  std::string say(std::uint32_t rank, const std::string& line) {
    return rendezvous.answer(rank, line).value_or("broken");
  }
  void init_both() {
    for (const std::uint32_t rank : {2, 3}) (void)rendezvous.answer(rank, kInit);
  }
  // Everybody's puts come back.
  std::vector<std::uint32_t> pass(const wire::FenceIn& in) {
    return rendezvous.pass({in.epoch, in.number, in.puts});
  }
};

}  // namespace

TEST_CASE("a rank that has begun PMI gets the data of its job") {
  PmiHost host;
  CHECK(host.say(3, kInit) == "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  CHECK(host.say(3, "cmd=get_maxes") ==
        "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  CHECK(host.say(3, "cmd=get_universe_size") == "cmd=universe_size size=4\n");
  CHECK(host.say(3, "cmd=get_appnum") == "cmd=appnum appnum=1\n");
  CHECK(host.say(3, "cmd=get_my_kvsname") == "cmd=my_kvsname kvsname=space\n");
  CHECK(host.say(3, "cmd=get kvsname=space key=PMI_process_mapping") ==
        "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))\n");
  CHECK(host.say(3, "cmd=lookup_name service=x") == "cmd=lookup_result rc=-1 msg=not_supported\n");
}

TEST_CASE("a barrier ends when all hosts have reached it, and then all puts can be read") {
  PmiHost host;
  host.init_both();
  CHECK(host.say(2, "cmd=put kvsname=space key=k value=v=1") ==
        "cmd=put_result rc=0 msg=success\n");
  CHECK(host.say(2, "cmd=barrier_in") == "");
  CHECK(host.rendezvous.complete().empty());
  CHECK(host.say(3, "cmd=barrier_in") == "");
  const std::vector<wire::FenceIn> fences = host.rendezvous.complete();
  REQUIRE(fences.size() == 1);
  CHECK(fences[0].epoch == wire::kPmiEpoch);
  CHECK(fences[0].number == 1);
  CHECK(host.say(3, "cmd=get kvsname=space key=k") ==
        "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
  CHECK(host.pass(fences[0]) == std::vector<std::uint32_t>{2, 3});
  CHECK(host.say(3, "cmd=get kvsname=space key=k") ==
        "cmd=get_result rc=0 msg=success value=v=1\n");
}

TEST_CASE("a rank's next program begins PMI anew") {
  PmiHost host;
  for (int program = 0; program < 2; ++program) {
    host.init_both();
    for (const std::uint32_t rank : {2, 3}) CHECK(host.say(rank, "cmd=barrier_in") == "");
    const std::vector<wire::FenceIn> fences = host.rendezvous.complete();
    REQUIRE(fences.size() == 1);
    CHECK(fences[0].number == 1);
    CHECK(host.pass(fences[0]).size() == 2);
    for (const std::uint32_t rank : {2, 3})
      CHECK(host.say(rank, "cmd=finalize") == "cmd=finalize_ack\n");
  }
}

TEST_CASE("an abort sets the exit code to end with, never 0") {
  PmiHost host;
  host.init_both();
  CHECK_FALSE(host.rendezvous.abort_of(2));
  CHECK(host.say(2, "cmd=abort exitcode=7") == "");
  CHECK(host.rendezvous.abort_of(2) == 7);
  CHECK(host.say(3, "cmd=abort exitcode=256") == "");
  CHECK(host.rendezvous.abort_of(3) == 1);
  CHECK(host.say(2, "cmd=abort exitcode=words") == "");
  CHECK(host.rendezvous.abort_of(2) == 1);
}

TEST_CASE("PMI reports which ranks wait in a barrier, for which, and whether all have begun") {
  PmiHost host;
  (void)host.say(2, kInit);
  CHECK_FALSE(host.rendezvous.has_waiting_rank());
  (void)host.say(2, "cmd=barrier_in");
  CHECK((host.rendezvous.is_waiting(2) && host.rendezvous.is_beginning()));
  CHECK_FALSE(host.rendezvous.is_waiting(3));
  (void)host.say(3, kInit);
  (void)host.say(3, "cmd=barrier_in");
  (void)host.pass(host.rendezvous.complete().at(0));
  CHECK_FALSE(host.rendezvous.has_waiting_rank());
  (void)host.say(3, "cmd=barrier_in");
  CHECK((host.rendezvous.is_waiting(3) && !host.rendezvous.is_beginning()));
  CHECK_FALSE(host.rendezvous.has_missing_rank());
  CHECK(host.rendezvous.note_end(2) == wire::MpiEnd::kNotFinalized);
  CHECK((host.rendezvous.has_waiting_rank() && host.rendezvous.has_missing_rank()));
  CHECK(host.rendezvous.note_end(3) == wire::MpiEnd::kNotFinalized);
  CHECK_FALSE(host.rendezvous.has_waiting_rank());  // a rank that has ended waits for none
}

TEST_CASE("a rank that ended in order, or never began, is reported as such") {
  PmiHost host;
  (void)host.say(2, kInit);
  (void)host.say(2, "cmd=finalize");
  CHECK(host.rendezvous.note_end(2) == wire::MpiEnd::kInOrder);
  CHECK_FALSE(host.rendezvous.has_missing_rank());
  CHECK(host.rendezvous.note_end(3) == wire::MpiEnd::kNotBegun);
  CHECK(host.rendezvous.has_missing_rank());
}

TEST_CASE("lines that are not PMI's are refused") {
  PmiHost host;
  CHECK(host.say(2, "cmd=barrier_in") == "broken");  // before init
  CHECK(host.say(9, kInit) == "broken");             // runs elsewhere
  CHECK(host.say(2, "cmd=init pmi_version=2 pmi_subversion=0").find("rc=-1") != std::string::npos);
  host.init_both();
  for (const char* line : {"", "nonsense", "cmd=", "mcmd=spawn", "=x", "cmd=unheard_of"})
    CHECK(host.say(2, line) == "broken");
  CHECK(host.say(2, "cmd=get_maxes " + std::string(PmiRendezvous::kMostLine, 'x')) == "broken");
  for (const std::string& put :
       {std::string("kvsname=other key=k value=v"), std::string("kvsname=space value=v"),
        "kvsname=space key=" + std::string(65, 'k') + " value=v",
        "kvsname=space key=k value=" + std::string(1025, 'v')})
    CHECK(host.say(2, "cmd=put " + put) == "cmd=put_result rc=-1 msg=refused\n");
}
