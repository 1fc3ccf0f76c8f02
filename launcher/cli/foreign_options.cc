// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/foreign_options.h"

#include <algorithm>
#include <array>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

struct ForeignOption {
  const char* names;           // without dashes
  const char* here;            // an option or a variable of hvrun, or a sentence
  const char* in_script = "";  // of hvrun script, where that is something else
};

constexpr const char* kFoundOut = "leave it out: hvrun finds it out by itself";
constexpr const char* kAlways = "leave it out: hvrun does so anyway";

constexpr std::array kForeignOptions{
    // Of one letter, mostly with a dash and a value of their own.
    ForeignOption{"N",
                  "mpirun's -N is --npernode here, and srun's is -H with some of the job's nodes",
                  "mpirun's -N is --ranks-per-node here, and srun's is --nodes"},
    ForeignOption{"f,machinefile,default-hostfile", "--hostfile"},
    ForeignOption{
        "c", "mpirun's -c is -np here, and srun's is not needed: a rank has its share of the cores",
        "mpirun's -c is -np here, and srun's is --cores-per-rank"},
    ForeignOption{"w,nodelist", "-H"},
    ForeignOption{"D,wd,chdir", "--wdir"},
    ForeignOption{"e", "deepspeed's -e is --exclude here"},
    ForeignOption{"m,module", "hvrun starts programs: hvrun python -m package.train"},
    ForeignOption{"t", "torchrun's -t is --output-dir here, and srun's is --timeout in seconds",
                  "srun's -t is --time here"},
    ForeignOption{"r,redirects,tee,log-dir,outfile-pattern,errfile-pattern", "--output-dir"},
    ForeignOption{"K,kill-on-bad-exit", kAlways},

    // How many, and where.
    ForeignOption{"ntasks,num-processes", "-np"},
    ForeignOption{"ppn,nproc-per-node,ntasks-per-node,num-gpus,num-accelerators",
                  "that is -np here on one machine, and --npernode on several", "--ranks-per-node"},
    ForeignOption{"pernode", "--npernode 1", "--ranks-per-node 1"},
    ForeignOption{
        "nnodes,nodes,num-nodes,num-machines",
        "there are as many hosts as -H or --hostfile names, or as the scheduler has given",
        "--nodes"},
    ForeignOption{"ppr", "--map-by ppr:N:node"},
    ForeignOption{"byslot", "--map-by slot"},
    ForeignOption{"bynode", "--map-by node"},
    ForeignOption{"rf", "--rankfile"},
    ForeignOption{"nolocal,skip-launch-node", "--exclude"},
    ForeignOption{"nooversubscribe", kAlways},
    ForeignOption{"cpu-bind,bind-to-core", "--bind-to"},
    ForeignOption{"gpus-per-proc,gpus-per-task", "--gpus-per-rank"},
    ForeignOption{"multi-prog,configfile,app",
                  "several programs stand on one command line: hvrun -np 1 ./serve "
                  ": -np 4 ./train"},

    // What hvrun does without being told.
    ForeignOption{
        "node-rank,machine-rank,master-addr,main-process-ip,standalone,rdzv-backend,rdzv-endpoint,"
        "rdzv-id,rdzv-conf",
        kFoundOut},
    ForeignOption{"main-process-port", "--master-port"},
    ForeignOption{"allow-run-as-root,tag-output,prepend-rank,genvall,envall,launch-agent,prefix",
                  kAlways},
    ForeignOption{
        "mca,gmca",
        "MPI starts nothing here, leave it out; --rsh, HVRUN_INTERFACES, HVRUN_PORT_RANGE and "
        "HVRUN_ALGORITHM replace some of its parameters, -x OMPI_MCA_NAME=VALUE sets others"},
    ForeignOption{"mpi-args",
                  "hvrun starts the ranks, not mpirun: set Open MPI's parameters by -x "
                  "OMPI_MCA_NAME=VALUE, or start the program by mpirun itself, as in mpirun --mca "
                  "NAME VALUE -np 4 ./train"},

    ForeignOption{"genv,env", "-x NAME=VALUE"},
    ForeignOption{"genvlist,envlist", "-x NAME, once for each"},
    ForeignOption{"genvnone,envnone", "--clean-env"},
    ForeignOption{"launcher,bootstrap", "--spawner, or --rsh CMD"},
    ForeignOption{"launcher-exec,bootstrap-exec", "--rsh"},
    ForeignOption{"iface", "HVRUN_INTERFACES"},
    ForeignOption{"local-ranks-filter", "--ranks"},
    ForeignOption{"timestamp-output", "--timestamp"},
    ForeignOption{"merge-stderr-to-stdout", "write 2>&1 behind the command"},
    ForeignOption{"display-map,display-allocation,do-not-launch", "--dry-run=offline"},
    ForeignOption{"max-restarts", "--restarts"},
};

// "--nproc_per_node": "nproc-per-node"; of one letter only behind one dash.
std::string bare_name(const std::string& name) {
  std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  if (bare.size() == 1 && name.size() != 2) return {};
  std::replace(bare.begin(), bare.end(), '_', '-');
  return bare;
}

// What is no sentence is a word of hvrun's.
std::string as_sentence(const std::string& here) {
  const bool is_word = here[0] == '-' || here.rfind("HVRUN_", 0) == 0;
  return is_word ? "that is " + here + " here" : here;
}

}  // namespace

std::optional<std::string> meaning_of_foreign_option(const std::string& name, bool in_script) {
  const std::string bare = bare_name(name);
  for (const ForeignOption& row : kForeignOptions) {
    const std::vector<std::string> names = split(row.names, ',');
    if (std::find(names.begin(), names.end(), bare) == names.end()) continue;
    return as_sentence(in_script && row.in_script[0] != '\0' ? row.in_script : row.here);
  }
  return std::nullopt;
}

std::optional<std::string> advice_on_detached_value(const std::string& option,
                                                    const std::string& word) {
  if (option != "--stdin") return std::nullopt;
  if (parse_integer(word)) return "--stdin=" + word;
  if (word == "none") return "leave --stdin out: ranks have /dev/null then";
  if (word == "all") return "--stdin=RANK: one rank can have it";
  return std::nullopt;
}

}  // namespace hv::launcher
