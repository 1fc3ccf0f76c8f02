// Tests of launchers as the program: which are found, and what is to be typed instead.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/nested_launcher.h"

#include <doctest/doctest.h>

#include "launcher/allocation/host_expression.h"
#include "src/base/error.h"

using namespace hv::launcher;
using Words = std::vector<std::string>;

namespace {

JobSpec job_of(const Words& argv, const std::string& hosts = "") {
  JobSpec spec;
  spec.programs.push_back({argv, "/"});
  spec.hosts.hosts = hosts;
  return spec;
}

// The hint up to its first ';', or "started".
std::string advice_on(const Words& argv, const Words& options = {}, const std::string& hosts = "",
                      bool is_in_scheduler_job = false) {
  try {
    refuse_nested_launchers(job_of(argv, hosts), options, is_in_scheduler_job);
    return "started";
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    CHECK(std::string(error.what()).find("is a launcher, too") != std::string::npos);
    CHECK(error.hint().find("--nested starts it all the same") != std::string::npos);
    return error.hint().substr(0, error.hint().find(';'));
  }
}

LaunchPlan plan_of(const JobSpec& spec, const std::string& hosts) {
  const HostList list = parse_host_expression(hosts);
  return make_plan(spec, list, std::vector<std::optional<HostFacts>>(list.entries.size()));
}

}  // namespace

TEST_CASE("a launcher as the program is refused with what to type instead") {
  CHECK(advice_on({"torchrun", "train.py", "--lr", "1"}) == "hvrun python3 train.py --lr 1");
  CHECK(advice_on({"/opt/bin/torchrun", "--standalone", "--nproc_per_node=4", "train.py"}) ==
        "hvrun -np 4 python3 train.py");
  CHECK(advice_on({"torchrun", "--nproc-per-node", "4", "-m", "pkg.train"}, {"-H", "a:4,b:4"},
                  "a:4,b:4") ==
        "hvrun -H a:4,b:4 --npernode 4 --oversubscribe python3 -m pkg.train");
  CHECK(advice_on({"torchrun", "--no-python", "--nproc-per-node", "gpu", "./train"}) ==
        "hvrun ./train");
  CHECK(advice_on({"python3", "-u", "-m", "torch.distributed.run", "--nnodes=1", "train.py"}) ==
        "hvrun python3 train.py");
  CHECK(advice_on({"python", "-mtorch.distributed.launch", "--use_env", "train.py"}) ==
        "hvrun python train.py");
  CHECK(advice_on({"python", "/opt/bin/torchrun", "a b.py"}) == "hvrun python 'a b.py'");
  CHECK(advice_on({"accelerate", "launch", "--multi_gpu", "--num_processes", "8", "train.py"}) ==
        "hvrun -np 8 python3 train.py");
  CHECK(advice_on({"python", "-m", "accelerate.commands.launch", "train.py"}) ==
        "hvrun python train.py");
  CHECK(advice_on({"deepspeed", "--num_gpus", "2", "--no_local_rank", "train.py", "-x"}) ==
        "hvrun -np 2 python3 train.py -x");
  CHECK(advice_on({"mpirun", "--mca", "btl", "tcp", "-np", "4", "--oversubscribe", "./train"}) ==
        "hvrun -np 4 ./train");
  CHECK(advice_on({"torchrun", "--nproc-per-node", "4", "train.py"}, {}, "", true) ==
        "hvrun --npernode 4 --oversubscribe python3 train.py");
  CHECK(advice_on({"torchrun", "--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
                   "train.py"}) == "hvrun python3 train.py");
  CHECK(advice_on({"/venv/bin/python", "-m", "torch.distributed.run", "train.py"}) ==
        "hvrun /venv/bin/python train.py");
  CHECK(advice_on({"accelerate-launch", "--use_mps_device", "train.py"}) ==
        "hvrun python3 train.py");
  CHECK(advice_on({"horovodrun", "-np", "4", "python", "t.py"}) == "hvrun -np 4 python t.py");
  CHECK(advice_on({"hvrun", "-np", "4", "./train"}, {"-H", "a,b"}) ==
        "one hvrun with the options of both, each of them once");
  CHECK(advice_on({"hvrun", "-np", "4", "./train"}) == "hvrun -np 4 ./train");
  CHECK(advice_on({"/usr/bin/mpirun.openmpi", "-n", "4", "./train"}) == "hvrun -np 4 ./train");
  CHECK(advice_on({"mpiexec.mpich", "-n4", "./train"}) == "hvrun -np 4 ./train");
  CHECK(advice_on({"env", "A=1", "numactl", "-l", "torchrun", "train.py"}) ==
        "hvrun env A=1 numactl -l python3 train.py");
}

TEST_CASE("among several programs the hint has what to type in the launcher's place") {
  const auto hint_for = [](const Words& second) {
    JobSpec spec = job_of({"./serve"});
    spec.programs.push_back({second, "/", 1});
    try {
      refuse_nested_launchers(spec, {"-np", "1"}, false);
      return std::string("started");
    } catch (const hv::Error& error) {
      return error.hint().substr(0, error.hint().find(';'));
    }
  };
  CHECK(hint_for({"torchrun", "--nproc-per-node=4", "train.py"}) ==
        "-np 4 python3 train.py in its place");
  CHECK(hint_for({"hvrun", "-np", "4", "./train"}) ==
        "leave out 'hvrun' and what -np states already");
  CHECK(hint_for({"./train"}) == "started");
}

TEST_CASE("programs that only resemble launchers are started") {
  for (const Words& argv : std::vector<Words>{{"python", "train.py", "torchrun"},
                                              {"python", "-c", "torchrun"},
                                              {"./torchrun.py"},
                                              {"accelerate", "config"},
                                              {"python", "-m", "torch.utils.bench"},
                                              {"hvrun", "env"},
                                              {"mpirun", "--version"},
                                              {"torchrun", "--help"},
                                              {"srun", "--overlap", "./train"},
                                              {"sh", "-c", "exec torchrun train.py"},
                                              {}})
    CHECK(advice_on(argv) == "started");
  JobSpec spec = job_of({"mpirun", "-np", "2", "./train"});
  spec.allows_nested = true;
  CHECK_NOTHROW(refuse_nested_launchers(spec, {}, false));
}

TEST_CASE("a launcher that joins several hosts may run once on each, and not more often") {
  const Words torchrun{"torchrun", "--nnodes", "2", "--rdzv-endpoint=a:29500", "train.py"};
  CHECK(advice_on(torchrun) == "started");
  CHECK(advice_on({"accelerate", "launch", "--num_machines=2", "train.py"}) == "started");
  CHECK(advice_on({"deepspeed", "--no_ssh", "--node_rank=0", "train.py"}) == "started");
  CHECK(plan_of(job_of(torchrun), "a:1,b:1").ranks.size() == 2);
  CHECK_THROWS_WITH_AS(plan_of(job_of(torchrun), "a:1,b:2"),
                       "'torchrun' starts the processes of a host itself, and b has 2 ranks that "
                       "would run it",
                       hv::Error);
  JobSpec spec = job_of(torchrun);
  spec.allows_nested = true;
  CHECK_NOTHROW(plan_of(spec, "a:1,b:2"));
}
