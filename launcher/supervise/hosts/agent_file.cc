// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/agent_file.h"

#include <unistd.h>

#include "launcher/spawn/agent_program.h"
#include "src/base/error.h"
#include "src/process/command.h"
#include "src/wire/authentication.h"

namespace hv::launcher {
namespace {

std::optional<std::string> find_beside(const std::string& program) {
  for (const char* folder : {"/", "/../libexec/hvrun/"}) {
    const std::string file = own_folder() + folder + program;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

}  // namespace

std::string find_agent_file() {
  if (auto file = find_beside("hvrun-agent")) return *file;
  const std::string folder = own_folder();
  throw Error(ErrorKind::kStart,
              "hvrun-agent is neither in " + folder + " nor in " + folder + "/../libexec/hvrun",
              "build or install hvrun and hvrun-agent together ('./dev build')");
}

std::optional<std::string> helper_program(const std::string& name, const std::string& machine) {
  const auto file = find_beside(name);
  if (!file) return std::nullopt;
  AgentProgram program(*file);
  try {
    if (program.machine() == machine) return program.content();
  } catch (const Error&) {
    // It cannot be read: as good as not there.
  }
  return std::nullopt;
}

std::string agent_digest(const std::string& file) {
  return content_digest(AgentProgram(file).content());
}

}  // namespace hv::launcher
