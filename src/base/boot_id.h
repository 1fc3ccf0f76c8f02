// The id of a machine's boot: it tells machines with the same host name apart, and all containers
// of one machine share it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <iomanip>
#include <string>

namespace hv {

// Empty where it cannot be read.
inline std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> std::setw(100) >> id;
  return id;
}

}  // namespace hv
