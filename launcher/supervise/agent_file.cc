// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/agent_file.h"

#include <unistd.h>

#include "launcher/spawn/agent_program.h"
#include "src/base/error.h"
#include "src/wire/authentication.h"

namespace hv::launcher {
namespace {

std::string own_folder() {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0) return ".";
  const std::string file(path, static_cast<std::size_t>(size));
  return file.substr(0, file.rfind('/'));
}

}  // namespace

std::string find_agent_file() {
  const std::string folder = own_folder();
  for (const std::string& file :
       {folder + "/hvrun-agent", folder + "/../libexec/hvrun/hvrun-agent"}) {
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  throw Error(ErrorKind::kStart,
              "hvrun-agent is neither in " + folder + " nor in " + folder + "/../libexec/hvrun",
              "build or install hvrun and hvrun-agent together ('./dev build')");
}

std::string agent_digest(const std::string& file) {
  return content_digest(AgentProgram(file).content());
}

}  // namespace hv::launcher
