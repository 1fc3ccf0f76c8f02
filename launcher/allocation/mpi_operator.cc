// Kubernetes' MPI operator: the launcher's pod has the hostfile, and how pods are reached, in the
// variables of whichever MPI the job names.
// SPDX-License-Identifier: Apache-2.0
//
// Its first version has a script that runs `kubectl exec`; its second one lets SSH into the pods,
// and names no program or ssh. Either starts the launcher while workers may still be coming up.
#include <algorithm>
#include <array>
#include <set>

#include "launcher/allocation/hostfile.h"
#include "launcher/allocation/rsh_script.h"
#include "launcher/allocation/scheduler.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

struct MpiVariables {
  const char* hostfile;
  const char* remote_shell;
};

// Of OpenMPI 4, OpenMPI 5 (which has two names for it), Intel's MPI and MPICH.
constexpr std::array<MpiVariables, 5> kVariables{
    {{"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_agent"},
     {"PRTE_MCA_prte_default_hostfile", "PRTE_MCA_plm_ssh_agent"},
     {"PRTE_MCA_prte_default_hostfile", "PRTE_MCA_plm_rsh_agent"},
     {"I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP_EXEC"},
     {"HYDRA_HOST_FILE", "HYDRA_LAUNCHER_EXEC"}}};

constexpr const char* kStateReach =
    "say yourself how pods are reached: --rsh 'kubectl exec -i --container=NAME'";

// Outside of a pod these variables are somebody's configuration of MPI, not ours.
bool is_in_pod(const Environment& environment) {
  return environment.has("KUBERNETES_SERVICE_HOST");
}

// The program of the remote shell and its options, as $OMPI_MCA_plm_rsh_agent names it.
KubectlCommand kubectl_of(const std::string& variable, const std::string& value,
                          const Environment& environment, const ReadFile& read) {
  std::vector<std::string> words;
  for (const std::string& word : split(value, ' '))
    if (!word.empty()) words.push_back(word);
  const std::string source = "$" + variable;
  if (words.empty()) return {};
  if (is_kubectl(words[0])) return parse_kubectl_command(words, source);
  const std::string name = words[0].substr(words[0].rfind('/') + 1);
  if (name == "ssh" || name == "rsh") return {};
  std::string script;
  try {
    script = read(words[0], source);
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage, error.what(), kStateReach);
  }
  return kubectl_in_script(script, words[0], environment);
}

}  // namespace

std::optional<HostList> hosts_of_mpi_operator(const Environment& environment,
                                              const ReadFile& read) {
  if (!is_in_pod(environment)) return std::nullopt;
  const auto found = std::find_if(
      kVariables.begin(), kVariables.end(),
      [&](const MpiVariables& variables) { return environment.has(variables.hostfile); });
  if (found == kVariables.end()) return std::nullopt;
  const std::string file = *environment.get(found->hostfile);
  return parse_hostfile(read(file, std::string("$") + found->hostfile), file);
}

bool are_hosts_of_mpi_operator(const HostList& hosts, const Environment& environment,
                               const ReadFile& read) {
  std::set<std::string> names;
  try {
    const auto list = hosts_of_mpi_operator(environment, read);
    if (!list) return false;
    for (const HostEntry& entry : list->entries) names.insert(entry.name);
  } catch (const Error&) {
    return false;  // a list that cannot be read says nothing of hosts that somebody else has named
  }
  return std::all_of(hosts.entries.begin(), hosts.entries.end(),
                     [&](const HostEntry& host) { return names.count(host.name) > 0; });
}

HostReach reach_by_mpi_operator(const HostList& hosts, const Environment& environment,
                                const ReadFile& read) {
  HostReach reach;
  if (!are_hosts_of_mpi_operator(hosts, environment, read)) return reach;
  reach.may_come_late = true;
  const bool is_ssh_meant =
      std::any_of(hosts.entries.begin(), hosts.entries.end(), [](const HostEntry& host) {
        return !host.user.empty() || host.port != 0 || !host.identity.empty() ||
               !host.address.empty();
      });
  if (is_ssh_meant) return reach;
  for (const auto& [hostfile, remote_shell] : kVariables) {
    if (!environment.has(hostfile) || !environment.has(remote_shell)) continue;
    reach.kubectl = kubectl_of(remote_shell, *environment.get(remote_shell), environment, read);
    break;
  }
  return reach;
}

}  // namespace hv::launcher
