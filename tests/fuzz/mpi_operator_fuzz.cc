// How an MPI operator's launcher reaches pods: which variable says it, its value in the first line,
// and PATH.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "launcher/allocation/host_expression.h"
#include "launcher/allocation/kubectl_command.h"
#include "launcher/allocation/scheduler.h"
#include "src/base/error.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

constexpr std::array kVariables{
    std::pair{"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_agent"},
    std::pair{"PRTE_MCA_prte_default_hostfile", "PRTE_MCA_plm_ssh_agent"},
    std::pair{"PRTE_MCA_prte_default_hostfile", "PRTE_MCA_plm_rsh_agent"},
    std::pair{"I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP_EXEC"},
    std::pair{"HYDRA_HOST_FILE", "HYDRA_LAUNCHER_EXEC"}};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const auto [hostfile, remote_shell] = kVariables[input.byte() % kVariables.size()];
  const std::string_view text = input.rest();
  const std::size_t end = std::min(text.find('\n'), text.size());
  Environment environment;
  environment.set("KUBERNETES_SERVICE_HOST", "10.96.0.1");
  environment.set(hostfile, "/hosts");
  environment.set(remote_shell, std::string(text.substr(0, end)));
  environment.set("PATH", std::string(text.substr(std::min(end + 1, text.size()))));
  const ReadFile read = [](const std::string&, const std::string&) { return "w-0 slots=2\n"; };
  const IsProgram is_program = [](const std::string& path) { return path.size() % 2 == 0; };
  try {
    const HostReach reach =
        reach_by_mpi_operator(parse_host_expression("w-0"), environment, read, is_program);
    HV_CHECK(reach.may_come_late, "pods of the operator's");
    const std::string& program = reach.kubectl.program;
    HV_CHECK(program.empty() || is_kubectl(program), "by SSH, or by kubectl");
    if (program.empty()) return 0;
    const KubectlCall call = parse_kubectl_call(exec_words(reach.kubectl, "pod"), "again");
    HV_CHECK(call.subcommand == "exec", "which runs commands");
    HV_CHECK(call.operands == std::vector<std::string>{"pod"}, "in the pod that is meant");
  } catch (const Error& error) {
    HV_CHECK(error.kind() == ErrorKind::kUsage && !error.hint().empty(), "with what to try");
  }
  return 0;
}
