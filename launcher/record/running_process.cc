// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/running_process.h"

#include <unistd.h>

#include <array>
#include <optional>

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

// The 22nd word of /proc/PID/stat; the second, in brackets, may hold blanks and brackets.
std::optional<std::uint64_t> start_ticks_of(const std::string& pid, const std::string& root) {
  constexpr std::size_t kBehindName = 20;  // "S" is the first word there, and the third of all
  const std::string stat = read_file(root + "/proc/" + pid + "/stat", 4096).value_or("");
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  const std::vector<std::string> words = split(stat.substr(end + 1), ' ');
  if (words.size() > 1 && words[1] == "Z") return std::nullopt;  // ended, and not reaped yet
  const auto ticks = words.size() > kBehindName ? parse_integer(words[kBehindName]) : std::nullopt;
  if (!ticks || *ticks < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*ticks);
}

}  // namespace

RunningProcess this_process(const std::string& root) {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name = {};
  return {static_cast<std::uint32_t>(::getpid()), name.data(), boot_id_of(root), namespace_of(root),
          start_ticks_of("self", root).value_or(0)};
}

StillRuns still_runs(const RunningProcess& process, const std::string& root) {
  const bool is_here = !process.boot_id.empty() && process.boot_id == boot_id_of(root) &&
                       process.pid_namespace == namespace_of(root);
  if (!is_here || process.pid == 0 || process.start_ticks == 0) return StillRuns::kCannotTell;
  const auto ticks = start_ticks_of(std::to_string(process.pid), root);
  return ticks == process.start_ticks ? StillRuns::kYes : StillRuns::kNo;
}

}  // namespace hv::launcher
