// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/slurm_variables.h"

#include <doctest/doctest.h>

using namespace hv::launcher;

namespace {

const std::vector<std::string> kJob{"SLURM_JOB_ID=7",
                                    "SLURM_JOB_NODELIST=n[1-4]",
                                    "SLURM_NODELIST=n[1-4]",
                                    "SLURM_JOB_NUM_NODES=4",
                                    "SLURM_NNODES=4",
                                    "SLURM_NTASKS=8",
                                    "SLURM_NPROCS=8",
                                    "SLURM_NTASKS_PER_NODE=2",
                                    "SLURM_TASKS_PER_NODE=2(x4)",
                                    "SLURM_JOB_CPUS_PER_NODE=40,20(x3)"};

CommonEnvironment of_ranks(const std::vector<HostRanks>& hosts, const std::string& exported = "",
                           const std::vector<std::string>& job = kJob) {
  CommonEnvironment environment;
  environment.variables.set_all(job);
  if (!exported.empty()) environment.exported.insert(exported);
  set_slurm_variables(hosts, &environment);
  return environment;
}

// "-": the ranks do not have it.
std::string value_of(const CommonEnvironment& environment, const std::string& name) {
  return environment.variables.as_environment().get_or(name, "-");
}

void check_values(const CommonEnvironment& environment,
                  const std::vector<std::pair<std::string, std::string>>& expected) {
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK(value_of(environment, name) == value);
  }
}

}  // namespace

TEST_CASE("ranks on part of a Slurm job's nodes, in another order, see these nodes alone") {
  check_values(of_ranks({{"n3", 2}, {"n1", 2}}), {{"SLURM_JOB_NODELIST", "n3,n1"},
                                                  {"SLURM_NODELIST", "n3,n1"},
                                                  {"SLURM_STEP_NODELIST", "n3,n1"},
                                                  {"SLURM_NNODES", "2"},
                                                  {"SLURM_JOB_NUM_NODES", "2"},
                                                  {"SLURM_STEP_NUM_NODES", "2"},
                                                  {"SLURM_NTASKS", "4"},
                                                  {"SLURM_NPROCS", "4"},
                                                  {"SLURM_STEP_NUM_TASKS", "4"},
                                                  {"SLURM_TASKS_PER_NODE", "2(x2)"},
                                                  {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                                  {"SLURM_NTASKS_PER_NODE", "2"},
                                                  {"SLURM_JOB_CPUS_PER_NODE", "20,40"}});
}

TEST_CASE("ranks find the Slurm job's own values under names of hvrun") {
  const CommonEnvironment environment = of_ranks({{"n3", 1}});
  check_values(environment, {{"HVRUN_JOB_NODELIST", "n[1-4]"},
                             {"HVRUN_JOB_NUM_NODES", "4"},
                             {"HVRUN_JOB_NTASKS", "8"},
                             {"HVRUN_JOB_NTASKS_PER_NODE", "2"},
                             {"HVRUN_JOB_TASKS_PER_NODE", "2(x4)"},
                             {"HVRUN_JOB_CPUS_PER_NODE", "40,20(x3)"}});
  for (const std::string& name : names_of_job_values()) CHECK(environment.variables.has(name));
  // An hvrun in a rank: the job's values are still the job's.
  CommonEnvironment inner = environment;
  set_slurm_variables({{"n3", 1}}, &inner);
  check_values(inner, {{"HVRUN_JOB_NODELIST", "n[1-4]"}, {"SLURM_JOB_NODELIST", "n3"}});
}

TEST_CASE("ranks on all nodes of a Slurm job keep its list as Slurm writes it") {
  check_values(of_ranks({{"n1", 2}, {"n2", 2}, {"n3", 2}, {"n4", 2}}),
               {{"SLURM_JOB_NODELIST", "n[1-4]"},
                {"SLURM_NODELIST", "n[1-4]"},
                {"SLURM_JOB_CPUS_PER_NODE", "40,20(x3)"},
                {"SLURM_TASKS_PER_NODE", "2(x4)"}});
}

TEST_CASE("no single number of tasks describes nodes with different numbers of ranks") {
  check_values(of_ranks({{"n1", 2}, {"n2", 1}, {"n3", 1}}), {{"SLURM_TASKS_PER_NODE", "2,1(x2)"},
                                                             {"SLURM_NTASKS_PER_NODE", "-"},
                                                             {"HVRUN_JOB_NTASKS_PER_NODE", "2"}});
  const std::vector<std::string> job{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n1"};
  check_values(of_ranks({{"n1", 2}}, "", job),
               {{"SLURM_NTASKS_PER_NODE", "-"}, {"SLURM_JOB_CPUS_PER_NODE", "-"}});
}

TEST_CASE("numbers of cores that do not fit the ranks' hosts are not passed on") {
  check_values(of_ranks({{"elsewhere", 1}}), {{"SLURM_JOB_NODELIST", "elsewhere"},
                                              {"SLURM_JOB_CPUS_PER_NODE", "-"},
                                              {"HVRUN_JOB_CPUS_PER_NODE", "40,20(x3)"}});
  for (const char* cpus : {"40", "40(x5)", "40(x0)", "40(x", "40(xa)", "40(x2),1"}) {
    CAPTURE(cpus);
    const std::vector<std::string> job{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-4]",
                                       std::string("SLURM_JOB_CPUS_PER_NODE=") + cpus};
    check_values(of_ranks({{"n2", 1}}, "", job), {{"SLURM_JOB_CPUS_PER_NODE", "-"}});
  }
}

TEST_CASE("ranks of a heterogeneous Slurm job see the hosts of all components in one list") {
  const std::vector<HostRanks> hosts{{"n1", 2}, {"n2", 1}};
  const std::vector<std::string> of_sbatch{"SLURM_JOB_ID=7", "SLURM_HET_SIZE=2",
                                           "SLURM_JOB_NODELIST=n1",
                                           "SLURM_JOB_NODELIST_HET_GROUP_1=n2"};
  const std::vector<std::string> of_salloc{"SLURM_JOB_ID=7", "SLURM_HET_SIZE=2",
                                           "SLURM_JOB_NODELIST_HET_GROUP_0=n1"};
  for (const auto& job : {of_sbatch, of_salloc})
    check_values(of_ranks(hosts, "", job), {{"SLURM_JOB_NODELIST", "n1,n2"},
                                            {"SLURM_NODELIST", "n1,n2"},
                                            {"SLURM_TASKS_PER_NODE", "2,1"}});
  check_values(of_ranks({{"localhost", 1}}, "", {"SLURM_JOB_ID=7"}), {{"SLURM_JOB_NODELIST", "-"}});
}

TEST_CASE("-x beats what ranks get of Slurm's variables, and outside a job there are none") {
  check_values(of_ranks({{"n3", 2}}, "SLURM_JOB_NODELIST"),
               {{"SLURM_JOB_NODELIST", "n[1-4]"}, {"SLURM_NNODES", "1"}});
  check_values(of_ranks({{"n3", 1}, {"n1", 2}}, "SLURM_NTASKS_PER_NODE"),
               {{"SLURM_NTASKS_PER_NODE", "2"}});
  CHECK(of_ranks({{"n3", 2}}, "", {"PATH=/bin"}).variables.entries() ==
        std::vector<std::string>{"PATH=/bin"});
}
