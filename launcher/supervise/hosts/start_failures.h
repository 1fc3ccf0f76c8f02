// Merges the failures of many hosts: errors that differ only in the host's name and address become
// one. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "src/base/error.h"

namespace hv::launcher {

struct HostFailure {
  std::string host;
  Error error;
};

// "connect to hosts n1, n2 and 6 more: Connection refused", "on a, b: read ...", in the order of
// the first host of each; a hint is the first host's, as an example.
std::vector<Error> fold_failures(const std::vector<HostFailure>& failures);

}  // namespace hv::launcher
