// What one run of a machine's kernel is called: machines that have one name do not have one of
// these, containers of one machine do. Empty where it cannot be read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>

namespace hv {

inline std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

}  // namespace hv
