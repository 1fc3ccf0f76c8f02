// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/queries/stack_sources.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <set>
#include <tuple>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"
#include "src/contract/contract.h"
#include "src/process/command.h"

namespace hv::launcher {
namespace {

constexpr char kMostFrames[] = "64";  // per thread, the innermost

// The link of such a descriptor reads "/memfd:hvrun-stacks (deleted)".
bool is_stacks_file(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(link.c_str(), target, sizeof target);
  if (size <= 0) return false;
  const std::string_view text(target, static_cast<std::size_t>(size));
  const std::string name = std::string("/memfd:") + kStacksFile;
  return text == name || text == name + " (deleted)";
}

}  // namespace

std::vector<ProcessEntry> processes_of_rank(const std::vector<ProcessEntry>& all, pid_t rank) {
  std::vector<ProcessEntry> own;
  std::set<pid_t> parents;
  for (const ProcessEntry& process : all) {
    if (process.is_zombie() || (process.session != rank && process.group != rank)) continue;
    parents.insert(process.parent);
    own.push_back(process);
  }
  std::erase_if(own, [&](const ProcessEntry& process) {
    return is_shell(process.name) && parents.count(process.pid) > 0;
  });
  std::sort(own.begin(), own.end(), [](const ProcessEntry& a, const ProcessEntry& b) {
    return std::tie(a.start_time, a.pid) < std::tie(b.start_time, b.pid);
  });
  if (own.size() > kMostProcesses) own.resize(kMostProcesses);
  return own;
}

UniqueFd stacks_file(pid_t pid, const std::string& proc) {
  const std::string directory = proc + "/" + std::to_string(pid);
  const auto status = read_file(directory + "/status");
  if (!status || !holds_signal(*status, "SigCgt:", kStacksSignal)) return UniqueFd();
  for (const std::string& number : names_in(directory + "/fd")) {
    const std::string link = directory + "/fd/" + number;
    if (is_stacks_file(link))
      return UniqueFd(::open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  }
  return UniqueFd();
}

std::vector<std::string> StackReader::arguments_for(pid_t pid) const {
  const std::string number = std::to_string(pid);
  if (name == "eu-stack") return {name, "-m", "-n", kMostFrames, "-p", number};
  return {
      name, "-nx", "-batch", "-ex", std::string("thread apply all -ascending bt ") + kMostFrames,
      "-p", number};
}

StackReader find_stack_reader(const Environment& own) {
  const std::string path(own.get_or("PATH", "/usr/local/bin:/usr/bin:/bin"));
  for (const char* const name : {"eu-stack", "gdb"}) {
    std::string reason;
    const std::string found = find_program(name, path, "", &reason);
    if (!found.empty()) return {name, found};
  }
  return {};
}

std::string describe_state(const ProcessEntry& process) {
  if (process.state == 'T') return "is stopped (SIGSTOP, SIGTSTP)";
  if (process.state == 't') return "is stopped by a debugger";
  if (process.state == 'D') return "waits in the kernel and cannot be interrupted (state D)";
  return "";
}

std::string describe_kernel_wait(pid_t pid, const std::string& proc) {
  const std::string directory = proc + "/" + std::to_string(pid);
  const auto wait_channel = read_file(directory + "/wchan");
  const auto call = read_file(directory + "/syscall");
  std::string text;
  if (wait_channel && !trim(*wait_channel).empty() && trim(*wait_channel) != "0")
    text = "it waits in the kernel, in " + printable(trim(*wait_channel), 80);
  const std::string number(call ? trim(*call).substr(0, trim(*call).find(' ')) : "");
  if (parse_integer(number) && !text.empty()) text += " (system call " + number + ")";
  if (number == "running") text = "it runs";
  return text;
}

std::string explain_denial(std::string_view yama) {
  const std::string_view scope = trim(yama);
  if (scope.empty() || scope == "0")
    return "the system forbids to look into its memory (ptrace); in a container "
           "--cap-add=SYS_PTRACE allows it";
  return "the system forbids to look into its memory: kernel.yama.ptrace_scope is " +
         printable(scope, 20) + " there, and sysctl kernel.yama.ptrace_scope=0 allows it";
}

bool is_forbidden(std::string_view complaint) {
  const std::string text = lower(complaint);
  return text.find("operation not permitted") != std::string::npos ||
         text.find("permission denied") != std::string::npos;
}

}  // namespace hv::launcher
