// Which process something was, so that another one can tell whether it still runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace hv::launcher {

struct RunningProcess {
  std::uint32_t pid = 0;  // 0: not known
  std::string host{};
  // Of that boot of the machine, in this PID namespace, begun then; as /proc tells them.
  std::string boot_id{}, pid_namespace{};
  std::uint64_t start_ticks = 0;
};

enum class StillRuns { kYes, kNo, kCannotTell };  // it ran on another machine or in a container

// root is put before every path.
RunningProcess this_process(const std::string& root = "");
StillRuns still_runs(const RunningProcess& process, const std::string& root = "");

}  // namespace hv::launcher
