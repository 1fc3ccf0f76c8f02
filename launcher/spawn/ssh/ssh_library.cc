// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_library.h"

#include <dlfcn.h>

#include <string>

#include "src/base/error.h"
#include "src/base/symbol.h"

namespace hv::launcher {
namespace {

constexpr const char* kLibrary = "libssh.so.4";

[[noreturn]] void throw_unusable(const std::string& reason) {
  throw Error(ErrorKind::kStart, "reach hosts over SSH: open libssh on this machine: " + reason,
              "install libssh 0.8 or newer here (apt-get install libssh-4, dnf install libssh), or "
              "use the system's ssh: --rsh ssh");
}

SshFunctions open_libssh() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    throw_unusable(reason != nullptr ? reason : kLibrary);
  }
  SshFunctions functions;
#define HVRUN_FIND(name)                               \
  if (!find_function(library, #name, &functions.name)) \
    throw_unusable(std::string(kLibrary) + " has no " #name);
  HVRUN_SSH_FUNCTIONS(HVRUN_FIND)
#undef HVRUN_FIND
  return functions;
}

}  // namespace

const SshFunctions& libssh() {
  static const SshFunctions functions = open_libssh();  // after a failure the next call tries again
  return functions;
}

}  // namespace hv::launcher
