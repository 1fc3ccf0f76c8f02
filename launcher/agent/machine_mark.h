// MachineMark: finds that two hosts of a job are one machine.
// SPDX-License-Identifier: Apache-2.0
//
// The job's first agent on a machine holds a name in the abstract namespace of Unix sockets, which
// every process in this network namespace shares. Machine ids are no help: cloned images share
// them.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>

#include "src/base/unique_fd.h"

namespace hv::launcher {

// Returned where another agent holds the mark, and its ranks' socket is not listed.
constexpr std::uint32_t kUnknownHost = UINT32_MAX;

class MachineMark {
 public:
  // Call once this agent's rank socket listens. Returns the id of the host whose agent was first on
  // this machine; nothing: this agent was.
  std::optional<std::uint32_t> claim(const std::string& job_id, std::uint32_t host_id);

 private:
  UniqueFd socket_;
};

// The lowest id of another host of the job whose ranks' socket is listed. sockets: /proc/net/unix.
std::optional<std::uint32_t> other_host_here(std::istream& sockets, const std::string& job_id,
                                             std::uint32_t own_id);

}  // namespace hv::launcher
