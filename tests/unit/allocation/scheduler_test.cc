// Tests of hosts that schedulers name, by environments as their manuals describe them.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/scheduler.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "launcher/allocation/host_expression.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "tests/unit/allocation/refusal.h"

using namespace hv;
using namespace hv::launcher;
using hv::tests::hint_of;
using hv::tests::message_of;

namespace {

using Files = std::map<std::string, std::string>;

ReadFile reader(const Files& files) {
  return [&files](const std::string& path, const std::string& what) {
    const auto file = files.find(path);
    if (file == files.end())
      throw Error(ErrorKind::kUsage, "read " + what + " " + path + ": No such file", "unset it");
    return file->second;
  };
}

// "Slurm: a:4 b:2"; "": no scheduler.
std::string found(const std::vector<std::string>& variables, const Files& files = {}) {
  const auto hosts = hosts_of_scheduler(Environment::from_entries(variables), reader(files));
  if (!hosts) return "";
  std::string text = hosts->scheduler + ":";
  for (const HostEntry& entry : hosts->hosts.entries) {
    text += " " + entry.name;
    if (entry.slots) text += ":" + std::to_string(*entry.slots);
  }
  return text;
}

}  // namespace

TEST_CASE("outside of every scheduler nobody names a host") {
  CHECK(found({}) == "");
  CHECK(found({"PBS_NODEFILE=/left/behind"}) == "");  // no job: a variable that somebody has kept
  CHECK(found({"PE_HOSTFILE=/left/behind"}) == "");
  CHECK(found({"SLURM_JOB_NODELIST=n1"}) == "");
  CHECK(found({"OMPI_MCA_orte_default_hostfile=/etc/openmpi/hosts"}) == "");
}

TEST_CASE("Slurm: a heterogeneous job has the nodes and tasks of all its components") {
  const std::vector<std::string> job{"SLURM_JOB_ID=9",
                                     "SLURM_HET_SIZE=2",
                                     "SLURM_JOB_NODELIST=n1",
                                     "SLURM_NTASKS=3",
                                     "SLURM_TASKS_PER_NODE=3",
                                     "SLURM_JOB_NODELIST_HET_GROUP_0=n1",
                                     "SLURM_NTASKS_HET_GROUP_0=3",
                                     "SLURM_TASKS_PER_NODE_HET_GROUP_0=3",
                                     "SLURM_JOB_NODELIST_HET_GROUP_1=n[1,3-4]",
                                     "SLURM_NTASKS_HET_GROUP_1=4",
                                     "SLURM_TASKS_PER_NODE_HET_GROUP_1=2,1(x2)"};
  CHECK(found(job) == "Slurm: n1:5 n3:1 n4:1");
  const Environment environment = Environment::from_entries(job);
  CHECK(slurm_component_of_nodes(environment) ==
        std::map<std::string, int>{{"n1", 0}, {"n3", 1}, {"n4", 1}});
  CHECK(are_nodes_of_slurm_job(parse_host_expression("n4,n1"), environment));
  CHECK_FALSE(are_nodes_of_slurm_job(parse_host_expression("n2"), environment));
  // An option of sbatch that the second component alone has.
  std::vector<std::string> other{
      "SLURM_JOB_ID=9", "SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST_HET_GROUP_0=n1",
      "SLURM_JOB_NODELIST_HET_GROUP_1=n2", "SLURM_NTASKS_PER_NODE_HET_GROUP_1=4"};
  CHECK(found(other) == "Slurm: n1 n2:4");
  CHECK(slurm_component_of_nodes(Environment::from_entries({"SLURM_JOB_NODELIST=n1"})).empty());
  for (const char* size : {"", "0", "-1", "x"}) {
    other[1] = std::string("SLURM_HET_SIZE=") + size;
    CHECK(found(other) == "");
  }
}

TEST_CASE("Slurm: components of the job in which sbatch was called do not count") {
  std::vector<std::string> inner{"SLURM_JOB_ID=12",
                                 "SLURM_JOB_NODELIST=n5",
                                 "SLURM_HET_SIZE=2",
                                 "SLURM_JOB_ID_HET_GROUP_0=9",
                                 "SLURM_JOB_ID_HET_GROUP_1=10",
                                 "SLURM_JOB_NODELIST_HET_GROUP_0=n1",
                                 "SLURM_JOB_NODELIST_HET_GROUP_1=n2"};
  CHECK(found(inner) == "Slurm: n5");
  for (const char* own : {"9", "10"}) {
    inner[0] = std::string("SLURM_JOB_ID=") + own;
    CHECK(found(inner) == "Slurm: n1 n2");
  }
}

TEST_CASE("Slurm: the GPUs of a job, where its variables say how many all nodes have") {
  const auto gpus = [](const std::vector<std::string>& variables) {
    const GpusOfJob found = gpus_of_slurm_job(Environment::from_entries(variables));
    return std::to_string(found.in_all) + " in all, " + std::to_string(found.of_each_host);
  };
  CHECK(gpus({}) == "0 in all, 0");
  CHECK(gpus({"SLURM_GPUS_ON_NODE=4", "SLURM_JOB_GPUS=0,1,2,3"}) == "0 in all, 4");  // --gres
  CHECK(gpus({"SLURM_GPUS_PER_NODE=a100:4"}) == "0 in all, 4");                      // salloc
  CHECK(gpus({"SLURM_JOB_GPUS=0,3"}) == "0 in all, 2");
  CHECK(gpus({"SLURM_GPUS=a100:5", "SLURM_GPUS_ON_NODE=4"}) == "5 in all, 0");
  CHECK(gpus({"SLURM_GPUS_PER_TASK=2", "SLURM_NTASKS=3", "SLURM_GPUS_ON_NODE=4"}) == "6 in all, 0");
  // Not known: several types, tasks whose number nobody stated, one component of several.
  CHECK(gpus({"SLURM_GPUS=a100:2,v100:2", "SLURM_GPUS_ON_NODE=4"}) == "0 in all, 0");
  CHECK(gpus({"SLURM_GPUS_PER_TASK=2", "SLURM_GPUS_ON_NODE=4"}) == "0 in all, 0");
  CHECK(gpus({"SLURM_TRES_PER_TASK=gres/gpu:1", "SLURM_NTASKS=3", "SLURM_GPUS_ON_NODE=2"}) ==
        "0 in all, 0");
  CHECK(gpus({"SLURM_HET_SIZE=2", "SLURM_GPUS_ON_NODE=4"}) == "0 in all, 0");
  for (const char* text : {"", "0", "-1", "x", "a100:", "99999999999"})
    CHECK(gpus({std::string("SLURM_GPUS_ON_NODE=") + text}) == "0 in all, 0");
}

TEST_CASE("Slurm: the node expression, with the tasks that were asked for as slots") {
  // sbatch -N 2 --ntasks-per-node=4 --gres=gpu:4 on Jean Zay
  CHECK(found({"SLURM_JOB_ID=1201", "SLURM_JOB_NODELIST=jean-zay-iam[11,14]",
               "SLURM_NTASKS_PER_NODE=4", "SLURM_NTASKS=8", "SLURM_TASKS_PER_NODE=4(x2)"}) ==
        "Slurm: jean-zay-iam11:4 jean-zay-iam14:4");
  // sbatch -n 7 over three nodes
  CHECK(found({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=node[1-3]", "SLURM_NTASKS=7", "SLURM_NPROCS=7",
               "SLURM_TASKS_PER_NODE=3,2(x2)"}) == "Slurm: node1:3 node2:2 node3:2");
  // sbatch -N 2 -n 5 --ntasks-per-node=4, where the latter is a limit
  CHECK(found({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=node[1-2]", "SLURM_NTASKS=5",
               "SLURM_NTASKS_PER_NODE=4", "SLURM_TASKS_PER_NODE=4,1"}) == "Slurm: node1:4 node2:1");
  CHECK(found({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=node[1-2]", "SLURM_NTASKS_PER_NODE=4"}) ==
        "Slurm: node1:4 node2:4");
  // salloc -N 2: no number of tasks, so Slurm counts cores; the hosts' GPUs decide
  CHECK(found({"SLURM_JOB_ID=8", "SLURM_JOB_NODELIST=node[1-2]", "SLURM_TASKS_PER_NODE=40(x2)"}) ==
        "Slurm: node1 node2");
}

TEST_CASE("Slurm: what is not whole is refused in words, and so are many hvrun in one step") {
  const auto refused = [](const std::string& tasks) {
    return message_of([&] {
      found({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_NTASKS=7",
             "SLURM_TASKS_PER_NODE=" + tasks});
    });
  };
  CHECK(refused("3").find("$SLURM_TASKS_PER_NODE:1: there are numbers for 1 of 2 nodes") == 0);
  CHECK(refused("3,2,1").find("$SLURM_TASKS_PER_NODE:5: there are more numbers than nodes") == 0);
  CHECK(refused("3(x99999999)").find("$SLURM_TASKS_PER_NODE:2: this repetition") == 0);
  CHECK(refused("3(x2").find("$SLURM_TASKS_PER_NODE:2: this repetition") == 0);
  CHECK(refused("(x2)").find("$SLURM_TASKS_PER_NODE:1: '' is no number of slots") == 0);
  CHECK(refused("3,").find("$SLURM_TASKS_PER_NODE:3: '' is no number of slots") == 0);
  CHECK(message_of([] {
          found({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_STEP_NUM_TASKS=8"});
        }).find("srun has started 8 hvrun at once") == 0);
  // srun -n 1 hvrun in a job of two nodes: the numbers are the step's
  CHECK(found({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_STEP_NUM_TASKS=1",
               "SLURM_NTASKS=1", "SLURM_TASKS_PER_NODE=1"}) == "Slurm: n1 n2");
  // salloc -N 2 --ntasks-per-node=4 with LaunchParameters=use_interactive_step: the shell is a step
  CHECK(found({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_STEP_NUM_TASKS=1",
               "SLURM_NTASKS=1", "SLURM_TASKS_PER_NODE=1", "SLURM_NTASKS_PER_NODE=4"}) ==
        "Slurm: n1:4 n2:4");
}

TEST_CASE("Slurm: a host that is no node of the job is refused, unless it is named for SSH") {
  const auto environment =
      Environment::from_entries({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]"});
  const auto refused = [&](const std::string& hosts, const Environment& own) {
    const HostList list = parse_host_expression(hosts);
    return message_of([&] { refuse_strangers_to_slurm_job(list, own); });
  };
  CHECK(refused("n1,n3", environment) == "n3 is no node of this Slurm job (nodes: n[1-2])");
  CHECK(refused("x[1-10]", environment) ==
        "x[1-10] (10 hosts) are no nodes of this Slurm job (nodes: n[1-2])");
  for (const char* hosts :
       {"n1:4", "n2", "ada@x", "10.0.0.9", "[fd00::1]", "localhost", "LocalHost"})
    CHECK(refused(hosts, environment) == "no error");
  CHECK(refused("n3", {}) == "no error");
  CHECK(refused("n1,localhost", environment) ==
        "localhost is no node of this Slurm job (nodes: n[1-2])");
  CHECK(refused("127.0.0.1,n1", environment) ==
        "127.0.0.1 is no node of this Slurm job (nodes: n[1-2])");
}

TEST_CASE("Slurm: nodes get Slurm's names, by which srun knows them") {
  const auto environment =
      Environment::from_entries({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2],job.1.x,job.2.x"});
  const AddressLookup look_up = [](const std::vector<std::string>& names) {
    std::vector<std::vector<std::string>> addresses;
    for (const std::string& name : names) {
      const std::string address = name == "n2" || name == "fast2" ? "10.0.0.2" : name;
      addresses.push_back(address == "nobody" ? std::vector<std::string>{}
                                              : std::vector<std::string>{address});
    }
    return addresses;
  };
  const auto renamed = [&](const std::string& hosts, const Environment& own) {
    HostList list = with_slurm_names(parse_host_expression(hosts), own, look_up);
    std::vector<std::string> names;
    for (const HostEntry& entry : list.entries) names.push_back(entry.name);
    return hv::join(names, " ");
  };
  CHECK(renamed("N1.lab.example,n2", environment) == "n1 n2");
  CHECK(renamed("10.0.0.2,job.1", environment) == "n2 job.1.x");
  CHECK(renamed("fast2,n1", environment) == "n2 n1");
  CHECK(renamed("nobody,10.0.0.9", environment) == "nobody 10.0.0.9");
  CHECK(renamed("ada@n1.lab", environment) == "n1.lab");
  CHECK(renamed("n1.lab", {}) == "n1.lab");
  // In a rank of hvrun's that has but one of the nodes
  const auto in_rank = Environment::from_entries(
      {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n1", "HVRUN_JOB_NODELIST=n[1-2]"});
  CHECK(renamed("n2.lab", in_rank) == "n2");
  CHECK(message_of([&] {
          renamed("job", environment);
        }).find("'job' may be job.1.x ($SLURM_JOB_NODELIST) or job.2.x") != std::string::npos);
  CHECK(message_of([&] {
          renamed("n2,n1,fast2", environment);
        }).find("'fast2' is node n2 of this Slurm job, and so is a host before it (-H)") !=
        std::string::npos);
}

TEST_CASE("PBS and Torque: a line for each slot, one where a host has one") {
  const Files files{{"/var/spool/pbs/aux/12.s", "n1\nn1\nn2\n"},
                    {"/var/spool/torque/aux/3.t", "n1.lab\nn2.lab\n"}};
  CHECK(found({"PBS_JOBID=12.s", "PBS_NODEFILE=/var/spool/pbs/aux/12.s"}, files) ==
        "PBS: n1:2 n2:1");
  CHECK(found({"PBS_JOBID=3.t", "PBS_NODEFILE=/var/spool/torque/aux/3.t"}, files) ==
        "PBS: n1.lab:1 n2.lab:1");
}

TEST_CASE("LSF: the file of slots, or hosts with their numbers") {
  const Files files{{"/home/u/.lsbatch/1.2.hostfile", "hosta\nhosta\nhostb\nhostb\n"}};
  CHECK(found({"LSB_JOBID=9", "LSB_DJOB_HOSTFILE=/home/u/.lsbatch/1.2.hostfile",
               "LSB_MCPU_HOSTS=hosta 2 hostb 2"},
              files) == "LSF: hosta:2 hostb:2");
  CHECK(found({"LSB_JOBID=9", "LSB_MCPU_HOSTS=hosta 4 hostb 2 "}) == "LSF: hosta:4 hostb:2");
}

TEST_CASE("SGE: hosts with slots and queues") {
  const Files files{
      {"/opt/sge/pe_hostfile",
       "node07.lab 4 all.q@node07.lab UNDEFINED\nnode09.lab 2 gpu.q@node09.lab 0,1\n"}};
  CHECK(found({"JOB_ID=77", "PE_HOSTFILE=/opt/sge/pe_hostfile", "NSLOTS=6"}, files) ==
        "SGE: node07.lab:4 node09.lab:2");
}

TEST_CASE("the MPI operator: the hostfile of whichever MPI the job names") {
  const Files files{
      {"/etc/mpi/hostfile", "train-worker-0.train slots=2\ntrain-worker-1.train slots=2\n"},
      {"/etc/mpi/mpich", "train-worker-0.train.default.svc:2\n"}};
  const std::string pod = "KUBERNETES_SERVICE_HOST=10.96.0.1";
  const std::string two = "the MPI operator: train-worker-0.train:2 train-worker-1.train:2";
  CHECK(found({pod, "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile"}, files) == two);
  CHECK(found({pod, "PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile"}, files) == two);
  CHECK(found({pod, "I_MPI_HYDRA_HOST_FILE=/etc/mpi/mpich"}, files) ==
        "the MPI operator: train-worker-0.train.default.svc:2");
  CHECK(found({pod, "HYDRA_HOST_FILE=/etc/mpi/mpich"}, files) ==
        "the MPI operator: train-worker-0.train.default.svc:2");
  CHECK(found({pod}) == "");
}

TEST_CASE("the MPI operator's launcher says how its pods are reached") {
  const Files files{{"/etc/mpi/hostfile", "w-0 slots=2\nw-1 slots=2\n"},
                    {"/etc/mpi/mpich", "w-0:2\nw-1:2\n"}};
  std::set<std::string> programs{"/opt/kube/kubectl"};
  const auto reach = [&](std::vector<std::string> variables, const std::string& hosts) {
    variables.push_back("KUBERNETES_SERVICE_HOST=10.96.0.1");
    const HostReach found = reach_by_mpi_operator(
        parse_host_expression(hosts), Environment::from_entries(variables), reader(files),
        [&](const std::string& path) { return programs.count(path) > 0; });
    return found.kubectl.program + (found.may_come_late ? " late" : "");
  };
  const std::string hostfile = "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile";
  const std::string agent = "OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh";
  CHECK(reach({hostfile, agent}, "w-0,w-1") == "/opt/kube/kubectl late");
  CHECK(reach({hostfile, agent}, "w-1:1") == "/opt/kube/kubectl late");
  CHECK(reach({"PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile",
               "PRTE_MCA_plm_ssh_agent=/etc/mpi/kubexec.sh"},
              "w-0") == "/opt/kube/kubectl late");
  CHECK(reach({"PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile",
               "PRTE_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh"},
              "w-0") == "/opt/kube/kubectl late");
  CHECK(reach({"I_MPI_HYDRA_HOST_FILE=/etc/mpi/mpich", "I_MPI_HYDRA_BOOTSTRAP=rsh",
               "I_MPI_HYDRA_BOOTSTRAP_EXEC=/etc/mpi/kubexec.sh"},
              "w-0") == "/opt/kube/kubectl late");
  CHECK(reach({"HYDRA_HOST_FILE=/etc/mpi/mpich", "HYDRA_LAUNCHER=rsh",
               "HYDRA_LAUNCHER_EXEC=/etc/mpi/kubexec.sh"},
              "w-0") == "/opt/kube/kubectl late");
  CHECK(reach({hostfile, "OMPI_MCA_plm_rsh_agent=kubectl exec -i"}, "w-0") == "kubectl late");
  // Its second version, and images that name ssh themselves.
  CHECK(reach({hostfile}, "w-0") == " late");
  for (const std::string ssh : {"ssh", "/usr/bin/ssh -q", "ssh : rsh", "", " "})
    CHECK(reach({hostfile, "OMPI_MCA_plm_rsh_agent=" + ssh}, "w-0") == " late");
  // Hosts that it did not name, or that are meant for SSH.
  CHECK(reach({hostfile, agent}, "w-0,other") == "");
  CHECK(reach({hostfile, agent}, "ada@w-0") == " late");
  CHECK(reach({"OMPI_MCA_orte_default_hostfile=/gone", agent}, "w-0") == "");
  CHECK(reach({agent}, "w-0") == "");
  // The kubectl next to the script comes first, then the operator's, then the first on PATH.
  const std::string path = "PATH=:/none:/one:/two";
  programs = {"/etc/mpi/kubectl", "/opt/kube/kubectl", "/one/kubectl",
              "/two/kubectl",     "kubectl",           "/kubectl"};
  CHECK(reach({hostfile, agent, path}, "w-0") == "/etc/mpi/kubectl late");
  CHECK(reach({hostfile, "OMPI_MCA_plm_rsh_agent=kubexec.sh", path}, "w-0") ==
        "/opt/kube/kubectl late");
  programs.erase("/etc/mpi/kubectl");
  CHECK(reach({hostfile, agent, path}, "w-0") == "/opt/kube/kubectl late");
  programs.erase("/opt/kube/kubectl");
  CHECK(reach({hostfile, agent, path}, "w-0") == "/one/kubectl late");
  const auto without_path = [&] { reach({hostfile, agent}, "w-0"); };
  CHECK(message_of(without_path) ==
        "$OMPI_MCA_plm_rsh_agent: /etc/mpi/kubexec.sh reaches pods by kubectl, which is not found "
        "next to it, as /opt/kube/kubectl or on PATH");
  CHECK(hint_of(without_path).find("--rsh '/path/to/kubectl exec -i --container=NAME'") !=
        std::string::npos);
}

TEST_CASE("outside of a pod the operator's variables say nothing of any host") {
  const Files files{{"/etc/mpi/hostfile", "w-0\n"}};
  const auto environment =
      Environment::from_entries({"OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile"});
  CHECK_FALSE(are_hosts_of_mpi_operator(parse_host_expression("w-0"), environment, reader(files)));
}
