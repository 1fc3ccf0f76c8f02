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
  std::string origin;                         // who names it: "hosts:3", "-H"
  std::optional<std::uint32_t> first_here{};  // the host whose agent was there first: its index, or
                                              // one beyond all: not known which
  std::string user{};                         // empty: what ssh would take
  std::string address{};                      // empty: the name
  std::uint16_t port = 0;                     // 0: what ssh would take
};

// Nothing: each host is a machine of its own. Agents of two users do not find each other there, for
// each could be fooled by the other: of them the name or address tells, with the port.
std::optional<Error> same_machines(std::vector<HostOnMachine> hosts);

}  // namespace hv::launcher
