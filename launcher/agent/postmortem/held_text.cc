// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/postmortem/held_text.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

#include "launcher/facts/process_table.h"
#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Interpreters that write without C's stdio, or that hvrun or they themselves have write at once.
constexpr std::string_view kInterpreters[] = {"python", "pypy", "perl", "ruby", "node",  "java",
                                              "julia",  "R",    "lua",  "php",  "tclsh", "busybox"};
constexpr std::size_t kMostOfRank = 16;  // processes

// The executable's name. "": not readable, because the process has ended or is another user's.
std::string executable_of(const std::string& directory) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink((directory + "/exe").c_str(), target, sizeof target);
  if (size <= 0) return "";
  const std::string_view path(target, static_cast<std::size_t>(size));
  return std::string(path.substr(path.rfind('/') + 1));
}

// Names may have a version: python3.11.
bool writes_at_once(std::string_view executable) {
  const std::string_view name = executable.substr(0, executable.find_first_of("0123456789.- "));
  return is_shell(name) || std::find(std::begin(kInterpreters), std::end(kInterpreters), name) !=
                               std::end(kInterpreters);
}

// Children that the main thread has started. Empty, too, where the kernel does not list them.
std::vector<pid_t> children_of(pid_t pid, const std::string& directory) {
  std::vector<pid_t> children;
  const auto text = read_file(directory + "/task/" + std::to_string(pid) + "/children");
  for (const std::string& word : split(text.value_or(""), ' '))
    if (const auto child = parse_integer(trim(word)))
      children.push_back(static_cast<pid_t>(*child));
  return children;
}

}  // namespace

bool may_hold_text(pid_t rank, const std::string& proc) {
  std::vector<pid_t> processes{rank};
  for (std::size_t i = 0; i < std::min(processes.size(), kMostOfRank); ++i) {
    const std::string directory = proc + "/" + std::to_string(processes[i]);
    const std::string executable = executable_of(directory);
    if (executable.empty() || writes_at_once(executable)) return false;
    const std::vector<pid_t> children = children_of(processes[i], directory);
    processes.insert(processes.end(), children.begin(), children.end());
  }
  const std::string variables =
      read_file(proc + "/" + std::to_string(rank) + "/environ").value_or("");
  return !environ_holds(variables, "_STDBUF_O=L") && !environ_holds(variables, "_STDBUF_O=0");
}

}  // namespace hv::launcher
