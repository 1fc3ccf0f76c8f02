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

struct FoldedFailure {
  std::vector<std::string> hosts{};
  ErrorKind kind = ErrorKind::kStart;
  std::string text{};        // "connect to hosts n[1-8]: Connection refused", "read the key: ..."
  bool names_hosts = false;  // all of them
  std::string hint{};        // the first host's, as an example

  // Its text names the hosts: "on a,b: read the key: ...".
  Error error() const;
};

// In the order of the first host of each.
std::vector<FoldedFailure> fold_failures(const std::vector<HostFailure>& failures);

}  // namespace hv::launcher
