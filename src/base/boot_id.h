// The name of one run of a machine's kernel: different machines with the same host name have
// different ones, containers of one machine have the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <iomanip>
#include <string>

namespace hv {

// root is put before the path. Empty where it cannot be read.
inline std::string boot_id(const std::string& root = "") {
  std::string id;
  std::ifstream(root + "/proc/sys/kernel/random/boot_id") >> std::setw(100) >> id;
  return id;
}

}  // namespace hv
