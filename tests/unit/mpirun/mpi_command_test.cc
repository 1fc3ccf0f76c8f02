// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_command.h"

#include <doctest/doctest.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

const Mpirun kOpen_mpi_command{MpiKind::kOpenMpi, 4, "mpirun", "", ""};
const Mpirun kHydra_mpi_command{MpiKind::kHydra, 0, "mpiexec", "", ""};

struct Wanted {
  JobSpec spec;
  HostList list;

  explicit Wanted(const std::vector<std::pair<std::string, int>>& hosts, int ranks) {
    spec.programs.push_back({{"./train", "a b"}, "/work", ranks});
    spec.ranks = ranks;
    for (const auto& [name, slots] : hosts) {
      HostEntry entry;
      entry.name = name;
      entry.slots = slots;
      list.entries.push_back(entry);
    }
    list.this_machine = hosts.empty();
  }
  LaunchPlan plan() const {
    return make_plan(
        spec, list,
        std::vector<std::optional<HostFacts>>(std::max<std::size_t>(1, list.entries.size())));
  }
  std::string line(const Mpirun& mpirun) const {
    return as_shell_line(make_mpi_command(mpirun, spec, list, plan(), {"A", "PATH"}, "tag"));
  }
};

bool holds(const std::string& line, const std::string& words) {
  return (" " + line + " ").find(" " + words + " ") != std::string::npos;
}

std::string refusal(const JobSpec& spec, const HostList& list) {
  try {
    refuse_what_mpirun_lacks(spec, list);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("mpi_command names hosts with their ranks, variables, directory and program") {
  const Wanted wanted({{"a", 2}, {"b", 2}}, 3);
  CHECK(wanted.line(kOpen_mpi_command) ==
        "mpirun --tag-output --bind-to none --map-by slot -x A "
        "-x PATH -np 3 -host a:2,b:1 --wdir /work ./train 'a b'");
  CHECK(wanted.line(kHydra_mpi_command) ==
        "mpiexec -prepend-pattern '<tag %r>' -hosts a:2,b:1 -bind-to none -genvlist A,PATH -wdir "
        "/work -np 3 ./train 'a b'");
}

TEST_CASE("mpi_command has no variables to name where all ranks are here") {
  const Wanted wanted({}, 1);
  CHECK(!holds(wanted.line(kOpen_mpi_command), "-x"));
  CHECK(holds(wanted.line(kOpen_mpi_command), "-host localhost:1"));
  CHECK(holds(wanted.line(kHydra_mpi_command), "-launcher fork -hosts localhost:1"));
}

TEST_CASE("mpi_command keeps hvrun's order of ranks") {
  Wanted wanted({{"a", 2}, {"b", 2}}, 4);
  wanted.spec.map_by = {MapBy::kNode, 0};
  CHECK(holds(wanted.line(kHydra_mpi_command), "-hosts a:1,b:1"));
  CHECK(holds(wanted.line(kOpen_mpi_command),
              "--map-by node --rank-by node -x A -x PATH -np 4 -host a:2,b:2"));
  wanted.list.entries[1].slots = 1;
  wanted.spec.programs[0].ranks = 3;
  wanted.spec.ranks = 3;
  CHECK(holds(wanted.line(kHydra_mpi_command), "-hosts a:1,b:1"));
  wanted.list.entries[0].slots = 3;
  wanted.spec.ranks = 4;
  CHECK_THROWS_WITH_AS(wanted.line(kHydra_mpi_command),
                       "--mpi: MPICH's mpirun cannot be told this order of ranks on hosts", Error);
}

TEST_CASE("mpi_command has a part for each rank where Open MPI's mpirun cannot deal them out") {
  Wanted wanted({{"a", 2}, {"b", 1}}, 3);
  wanted.spec.map_by = {MapBy::kNode, 0};
  CHECK(holds(wanted.line(kOpen_mpi_command), "--map-by node --rank-by node -x A -x PATH -np 3"));
  wanted.list.entries[1].slots = 2;
  wanted.spec.ranks = wanted.spec.programs[0].ranks = 4;
  wanted.spec.mpi_args = {"--map-by", "node"};  // which is not looked into
  CHECK(holds(wanted.line(kOpen_mpi_command),
              "-np 1 -host a:2 --wdir /work ./train 'a b' : -x A -x PATH -np 1 -host b:2"));
  wanted.spec.programs[0].argv.push_back(std::string(300000, 'x'));
  CHECK_THROWS_WITH_AS(wanted.line(kOpen_mpi_command),
                       "--mpi: Open MPI's mpirun is told this order of ranks in 4 parts, which are "
                       "too long for a command line",
                       Error);
  wanted.spec.mpi_args.clear();
  CHECK(wanted.line(kOpen_mpi_command).size() > 300000);  // shown as a whole
}

TEST_CASE("mpi_command refuses an address that mpirun would take apart at its colons") {
  Wanted wanted({{"fd00::1", 2}}, 2);
  for (const Mpirun& mpirun : {kOpen_mpi_command, kHydra_mpi_command})
    CHECK_THROWS_WITH_AS(wanted.line(mpirun),
                         "--mpi: mpirun takes no address with colons for a host: fd00::1", Error);
  wanted.list.entries[0].name = "a";
  CHECK(holds(wanted.line(kOpen_mpi_command), "-host a:2"));
}

TEST_CASE("mpi_command refuses a remote shell that mpirun would take apart elsewhere") {
  Wanted wanted({{"a", 1}}, 1);
  wanted.spec.remote_shell = "ssh -o 'ProxyCommand=nc gate 22'";
  for (const Mpirun& mpirun : {kOpen_mpi_command, kHydra_mpi_command})
    CHECK_THROWS_WITH_AS(
        wanted.line(mpirun),
        "--mpi: mpirun hands no words with spaces to ssh, as in 'ProxyCommand=nc gate 22'", Error);
  wanted.spec.remote_shell = "ssh -J gate:22";
  CHECK_THROWS_WITH_AS(wanted.line(kOpen_mpi_command),
                       "--mpi: mpirun hands no words with colons to ssh, as in 'gate:22'", Error);
  CHECK(holds(wanted.line(kHydra_mpi_command), "HYDRA_LAUNCHER_EXTRA_ARGS='-J gate:22' mpiexec"));
}

TEST_CASE(
    "mpi_command has a remote shell whose path has blanks run, or refused with how to name it") {
  Wanted wanted({{"a", 1}}, 1);
  wanted.spec.remote_shell = "'/opt/my tools/ssh' -q";
  CHECK(holds(wanted.line(kHydra_mpi_command), "-launcher-exec '/opt/my tools/ssh'"));
  const std::pair<const char*, const char*> cases[] = {
      {"'/opt/my tools/ssh' -q", "ln -s '/opt/my tools/ssh' ~/ssh"},
      {"'/opt/my ssh'", "ln -s '/opt/my ssh' ~/rsh"},
      {"/opt/v:1/ssh", "ln -s /opt/v:1/ssh ~/ssh"},
      {"ssh -J gate:22", "into a script, and name that"}};
  for (const auto& [shell, hint] : cases) {
    CAPTURE(shell);
    wanted.spec.remote_shell = shell;
    std::string told;
    try {
      wanted.line(kOpen_mpi_command);
    } catch (const Error& error) {
      told = error.hint();
    }
    CHECK(holds(told, hint));
  }
}

TEST_CASE("mpi_command binds as is asked for, and leaves to --mpi-args what that says") {
  Wanted wanted({{"a", 2}}, 2);
  wanted.spec.bind_to = BindTo::kCore;
  CHECK(holds(wanted.line(kOpen_mpi_command), "--bind-to core"));
  CHECK(holds(wanted.line(kHydra_mpi_command), "-bind-to core"));
  wanted.spec.mpi_args = {"-map-by", "socket", "--bind-to", "none"};
  CHECK(holds(wanted.line(kOpen_mpi_command), "--tag-output -map-by socket --bind-to none -x A"));
  CHECK(!holds(wanted.line(kOpen_mpi_command), "--map-by slot"));
  CHECK(!holds(wanted.line(kOpen_mpi_command), "--bind-to core"));
}

TEST_CASE("mpi_command has the agent bind ranks on their hosts where nobody says how") {
  Wanted wanted({{"a", 2}, {"b", 2}}, 3);
  Mpirun open = kOpen_mpi_command, hydra = kHydra_mpi_command;
  open.agent = hydra.agent = "/agent";
  CHECK(holds(wanted.line(open), "--bind-to none --map-by slot"));
  CHECK(holds(wanted.line(open), "/agent --carry-output --bind slot ./train"));
  CHECK(holds(wanted.line(hydra), "-bind-to none"));
  CHECK(holds(wanted.line(hydra), "-np 3 /agent --bind slot ./train"));
  wanted.spec.map_by.by = MapBy::kNuma;
  wanted.spec.report_bindings = true;  // which the agent does
  CHECK(holds(wanted.line(open), "--bind numa+told ./train"));
  CHECK(!holds(wanted.line(open), "--report-bindings"));
  CHECK(holds(wanted.line(hydra), "--bind numa+told ./train"));
  CHECK(holds(wanted.line(kOpen_mpi_command),
              "--report-bindings"));  // nobody stands before its ranks
  wanted.spec.report_bindings = false;
  wanted.spec.mpi_args = {"--bind-to", "core"};
  CHECK(holds(wanted.line(open), "/agent --carry-output --bind none ./train"));
  CHECK(holds(wanted.line(hydra), "-np 3 /agent --bind none ./train"));
  wanted.spec.mpi_args.clear();
  wanted.spec.bind_to = BindTo::kNone;
  CHECK(holds(wanted.line(open), "/agent --carry-output --bind none ./train"));
  CHECK(holds(wanted.line(hydra), "-np 3 ./train"));
}

TEST_CASE("mpi_command tells ssh what hosts and options say, if it is the same for all") {
  Wanted wanted({{"a", 1}, {"b", 1}}, 2);
  wanted.spec.ssh_port = 2222;
  wanted.list.entries[0].user = wanted.list.entries[1].user = "ann";
  CHECK(holds(wanted.line(kOpen_mpi_command), "--mca plm_rsh_args '-p 2222 -l ann'"));
  CHECK(holds(wanted.line(kHydra_mpi_command), "mpiexec"));
  CHECK(wanted.line(kHydra_mpi_command)
            .rfind("HYDRA_LAUNCHER_EXTRA_ARGS='-p 2222 -l ann' mpiexec", 0) == 0);
  wanted.spec.remote_shell = "ssh -J gate";
  CHECK(holds(wanted.line(kOpen_mpi_command), "--mca plm_rsh_agent 'ssh -J gate'"));
  CHECK(holds(wanted.line(kHydra_mpi_command), "-launcher-exec ssh"));
  wanted.list.entries[1].user = "bob";
  CHECK_THROWS_AS(wanted.line(kOpen_mpi_command), Error);
  wanted.list.entries[1].user = "ann";
  wanted.spec.ssh_identity_file = "/a b";
  CHECK_THROWS_AS(wanted.line(kOpen_mpi_command), Error);
}

TEST_CASE("mpi_command has Open MPI's ranks yield where they share cores") {
  Wanted wanted({{"a", 1}}, 3);
  CHECK_THROWS_AS(wanted.line(kOpen_mpi_command), Error);
  wanted.spec.oversubscribe = true;
  CHECK(holds(wanted.line(kOpen_mpi_command), "--mca mpi_yield_when_idle 1"));
}

TEST_CASE("mpi_command hands a long grace to Open MPI, in whole seconds") {
  Wanted wanted({{"a", 1}}, 1);
  wanted.spec.grace = std::chrono::milliseconds(4500);
  CHECK(holds(wanted.line(kOpen_mpi_command), "--mca odls_base_sigkill_timeout 5"));
  wanted.spec.grace = std::chrono::seconds(1);
  CHECK(!holds(wanted.line(kOpen_mpi_command), "odls_base_sigkill_timeout"));
}

TEST_CASE("mpi_command refuses an argument that mpirun would take for the end of a program's") {
  Wanted wanted({{"a", 1}}, 1);
  wanted.spec.programs[0].argv.push_back(":");
  CHECK_THROWS_AS(wanted.line(kOpen_mpi_command), Error);
}

TEST_CASE("mpi_command refuses what only hvrun's agents can do") {
  const Wanted plain({{"a", 1}}, 1);
  CHECK(refusal(plain.spec, plain.list).empty());
  JobSpec spec = plain.spec;
  spec.pty = true;
  CHECK(refusal(spec, plain.list) ==
        "--pty is nothing that --mpi can do: mpirun has the ranks' streams");
  spec = plain.spec;
  spec.wire_mpi = WireMpi::kPmi;
  CHECK(refusal(spec, plain.list) ==
        "--wire-mpi is nothing that --mpi can do: mpirun wires its ranks itself");
  spec = plain.spec;
  spec.gpus_are_asked_for = true;
  CHECK(refusal(spec, plain.list) ==
        "--gpus-per-rank is nothing that --mpi can do: no host is asked for its GPUs");
  CHECK(refusal(spec, Wanted({}, 1).list).empty());
  spec = plain.spec;
  spec.programs[0].exports = {"A=1"};
  CHECK(!refusal(spec, plain.list).empty());
  HostList list = plain.list;
  list.entries[0].gpus = {"0"};
  CHECK(!refusal(plain.spec, list).empty());
  list = plain.list;
  list.rank_places.push_back({});
  CHECK(refusal(plain.spec, list).empty());
  list.rank_places[0].cores = {1};
  CHECK(!refusal(plain.spec, list).empty());
}

TEST_CASE("mpi_environment has the ranks' variables, and MPI carry") {
  Wanted wanted({{"a", 1}}, 1);
  wanted.spec.exports = {"TOKEN=secret"};
  const auto own = Environment::from_entries({"HOME=/h", "PATH=/bin", "HVRUN_RANK=3", "PMI_RANK=1",
                                              "OMPI_MCA_x=1", "BASH_FUNC_f%%=() { :; }", "Z=1",
                                              "PMIX_MCA_gds=hash", "PMIX_RANK=1"});
  MpiEnvironment made = mpi_environment(wanted.spec, own, {"node1", 20001});
  CHECK(made.own.get_or("TOKEN", "") == "secret");
  CHECK(made.own.get_or("HVRUN_BACKEND", "") == "mpi,native");
  CHECK(made.own.has("HOME"));
  CHECK(made.own.get_or("MASTER_ADDR", "") + made.own.get_or("MASTER_PORT", "") == "node120001");
  CHECK(!made.own.has("HVRUN_RANK"));
  CHECK(!made.own.has("PMI_RANK"));
  CHECK((made.own.has("PMIX_MCA_gds") && !made.own.has("PMIX_RANK")));
  CHECK(join(made.for_others, " ") ==
        "HVRUN_BACKEND HVRUN_JOB_LOST_AFTER MASTER_ADDR MASTER_PORT PATH PYTHONUNBUFFERED TOKEN Z");
  wanted.spec.clean_environment = true;
  made = mpi_environment(wanted.spec, own, {"node1", 20001});
  CHECK((made.own.has("PATH") && made.own.has("OMPI_MCA_x") && made.own.has("PMIX_MCA_gds") &&
         !made.own.has("Z")));
}

TEST_CASE("choose_master takes rank 0's host, and a port of those that are wanted") {
  Wanted here({}, 2), there({{"a", 1}, {"b", 1}}, 2);
  const Environment own = Environment::from_entries({"HVRUN_PORT_RANGE=30001"});
  CHECK(choose_master(here.spec, here.list, here.plan(), own) ==
        std::pair{std::string("127.0.0.1"), 30001});
  CHECK(choose_master(there.spec, there.list, there.plan(), own) ==
        std::pair{std::string("a"), 30001});
  const int any = choose_master(here.spec, here.list, here.plan(), {}).second;
  CHECK((any >= 20000 && any < 30000));
  here.spec.master_port = 5;
  CHECK(choose_master(here.spec, here.list, here.plan(), own).second == 5);
}

TEST_CASE("exit_code_of_mpirun knows a signal by Hydra's words only") {
  const std::string words = "THE EXIT STRING: Killed (signal 9)\n";
  CHECK(exit_code_of_mpirun(kHydra_mpi_command, 9, words) == 137);
  CHECK(exit_code_of_mpirun(kHydra_mpi_command, 9, "") == 9);
  CHECK(exit_code_of_mpirun(kHydra_mpi_command, 15, words) == 137);
  CHECK(exit_code_of_mpirun(kHydra_mpi_command, 3, "EXIT STRING: Exit 3\n(signal 9)\n") == 3);
  CHECK(exit_code_of_mpirun(kHydra_mpi_command, 3, "EXIT STRING: (signal x)\n") == 3);
  CHECK(exit_code_of_mpirun(kHydra_mpi_command, 0, words) == 0);
  CHECK(exit_code_of_mpirun(kOpen_mpi_command, 9, words) == 9);
}

}  // namespace
}  // namespace hv::launcher
