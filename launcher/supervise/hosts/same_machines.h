// Hosts of a job that are one machine under several names. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/error.h"

namespace hv::launcher {

struct HostOnMachine {
  std::string name;
  std::string origin;                         // of its name: "hosts:3", "-H"
  std::optional<std::uint32_t> first_here{};  // index of the host whose agent came first; an index
                                              // beyond all hosts: not known which
  std::string user{};                         // empty: what ssh would use
  std::string address{};                      // empty: the name
  std::uint16_t port = 0;                     // 0: what ssh would use
};

// none: each host is a machine of its own. Agents of two users do not find each other, because each
// could deceive the other: for them the name or address decides, with the port.
std::optional<Error> same_machines(std::vector<HostOnMachine> hosts);

}  // namespace hv::launcher
