// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/pid_namespace.h"

#include <filesystem>

namespace hv::launcher {

bool is_in_first_pid_namespace(const std::string& root) {
  constexpr char kFirst[] = "pid:[4026531836]";  // PROC_PID_INIT_INO of the kernel
  std::error_code error;
  return std::filesystem::read_symlink(root + "/proc/self/ns/pid", error) == kFirst;
}

}  // namespace hv::launcher
