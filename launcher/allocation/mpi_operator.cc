// Kubernetes' MPI operator: the launcher's pod has the hostfile, and how pods are reached, in the
// variables of whichever MPI the job names.
// SPDX-License-Identifier: Apache-2.0
//
// Its first version names a script that runs `kubectl exec`, without standard input: hvrun runs
// `kubectl exec -i` itself. Its second one lets SSH into the pods, and names no program or ssh.
// Either starts the launcher while workers may still be coming up.
#include <algorithm>
#include <array>
#include <set>

#include "launcher/allocation/hostfile.h"
#include "launcher/allocation/kubectl_command.h"
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

// The operator's init container copies kubectl here; its script calls it by this path.
constexpr const char* kOperatorKubectl = "/opt/kube/kubectl";

// Outside of a pod these variables are somebody's configuration of MPI, not ours.
bool is_in_pod(const Environment& environment) {
  return environment.has("KUBERNETES_SERVICE_HOST");
}

// The kubectl that a script of the operator's would call: next to the script, where the operator
// puts it, or on PATH. The script is not read.
std::string kubectl_of_script(const std::string& script, const std::string& source,
                              const Environment& environment, const IsProgram& is_program) {
  std::vector<std::string> candidates;
  if (const std::size_t slash = script.rfind('/'); slash != std::string::npos)
    candidates.push_back(script.substr(0, slash) + "/kubectl");
  candidates.emplace_back(kOperatorKubectl);
  for (const std::string& directory : split(environment.get_or("PATH", ""), ':'))
    if (!directory.empty()) candidates.push_back(directory + "/kubectl");
  const auto found = std::find_if(candidates.begin(), candidates.end(), is_program);
  if (found != candidates.end()) return *found;
  throw Error(ErrorKind::kUsage,
              source + ": " + printable(script) +
                  " reaches pods by kubectl, which is not found next to it, as " +
                  kOperatorKubectl + " or on PATH",
              "name it: --rsh '/path/to/kubectl exec -i --container=NAME'; or log in to the pods: "
              "--spawner ssh");
}

// The remote shell's program and its options, as $OMPI_MCA_plm_rsh_agent names it.
KubectlCommand kubectl_of(const std::string& variable, const std::string& value,
                          const Environment& environment, const IsProgram& is_program) {
  std::vector<std::string> words;
  for (const std::string& word : split(value, ' '))
    if (!word.empty()) words.push_back(word);
  const std::string source = "$" + variable;
  if (words.empty()) return {};
  if (is_kubectl(words[0])) return parse_kubectl_command(words, source);
  const std::string name = words[0].substr(words[0].rfind('/') + 1);
  if (name == "ssh" || name == "rsh") return {};
  return {kubectl_of_script(words[0], source, environment, is_program)};
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
                                const ReadFile& read, const IsProgram& is_program) {
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
    reach.kubectl =
        kubectl_of(remote_shell, *environment.get(remote_shell), environment, is_program);
    break;
  }
  return reach;
}

}  // namespace hv::launcher
