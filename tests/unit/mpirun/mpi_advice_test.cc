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

TEST_CASE("mpi_advice says that hvrun must lie on every host, where a host lacks its agent") {
  Mpirun open = kOpen, hydra = kHydra;
  open.agent = hydra.agent = "/opt/hvrun-agent";
  const std::string everywhere =
      "install hvrun on every host where it lies on this one, for its /opt/hvrun-agent stands "
      "before each rank";
  CHECK(mpirun_advice(open, "directory in use is\n  Executable: /opt/hvrun-agent\n  Node: b\n") ==
        everywhere);
  const std::string words =
      "[proxy:0:1@b] HYDU_create_process (x.c:75): execvp error on file /opt/hvrun-agent (No such "
      "file or directory)\n";
  CHECK(mpirun_advice(hydra, words) ==
        everywhere + "; or --bind-to none, with which none is needed");
  CHECK_FALSE(waits_in_vain(hydra, words));
  CHECK((is_of_starter(hydra, words) && !is_of_starter(open, words)));
  CHECK(!is_of_starter(hydra, "loss 0.1 [proxy:"));
}

TEST_CASE("mpi_advice names program and host where Hydra's daemon could not start it") {
  const std::string line =
      "[proxy:0:0@a] HYDU_create_process (x.c:73): execvp error on file ./my run ";
  CHECK(mpirun_advice(kHydra, line + "(No such file or directory)\n") ==
        "install ./my run on host a, name it by its path, or set PATH there with -x PATH=...");
  CHECK(mpirun_advice(kHydra, line + "(Permission denied)\n") == "chmod +x ./my run on host a");
  CHECK_FALSE(waits_in_vain(kHydra, line + "(Permission denied)\n"));
}

TEST_CASE("mpi_advice names --wdir where the ranks' directory is not there") {
  for (const char* words :
       {"[proxy:0:0@a] launch_procs (x.c:621): unable to change wdir to /no (No such file)\n",
        "could not\nchange to the specified working directory:\n\nWorking directory: /no\n"})
    CHECK(mpirun_advice(kOpen, words) ==
          "create that directory on that host, or name another one with --wdir");
}

TEST_CASE("advice_on_mpi_args names the word of --mpi-args that mpirun complains of") {
  const std::vector<std::string> words = {"-v", "--frob", "x"};
  const auto advice = [&](const char* said) { return advice_on_mpi_args(kOpen, words, said); };
  for (const char* said :
       {"mpirun: Error: unknown option \"--frob\"\nType 'mpirun --help' for usage.\n",
        "was included on the mpirun command line:\n\n  Option: --frob\n\nPlease",
        "[mpiexec@a] match_arg (args.c:163): unrecognized argument frob\n[mpiexec@a] x\n"})
    CHECK(advice(said) == "--mpi-args without --frob, or as 'mpirun --help' has it");
  for (const char* said : {"Node:       a\nExecutable: x\n---\n",
                           "[proxy:0:0@a] HYDU (x.c:73): execvp error on file x (No such file)\n"})
    CHECK(advice(said) == "--mpi-args without x, or as 'mpirun --help' has it");
  for (const char* said :
       {"", "Executable: xy\n", "unknown option \"--frobnicate\"\n", "-v --frob x\n"})
    CHECK(advice(said).empty());
}

TEST_CASE("only Open MPI's own words make its exit code an error's number") {
  CHECK(has_started_nobody(kOpen, "---\n2 total processes failed to start\n"));
  CHECK_FALSE(has_started_nobody(kOpen, "failed to start the engine"));
  CHECK_FALSE(has_started_nobody(kHydra, "2 total processes failed to start\n"));
}

TEST_CASE("mpi_advice does not guess at other words") {
  for (const char* words :
       {"", "x", "ssh\n", "Warning: Permanently added 'n1' to the list of known hosts.\n",
        "execvp error on file train (No such file)\n", "cat: /secret: Permission denied\n"}) {
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
