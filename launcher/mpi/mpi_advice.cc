// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_advice.h"

#include <string_view>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

std::string up_to(std::string_view text, char end) {
  return printable(text.substr(0, text.find(end)));
}

std::string advice_on_shell(const std::string& file) {
  return "check that " + file + ", by which it reaches hosts, can be run, or name another by --rsh";
}

std::string try_by_hand(const std::string& host) {
  return "see that 'ssh " + host + " true' works from here, and asks nothing";
}

// Of a line by which ssh, or who was to start it, says that it gives a host up; "" for any other.
std::string advice_on_line(std::string_view line) {
  constexpr std::string_view kUnknown = "ssh: Could not resolve hostname ";
  constexpr std::string_view kUnreached = "ssh: connect to host ";
  constexpr std::string_view kNoAgent = "  plm_rsh_agent: ";
  constexpr std::string_view kNotRun = "execvp error on file ";
  if (line.starts_with(kUnknown))
    return "check the spelling of " + up_to(line.substr(kUnknown.size()), ':') +
           ", or name it in /etc/hosts or ~/.ssh/config";
  if (line.starts_with(kUnreached)) return try_by_hand(up_to(line.substr(kUnreached.size()), ' '));
  if (line.starts_with("Host key verification failed")) return try_by_hand("HOST");
  if (line.find(": Permission denied (") != std::string_view::npos)
    return try_by_hand(up_to(line, ':'));
  const std::size_t file = line.find(kNotRun);
  if (line.starts_with("[mpiexec@") && file != std::string_view::npos)
    return advice_on_shell(up_to(line.substr(file + kNotRun.size()), ' '));
  if (line.starts_with(kNoAgent)) return advice_on_shell(printable(line.substr(kNoAgent.size())));
  return "";
}

std::string advice_on_hosts(const std::string& words) {
  for (const std::string& line : split(words, '\n'))
    if (const std::string advice = advice_on_line(line); !advice.empty()) return advice;
  return "";
}

}  // namespace

std::string mpirun_advice(const Mpirun& mpirun, const std::string& words) {
  if (mpirun.kind == MpiKind::kOpenMpi && words.find("run as root") != std::string::npos)
    return "as another user; or, in a container that is yours, OMPI_ALLOW_RUN_AS_ROOT=1 and "
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the environment, or --mpi-args "
           "--allow-run-as-root";
  return advice_on_hosts(words);
}

bool waits_in_vain(const Mpirun& mpirun, const std::string& words) {
  return mpirun.kind == MpiKind::kHydra && !advice_on_hosts(words).empty();
}

}  // namespace hv::launcher
