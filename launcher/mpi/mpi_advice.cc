// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_advice.h"

#include <algorithm>
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

// Of a host on which nobody lies where hvrun-agent does here.
std::string advice_on_agent(const Mpirun& mpirun, const std::string& words) {
  if (mpirun.agent.empty()) return "";
  const bool is_open = mpirun.kind == MpiKind::kOpenMpi;
  if (words.find((is_open ? "Executable: " : "execvp error on file ") + mpirun.agent) ==
      std::string::npos)
    return "";
  return "install hvrun on every host where it lies on this one, for its " +
         printable(mpirun.agent) + " stands before each rank" +
         (is_open ? "" : "; or --bind-to none, with which none is needed");
}

// Of a program that hvrun-agent was not to start: Hydra's daemon was, where nobody is bound; and of
// the directory in which it was to be.
std::string advice_on_program(const std::string& words) {
  constexpr std::string_view kMissing = "execvp error on file ";
  constexpr std::string_view kDirectory = "unable to change wdir to ";
  constexpr std::string_view kOpenMpisDirectory = "specified working directory:\n";
  if (words.find(kDirectory) != std::string::npos ||
      words.find(kOpenMpisDirectory) != std::string::npos)
    return "create that directory on that host, or name another one with --wdir";
  for (const std::string& line : split(words, '\n')) {
    const std::size_t at = line.find(kMissing), reason = line.rfind(" (");
    if (!line.starts_with("[proxy:") || at == std::string::npos || reason < at) continue;
    const std::size_t name = at + kMissing.size(), host = line.find('@') + 1;
    const std::string program = printable(line.substr(name, reason - name));
    const std::string there = " on host " + up_to(std::string_view(line).substr(host), ']');
    if (line.find("Permission denied", reason) != std::string::npos)
      return "chmod +x " + program + there;
    return "install " + program + there +
           ", name it by its path, or set PATH there with -x PATH=...";
  }
  return "";
}

// mpirun takes what is no option for the program.
bool complains_of(const std::string& word, const std::string& line) {
  if (word.starts_with('-')) {
    const std::string name = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    return line.find("unknown option \"" + word + "\"") != std::string::npos ||
           line.find("  Option: " + word) != std::string::npos ||
           line.ends_with(": unrecognized argument " + name);
  }
  return trim(line) == "Executable: " + word ||
         line.find("execvp error on file " + word + " (") != std::string::npos;
}

}  // namespace

std::string mpirun_advice(const Mpirun& mpirun, const std::string& words) {
  if (mpirun.kind == MpiKind::kOpenMpi && words.find("run as root") != std::string::npos)
    return "as another user; or, in a container that is yours, OMPI_ALLOW_RUN_AS_ROOT=1 and "
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the environment, or --mpi-args "
           "--allow-run-as-root";
  std::string advice = advice_on_agent(mpirun, words);
  if (advice.empty()) advice = advice_on_program(words);
  return advice.empty() ? advice_on_hosts(words) : advice;
}

std::string advice_on_mpi_args(const Mpirun& mpirun, const std::vector<std::string>& mpi_args,
                               const std::string& words) {
  const std::vector<std::string> lines = split(words, '\n');
  for (const std::string& word : mpi_args)
    if (std::any_of(lines.begin(), lines.end(),
                    [&](const std::string& line) { return complains_of(word, line); }))
      return "--mpi-args without " + shell_quote(printable(word)) + ", or as '" +
             printable(mpirun.program) + " --help' has it";
  return "";
}

bool is_of_starter(const Mpirun& mpirun, std::string_view bytes) {
  return mpirun.kind == MpiKind::kHydra && bytes.starts_with("[proxy:");
}

bool goes_on_without(const Mpirun& mpirun) { return mpirun.kind == MpiKind::kHydra; }

bool has_started_nobody(const Mpirun& mpirun, const std::string& words) {
  return mpirun.kind == MpiKind::kOpenMpi && words.find(" failed to start\n") != std::string::npos;
}

bool waits_in_vain(const Mpirun& mpirun, const std::string& words) {
  return mpirun.kind == MpiKind::kHydra && !advice_on_hosts(words).empty();
}

}  // namespace hv::launcher
