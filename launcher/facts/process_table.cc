// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/process_table.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <map>
#include <utility>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::uint32_t kExiting =
    0x4;  // PF_EXITING of linux/sched.h; stable since it is shown in /proc

// Fields of stat after the name, counted from 0: state is 0, ppid 1 (proc(5) counts from 1 and the
// pid).
enum Field : std::size_t {
  kState = 0,
  kParent = 1,
  kGroup = 2,
  kSession = 3,
  kFlags = 6,
  kUserTime = 11,
  kSystemTime = 12,
  kStartTime = 19
};

template <class Number>
bool number(const std::vector<std::string>& fields, Field field, Number* value) {
  const auto parsed = parse_integer(fields[field]);
  if (!parsed || !std::in_range<Number>(*parsed)) return false;
  *value = static_cast<Number>(*parsed);
  return true;
}

}  // namespace

std::optional<ProcessEntry> parse_stat(std::string_view text) {
  const std::size_t open = text.find(" (");
  const std::size_t close = text.rfind(") ");  // the last one: a name may hold any
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2)
    return std::nullopt;
  const auto pid = parse_integer(text.substr(0, open));
  const std::vector<std::string> fields = split(trim(text.substr(close + 2)), ' ');
  // kill(2) takes 0 and negative numbers for groups and for everybody.
  if (!pid || *pid <= 0 || !std::in_range<pid_t>(*pid)) return std::nullopt;
  if (fields.size() <= kStartTime || fields[kState].size() != 1) return std::nullopt;
  ProcessEntry process;
  process.pid = static_cast<pid_t>(*pid);
  process.name = std::string(text.substr(open + 2, close - open - 2));
  process.state = fields[kState][0];
  std::uint64_t user = 0, system = 0;
  const bool whole =
      number(fields, kParent, &process.parent) && number(fields, kGroup, &process.group) &&
      number(fields, kSession, &process.session) && number(fields, kFlags, &process.flags) &&
      number(fields, kUserTime, &user) && number(fields, kSystemTime, &system) &&
      number(fields, kStartTime, &process.start_time);
  process.cpu_ticks = user + system;
  return whole ? std::optional(std::move(process)) : std::nullopt;
}

std::optional<ProcessEntry> read_process(pid_t pid, const std::string& proc) {
  const auto text = read_file(proc + "/" + std::to_string(pid) + "/stat");
  return text ? parse_stat(*text) : std::nullopt;
}

std::vector<ProcessEntry> read_processes(const std::string& proc) {
  std::vector<ProcessEntry> all;
  for (const std::string& name : names_in(proc)) {
    const auto pid = parse_integer(name);
    if (!pid) continue;
    if (auto process = read_process(static_cast<pid_t>(*pid), proc))
      all.push_back(std::move(*process));
  }
  return all;
}

std::vector<ProcessEntry> descendants(const std::vector<ProcessEntry>& all,
                                      const std::set<pid_t>& ancestors) {
  std::multimap<pid_t, const ProcessEntry*> children;
  for (const ProcessEntry& process : all) children.emplace(process.parent, &process);
  std::vector<ProcessEntry> found;
  std::vector<pid_t> open(ancestors.begin(), ancestors.end());
  std::set<pid_t> seen = ancestors;  // a listing is no snapshot: a reused pid could close a circle
  while (!open.empty()) {
    const auto [first, last] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = first; child != last; ++child) {
      if (!seen.insert(child->second->pid).second) continue;
      found.push_back(*child->second);
      open.push_back(child->second->pid);
    }
  }
  return found;
}

bool holds_signal(std::string_view status, std::string_view set, int signal) {
  if (signal < 1 || signal > 64) return false;
  return (bits_after(set, status).value_or(0) >> (signal - 1) & 1) != 0;
}

bool is_on_its_way_out(const ProcessEntry& process, std::string_view status) {
  if (process.is_zombie() || (process.flags & kExiting) != 0) return true;
  return value_after("CoreDumping:", status).value_or("0") == "1" ||
         holds_signal(status, "SigPnd:", SIGKILL);
}

std::string environment_of(pid_t pid) {
  constexpr std::size_t kMostEnvironment = 32u << 20;
  return read_file("/proc/" + std::to_string(pid) + "/environ", kMostEnvironment).value_or("");
}

bool environ_holds(std::string_view environ_text, std::string_view entry) {
  for (std::size_t at = 0; (at = environ_text.find(entry, at)) != std::string_view::npos; ++at) {
    const std::size_t end = at + entry.size();
    const bool begins = at == 0 || environ_text[at - 1] == '\0';
    if (begins && (end == environ_text.size() || environ_text[end] == '\0')) return true;
  }
  return false;
}

bool is_shell(std::string_view name) {
  constexpr std::string_view kShells[] = {"sh",  "bash", "dash", "zsh",
                                          "ksh", "fish", "csh",  "tcsh"};
  return std::find(std::begin(kShells), std::end(kShells), name) != std::end(kShells);
}

std::string describe(const ProcessEntry& process) {
  return "pid " + std::to_string(process.pid) + " (" + printable(process.name, 40) + ")";
}

}  // namespace hv::launcher
