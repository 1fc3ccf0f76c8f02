// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/agent_file.h"

#include <unistd.h>

#include "launcher/spawn/agent_program.h"
#include "src/base/error.h"
#include "src/process/command.h"
#include "src/wire/authentication.h"

namespace hv::launcher {
namespace {

// In hvrun's directory, else in ../libexec/hvrun.
std::optional<std::string> find_program_file(const std::string& program) {
  for (const char* directory : {"/", "/../libexec/hvrun/"}) {
    const std::string file = own_folder() + directory + program;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

}  // namespace

std::string find_agent_file() {
  if (auto file = find_program_file("hvrun-agent")) return *file;
  const std::string directory = own_folder();
  throw Error(
      ErrorKind::kStart,
      "hvrun-agent is neither in " + directory + " nor in " + directory + "/../libexec/hvrun",
      "build or install hvrun and hvrun-agent together ('./dev build')");
}

std::optional<std::string> helper_program(const std::string& name, const std::string& machine) {
  const auto file = find_program_file(name);
  if (!file) return std::nullopt;
  AgentProgram program(*file);
  try {
    if (program.machine() == machine) return program.content();
  } catch (const Error&) {
    // An unreadable program counts as missing.
  }
  return std::nullopt;
}

std::string agent_digest(const std::string& file) {
  return content_digest(AgentProgram(file).content());
}

}  // namespace hv::launcher
