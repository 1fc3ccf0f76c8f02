// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_advice.h"

#include <doctest/doctest.h>

#include <utility>

namespace hv::launcher {
namespace {

const Mpirun kOpen{MpiKind::kOpenMpi, 4, "mpirun", "", ""};
const Mpirun kHydra{MpiKind::kHydra, 0, "mpiexec", "", ""};

TEST_CASE("mpi_advice has what to try where mpirun's ssh has given a host up, and Hydra waits") {
  const std::pair<const char*, const char*> cases[] = {
      {"ssh: Could not resolve hostname nod1: Name or service not known\r\n-----\nORTE was "
       "unable\n",
       "check the spelling of nod1, or name it in /etc/hosts or ~/.ssh/config"},
      {"\nssh: connect to host n1 port 22: Connection refused\n",
       "see that 'ssh n1 true' works from here, and asks nothing"},
      {"ann@n1: Permission denied (publickey).\n",
       "see that 'ssh ann@n1 true' works from here, and asks nothing"},
      {"No ED25519 host key is known for n1.\nHost key verification failed.\n",
       "see that 'ssh HOST true' works from here, and asks nothing"},
      {"[mpiexec@a] HYDU_create_process (x.c:73): execvp error on file /no/ssh (No such file)\n",
       "check that /no/ssh, by which it reaches hosts, can be run, or name another by --rsh"}};
  for (const auto& [words, advice] : cases) {
    CAPTURE(words);
    CHECK(mpirun_advice(kOpen, words) == advice);
    CHECK(mpirun_advice(kHydra, words) == advice);
    CHECK((waits_in_vain(kHydra, words) && !waits_in_vain(kOpen, words)));
  }
}

TEST_CASE("mpi_advice names the program of --rsh that Open MPI has not found") {
  CHECK(mpirun_advice(kOpen, "a path\nthat could not be found:\n\n  plm_rsh_agent: /no/ssh\n\n") ==
        "check that /no/ssh, by which it reaches hosts, can be run, or name another by --rsh");
}

TEST_CASE("mpi_advice does not guess at other words, nor at those of a program that is not there") {
  for (const char* words :
       {"", "x", "ssh\n", "Warning: Permanently added 'n1' to the list of known hosts.\n",
        "[proxy:0:0@a] HYDU_create_process (x.c:73): execvp error on file train (No such file)\n",
        "cat: /secret: Permission denied\n"}) {
    CAPTURE(words);
    CHECK((mpirun_advice(kOpen, words).empty() && !waits_in_vain(kHydra, words)));
  }
}

TEST_CASE("mpi_advice says how Open MPI's mpirun may be run as root") {
  const char* words = "mpirun has detected an attempt to run as root.\n";
  CHECK(mpirun_advice(kOpen, words).find("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1") != std::string::npos);
}

}  // namespace
}  // namespace hv::launcher
