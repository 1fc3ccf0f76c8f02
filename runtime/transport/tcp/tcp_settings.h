// How this rank's connections to ranks of other hosts are made. Values only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "src/net/interfaces.h"
#include "src/net/port_range.h"

namespace hv::runtime {

constexpr int kMostStreams = 16;

struct TcpSettings {
  std::vector<std::string> addresses{};  // how other hosts reach this one; empty: by its interfaces
  PortRange ports{};                     // that this rank listens on one of
  InterfaceFilter interfaces{};          // of this host that may be used
  int streams = 1;                       // connections to each peer; alike on all ranks
};

}  // namespace hv::runtime
