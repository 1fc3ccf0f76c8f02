// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/slurm_settings.h"

#include <algorithm>
#include <cstdint>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostPluginBytes = 64;
constexpr std::int64_t kMostKillWait = 65535;  // Slurm keeps the seconds in 16 bits

// The plugin of "proctrack/cgroup". "": no plugin can have this name.
std::string proctrack_in(std::string_view value) {
  constexpr std::string_view kPrefix = "proctrack/";
  if (value.substr(0, kPrefix.size()) == kPrefix) value.remove_prefix(kPrefix.size());
  const bool is_name =
      value.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
  if (value.empty() || value.size() > kMostPluginBytes || !is_name) return "";
  return std::string(value);
}

bool is_yes(std::string_view value) {
  return value == "yes" || value == "up" || value == "true" || value == "1";
}

// "30 sec", or "30". nullopt: something else.
std::optional<std::chrono::seconds> seconds_in(std::string_view value) {
  const std::size_t space = value.find(' ');
  if (space != std::string_view::npos && trim(value.substr(space)) != "sec") return std::nullopt;
  const auto seconds = parse_integer(value.substr(0, space));
  if (!seconds || *seconds < 0 || *seconds > kMostKillWait) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

}  // namespace

std::optional<SlurmSettings> parse_slurm_settings(std::string_view text) {
  if (text.size() > kMostSlurmConfigBytes) return std::nullopt;
  SlurmSettings settings;
  for (const std::string& line : split(lower(text), '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view name = trim(std::string_view(line).substr(0, equals));
    const std::string_view value = trim(std::string_view(line).substr(equals + 1));
    if (name == "proctracktype") settings.proctrack = proctrack_in(value);
    if (name == "signalchildrenprocesses") settings.signal_children_processes = is_yes(value);
    if (name == "killwait") settings.kill_wait = seconds_in(value);
    if (name == "preempttype") settings.preempts = value != "preempt/none" && value != "(null)";
  }
  if (settings.proctrack.empty()) return std::nullopt;
  return settings;
}

std::optional<std::chrono::seconds> parse_grace_time(std::string_view text) {
  if (text.size() > kMostSlurmConfigBytes) return std::nullopt;
  constexpr std::string_view kName = "gracetime=";
  for (const std::string& line : split(lower(text), '\n'))
    for (const std::string& word : split(line, ' '))
      if (word.starts_with(kName))
        return seconds_in(trim(std::string_view(word).substr(kName.size())));
  return std::nullopt;
}

std::optional<std::chrono::seconds> time_to_end(const SlurmSettings& settings,
                                                std::optional<std::chrono::seconds> grace_time) {
  if (!grace_time) return settings.kill_wait;
  return std::max(settings.kill_wait.value_or(std::chrono::seconds(0)), *grace_time);
}

bool signals_every_process(const SlurmSettings& settings) {
  if (settings.proctrack == "cgroup") return settings.signal_children_processes;
  return settings.proctrack == "linuxproc";
}

}  // namespace hv::launcher
