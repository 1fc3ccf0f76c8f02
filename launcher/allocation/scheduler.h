// The hosts that a scheduler has given this job, as its environment tells. Pure but for the files
// that the environment names.
// SPDX-License-Identifier: Apache-2.0
//
// One line in the list of scheduler.cc for each. A scheduler's function
// looks whether hvrun runs under it, and whether what it says is whole.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "launcher/allocation/host_list.h"
#include "src/base/environment.h"

namespace hv::launcher {

// The content of a file, `what` names it in the Error(kUsage): "$PBS_NODEFILE".
using ReadFile = std::function<std::string(const std::string& path, const std::string& what)>;
// Whether a file is there and may be executed.
using IsProgram = std::function<bool(const std::string& path)>;

struct SchedulerHosts {
  std::string scheduler;  // "Slurm"
  HostList hosts;
};

// Of the scheduler under which this process runs, if there is one. Throws Error(kUsage) where it
// says what cannot be understood.
std::optional<SchedulerHosts> hosts_of_scheduler(const Environment& environment,
                                                 const ReadFile& read);

// The hosts with Slurm's names for those that are nodes of the job in which this process runs, by
// another form of their names or by their addresses. A host with what only SSH understands (a user,
// a port, a key, an address) keeps its name. Throws Error(kUsage) for a name that may mean several
// nodes, and for two hosts that are one node.
HostList with_slurm_names(HostList hosts, const Environment& environment,
                          const AddressLookup& look_up);

// Whether all of these hosts are nodes of the Slurm job in which this process runs, named as Slurm
// names them and with nothing that only SSH understands.
bool are_nodes_of_slurm_job(const HostList& hosts, const Environment& environment);

// Throws Error(kUsage) that names the hosts that are no nodes of the Slurm job in which this
// process runs, if it runs in one. What only SSH understands (a user, a port, an address) is
// allowed, and so is this machine if it is the only host.
void refuse_strangers_to_slurm_job(const HostList& hosts, const Environment& environment);

// Whether all of these hosts are of the MPI operator's job whose launcher this is.
bool are_hosts_of_mpi_operator(const HostList& hosts, const Environment& environment,
                               const ReadFile& read);

// How that launcher reaches its hosts; nothing where these are others, or have what only SSH
// understands. Throws Error(kUsage) where the operator's pods need kubectl and there is none.
HostReach reach_by_mpi_operator(const HostList& hosts, const Environment& environment,
                                const ReadFile& read, const IsProgram& is_program);

// Number of components of the heterogeneous Slurm job in which this process runs; 0: the job is not
// heterogeneous.
int slurm_components(const Environment& environment);
// "_HET_GROUP_1": the end of the names of that component's variables. component < 0: "".
std::string suffix_of_slurm_component(int component);
// The component of each node; a node of several has the first. Empty: the job is not heterogeneous.
std::map<std::string, int> slurm_component_of_nodes(const Environment& environment);

// {}: not known.
GpusOfJob gpus_of_slurm_job(const Environment& environment);

std::optional<HostList> hosts_of_slurm(const Environment& environment, const ReadFile& read);
std::optional<HostList> hosts_of_pbs(const Environment& environment, const ReadFile& read);
std::optional<HostList> hosts_of_lsf(const Environment& environment, const ReadFile& read);
std::optional<HostList> hosts_of_sge(const Environment& environment, const ReadFile& read);
std::optional<HostList> hosts_of_mpi_operator(const Environment& environment, const ReadFile& read);

}  // namespace hv::launcher
