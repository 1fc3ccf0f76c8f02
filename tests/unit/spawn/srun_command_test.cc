// Tests of the Slurm step that starts agents.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/slurm/srun_command.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("one task a node, beside all else, with no core of its own") {
  const auto words =
      srun_words({{"n1", "n2", "n7"}, "/x/hvrun-agent", {"10.0.0.1:5", "[fd::1]:5"}, "s1"});
  CHECK(words == std::vector<std::string>{"srun",
                                          "--overlap",
                                          "-N",
                                          "3",
                                          "-n",
                                          "3",
                                          "--ntasks-per-node=1",
                                          "--cpu-bind=none",
                                          "--export=ALL",
                                          "--mpi=none",
                                          "--wait=0",
                                          "--kill-on-bad-exit=0",
                                          "--job-name=hvrun",
                                          "-w",
                                          "n[1-2,7]",
                                          "/x/hvrun-agent",
                                          "--connect",
                                          "10.0.0.1:5,[fd::1]:5",
                                          "--step",
                                          "s1"});
}

TEST_CASE("a copy goes along where the agent's file is not there, and removes itself") {
  const auto words = srun_words(
      {{"n1"}, "/x/hvrun-agent", {"10.0.0.1:5"}, "s1", "/tmp/copy", 0, {"--lost-after", "2"}});
  CHECK(has(words, "--bcast=/tmp/copy"));
  CHECK(words.back() == "--remove-self");
}

TEST_CASE("a job with GPUs for each task gives the step of agents those of all tasks of a node") {
  const auto gpus = [](const std::vector<std::string>& entries) {
    return gpus_of_nodes(Environment::from_entries(entries));
  };
  CHECK(gpus({"SLURM_GPUS_PER_TASK=1", "SLURM_TASKS_PER_NODE=4(x2)"}) == 4);
  CHECK(gpus({"SLURM_GPUS_PER_TASK=a100:2", "SLURM_TASKS_PER_NODE=4"}) == 8);
  CHECK(gpus({"SLURM_TRES_PER_TASK=cpu:8,gres/gpu:h100:1", "SLURM_TASKS_PER_NODE=4,2"}) == 2);
  CHECK(gpus({"SLURM_TRES_PER_TASK=gres:gpu=2", "SLURM_TASKS_PER_NODE=3"}) == 6);
  CHECK(gpus({"SLURM_TRES_PER_TASK=cpu:8", "SLURM_TASKS_PER_NODE=4"}) == 0);
  CHECK(gpus({"SLURM_GPUS_PER_NODE=4", "SLURM_TASKS_PER_NODE=4"}) == 0);
  CHECK(gpus({"SLURM_GPUS_PER_TASK=x", "SLURM_TASKS_PER_NODE=4"}) == 0);
  CHECK(gpus({"SLURM_GPUS_PER_TASK=1"}) == 0);
  CHECK(gpus({"SLURM_GPUS_PER_TASK=1", "SLURM_TASKS_PER_NODE=4(x2),99999999999"}) == 0);
  CHECK(has(srun_words({{"n1"}, "/x", {}, "s", "", 4}), "--gpus-per-node=4"));
}

TEST_CASE("the step of a heterogeneous job's component names it, and has its GPUs") {
  SrunStep step{{"n3"}, "/x", {}, "s"};
  CHECK_FALSE(has(srun_words(step), "--het-group=0"));
  step.component = 1;
  step.copy_as = "/tmp/copy";
  CHECK(has(srun_words(step), "--het-group=1"));
  CHECK(has(remove_words(step), "--het-group=1"));
  const auto own = Environment::from_entries({"SLURM_GPUS_PER_TASK=1", "SLURM_TASKS_PER_NODE=1",
                                              "SLURM_GPUS_PER_TASK_HET_GROUP_1=2",
                                              "SLURM_TASKS_PER_NODE_HET_GROUP_1=3"});
  CHECK(gpus_of_nodes(own, 1) == 6);
}

TEST_CASE("a copy that could not be run is told and taken away on the same nodes") {
  const auto words = remove_words({{"n1", "n2"}, "", {}, "", "/tmp/copy"});
  CHECK(words.front() == "srun");
  CHECK(has(words, "n[1-2]"));
  CHECK(std::vector<std::string>(words.end() - 3, words.end()) ==
        std::vector<std::string>{"rm", "-f", "/tmp/copy"});
  CHECK(is_agent_forbidden("slurmstepd: error: execve(): /tmp/copy: Permission denied"));
  CHECK_FALSE(is_agent_forbidden("srun: error: Permission denied"));
}

TEST_CASE("of what many nodes say the node's own comes first, and what is alike but once") {
  std::string words = "srun ended with exit code 2\n";
  for (int node = 1; node <= 300; ++node)
    words += "srun: error: node" + std::to_string(node) + ": task " + std::to_string(node - 1) +
             ": Exited with exit code 2\n";
  words += "slurmstepd: error: node12: out of memory\nslurmstepd: error: node1: lost\n";
  CHECK(gist_of_srun(words, "node12", 600) ==
        "srun: error: node12: task 11: Exited with exit code 2; slurmstepd: error: node12: out of "
        "memory; srun ended with exit code 2; srun: error: node1: task 0: Exited with exit code 2; "
        "slurmstepd: error: node1: lost");
  CHECK(gist_of_srun(words, "", 600) ==
        "srun ended with exit code 2; srun: error: node1: task 0: Exited with exit code 2; "
        "slurmstepd: error: node12: out of memory; slurmstepd: error: node1: lost");
  CHECK(gist_of_srun(words, "node1", 40).size() <= 43);
  CHECK(gist_of_srun("", "n", 40).empty());
}

namespace {

// srun(1) of 22.05, INPUT ENVIRONMENT VARIABLES without SLURM_, and what later versions added.
constexpr char kInputs[] =
    "ACCOUNT ACCTG_FREQ ARBITRARY_NODELIST BCAST BCAST_EXCLUDE BURST_BUFFER CLUSTERS "
    "COMPRESS CONSTRAINT CONTAINER CORE_SPEC CPUS_PER_GPU CPUS_PER_TASK CPU_BIND "
    "CPU_BIND_TYPE CPU_FREQ_REQ DEBUG DEBUG_FLAGS DELAY_BOOT DEPENDENCY DISABLE_STATUS "
    "DISTRIBUTION DIST_PLANESIZE EPILOG EXACT EXCLUSIVE EXIT_ERROR EXPORT_ENV GPUS "
    "GPUS_PER_NODE GPUS_PER_TASK GPU_BIND GPU_FREQ GRES GRES_FLAGS HINT HOSTFILE "
    "IMMEDIATE JOB_NAME JOB_NODELIST JOB_NUM_NODES KILL_BAD_EXIT LABELIO MEM_BIND MEM_PER_CPU "
    "MEM_PER_GPU MEM_PER_NODE MPI_TYPE NCORES_PER_SOCKET NETWORK NNODES NODELIST NO_KILL "
    "NPROCS NTASKS NTASKS_PER_NODE NTASKS_PER_TRES OPEN_MODE OVERCOMMIT OVERLAP PARTITION "
    "POWER PROFILE PROLOG QOS REMOTE_CWD REQ_SWITCH RESERVATION RESV_PORTS SEND_LIBS "
    "SIGNAL SPREAD_JOB STDERRMODE STDINMODE STDOUTMODE STEP_GRES STEP_ID TASK_EPILOG "
    "TASK_PROLOG TEST_EXEC THREADS THREADS_PER_CORE THREAD_SPEC TIMELIMIT TRES_BIND "
    "TRES_PER_TASK UMASK UNBUFFEREDIO USE_MIN_NODES WAIT WAIT4SWITCH WCKEY WORKING_DIR";

}  // namespace

TEST_CASE("srun sees of Slurm's variables only those that find the cluster and the job") {
  const std::vector<std::string> needed{"SLURM_CLUSTER_NAME=c",
                                        "SLURM_CONF=/etc/s",
                                        "SLURM_CONF_SERVER=h",
                                        "SLURM_HET_SIZE=2",
                                        "SLURM_JOBID=7",
                                        "SLURM_JOB_GPUS=0,1",
                                        "SLURM_JOB_ID=7",
                                        "SLURM_JWT=secret",
                                        "SLURM_NODE_ALIASES=n1:a:b",
                                        "SLURM_SPANK_X=1",
                                        "SLURM_WORKING_CLUSTER=c:h:6817:1:1"};
  std::vector<std::string> own{"HOME=/h", "PATH=/bin", "XSLURM_HINT=1", "MUNGE_SOCKET=/m"};
  own.insert(own.end(), needed.begin(), needed.end());
  std::vector<std::string> expected = own;
  std::sort(expected.begin(), expected.end());
  for (const std::string& name : split(kInputs, ' ')) own.push_back("SLURM_" + name + "=x");
  for (const char* name : {"SRUN_CPUS_PER_TASK", "SRUN_CONTAINER", "SRUN_DEBUG", "SLURMD_DEBUG"})
    own.push_back(std::string(name) + "=x");
  CHECK(srun_environment(Environment::from_entries(own)).entries() == expected);
  CHECK(srun_environment(Environment::from_entries({"SLURM_HET_SIZE="})).entries().empty());
}

TEST_CASE("a missing file is told from another failure, and each failure has its advice") {
  const std::string missing =
      "srun ended with exit code 2: slurmstepd: error: execve(): /x/hvrun-agent: No such file or "
      "directory";
  CHECK(is_agent_missing(missing));
  CHECK_FALSE(is_agent_missing("srun: error: Unable to open /x: No such file or directory"));
  CHECK(srun_advice(missing).find("--spawner ssh") != std::string::npos);
  CHECK(srun_advice("srun: error: Node failure on n2").find("sinfo") != std::string::npos);
  CHECK_FALSE(srun_advice("anything").empty());
}

}  // namespace hv::launcher
