// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/running_process.h"

#include <unistd.h>

#include <array>
#include <optional>

#include "launcher/facts/process_table.h"
#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

std::string boot_id_of(const std::string& root) {
  const auto text = read_file(root + "/proc/sys/kernel/random/boot_id", 100);
  return std::string(trim(text.value_or("")));
}

std::string namespace_of(const std::string& root) {
  std::array<char, 100> target{};
  const ssize_t got =
      ::readlink((root + "/proc/self/ns/pid").c_str(), target.data(), target.size());
  return got > 0 ? std::string(target.data(), static_cast<std::size_t>(got)) : "";
}

// Of one that has not ended; 0: nobody can tell.
std::uint64_t start_of(const std::string& pid, const std::string& root) {
  const auto stat = read_file(root + "/proc/" + pid + "/stat", 4096);
  const auto process = stat ? parse_stat(*stat) : std::nullopt;
  return process && !process->is_zombie() ? process->start_time : 0;
}

}  // namespace

RunningProcess this_process(const std::string& root) {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name = {};
  return {static_cast<std::uint32_t>(::getpid()), name.data(), boot_id_of(root), namespace_of(root),
          start_of("self", root)};
}

StillRuns still_runs(const RunningProcess& process, const std::string& root) {
  const bool is_here = !process.boot_id.empty() && process.boot_id == boot_id_of(root) &&
                       process.pid_namespace == namespace_of(root);
  if (!is_here || process.pid == 0 || process.start_ticks == 0) return StillRuns::kCannotTell;
  const bool is_it = start_of(std::to_string(process.pid), root) == process.start_ticks;
  return is_it ? StillRuns::kYes : StillRuns::kNo;
}

}  // namespace hv::launcher
