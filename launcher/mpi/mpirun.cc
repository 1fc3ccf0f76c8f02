// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpirun.h"

#include <vector>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/process/captured.h"

namespace hv::launcher {
namespace {

// It may lie on a file system of the network.
constexpr auto kTimeForVersion = std::chrono::seconds(20);

bool holds(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

// The first number of "mpirun (Open MPI) 4.1.4".
int major_of(const std::string& line) {
  const std::size_t begin = line.find_first_of("0123456789");
  if (begin == std::string::npos) return 0;
  const std::size_t end = line.find_first_not_of("0123456789", begin);
  return static_cast<int>(
      parse_integer(std::string_view(line).substr(begin, end - begin)).value_or(0));
}

std::vector<std::string> programs_to_try(const std::string& wanted) {
  if (wanted == "openmpi") return {"mpirun", "mpirun.openmpi", "orterun"};
  if (wanted == "mpich") return {"mpirun", "mpirun.mpich", "mpiexec.hydra"};
  return {"mpirun", "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra"};
}

bool is_wanted(MpiKind kind, const std::string& wanted) {
  return wanted.empty() || (wanted == "openmpi") == (kind == MpiKind::kOpenMpi);
}

// HVRUN_MPI's value has been checked with the ranks' other knobs, or is nothing that we know.
std::string wanted_mpi(const Environment& environment) {
  const std::string wanted = lower(environment.get_or("HVRUN_MPI", ""));
  if (wanted.empty() || wanted == "openmpi" || wanted == "mpich") return wanted;
  throw Error(ErrorKind::kUsage, "HVRUN_MPI=" + printable(wanted) + " is no MPI that hvrun knows",
              "expected openmpi or mpich");
}

}  // namespace

std::optional<Mpirun> read_mpirun_version(const std::string& program, const std::string& text) {
  Mpirun found;
  found.program = program;
  for (const std::string& line : split(text, '\n')) {
    if (holds(line, "Open MPI") || holds(line, "OpenRTE")) {
      found.version = trim(line);
      found.major = major_of(line.substr(line.find(')') == std::string::npos ? 0 : line.find(')')));
      return found;
    }
    if (holds(line, "HYDRA") || holds(line, "Intel(R) MPI")) found.kind = MpiKind::kHydra;
    if (found.kind != MpiKind::kHydra) continue;
    if (holds(line, "Intel(R) MPI")) {
      found.version = trim(line);
    } else if (holds(line, "Version:")) {
      found.version = "MPICH's Hydra " + std::string(trim(line.substr(line.find(':') + 1)));
    }
    if (!found.version.empty()) return found;
  }
  return std::nullopt;
}

Mpirun find_mpirun(const Environment& environment) {
  const std::string wanted = wanted_mpi(environment);
  std::vector<std::string> tried;
  for (const std::string& name : programs_to_try(wanted)) {
    std::string reason;
    const std::string file = find_program(name, environment.get_or("PATH", ""), "", &reason);
    if (file.empty()) {
      tried.push_back(name + " (" + reason + ")");
      continue;
    }
    Command command;
    command.argv = {file, "--version"};
    command.environment = environment.entries();
    const Captured said = capture_output(command, kTimeForVersion, true);
    const auto found = read_mpirun_version(file, said.text);
    if (found && is_wanted(found->kind, wanted)) return *found;
    tried.push_back(file + (found                   ? " (it is " + found->version + ")"
                            : !said.trouble.empty() ? " (" + said.trouble + ")"
                                                    : " (neither Open MPI's nor MPICH's)"));
  }
  throw Error(ErrorKind::kStart,
              "--mpi: no mpirun " + (wanted.empty() ? "" : "of HVRUN_MPI=" + wanted + " ") +
                  "is on PATH; looked for " + join(tried, ", "),
              "install one (on Debian and Ubuntu openmpi-bin or mpich), add its folder to PATH "
              "('module load'), or leave out --mpi");
}

}  // namespace hv::launcher
