// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/postmortem/core_file.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

constexpr std::int64_t kWriting_s = 600;  // longest time that writing a core takes

// Signals whose default action is a core: core(5).
bool dumps_core(int signal) {
  constexpr std::array<int, 10> kDumping{SIGQUIT, SIGILL, SIGABRT, SIGFPE,  SIGSEGV,
                                         SIGBUS,  SIGSYS, SIGTRAP, SIGXCPU, SIGXFSZ};
  return std::find(kDumping.begin(), kDumping.end(), signal) != kDumping.end();
}

std::string glob_quoted(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) quoted += '\\';
    quoted += c;
  }
  return quoted;
}

std::string node_name() {
  const std::string name = own_hostname();
  return name.empty() ? "*" : name;
}

// The newest matching file that may belong to this process.
std::string newest_core(const std::string& pattern, std::int64_t died_s) {
  glob_t found{};
  std::string newest;
  std::int64_t newest_s = died_s - kWriting_s;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      struct stat status {};
      if (::stat(found.gl_pathv[i], &status) != 0 || !S_ISREG(status.st_mode)) continue;
      if (status.st_mtime < newest_s) continue;
      newest = found.gl_pathv[i];
      newest_s = status.st_mtime;
    }
  }
  ::globfree(&found);
  return newest;
}

std::string describe_pipe(const std::string& pattern, pid_t pid) {
  const std::string program = pattern.substr(1, pattern.find(' ') - 1);
  const std::string text = "its core was piped to " + printable(program);
  if (program.find("systemd-coredump") != std::string::npos)
    return text + ": 'coredumpctl info " + std::to_string(pid) + "' there shows it";
  if (program.find("apport") != std::string::npos)
    return text + ", which keeps it in /var/crash or /var/lib/apport/coredump there";
  return text + " there";
}

}  // namespace

std::string core_glob(const std::string& core_pattern, bool core_uses_pid,
                      const DeadProcess& process, const std::string& host) {
  const std::string name = process.program.substr(process.program.rfind('/') + 1);
  std::string path;
  bool has_pid = false;
  for (std::size_t i = 0; i < core_pattern.size(); ++i) {
    if (core_pattern[i] != '%') {
      path += glob_quoted(core_pattern.substr(i, 1));
      continue;
    }
    if (++i == core_pattern.size()) break;  // the kernel drops a '%' at the end
    switch (core_pattern[i]) {
      case '%':
        path += '%';
        break;
      case 'p':
        path += std::to_string(process.pid);
        has_pid = true;
        break;
      case 'f':
        path += glob_quoted(name);
        break;
      case 'h':
        path += host == "*" ? host : glob_quoted(host);
        break;
      case 's':
        path += std::to_string(process.signal);
        break;
      // The name of its main thread, which it may have changed; its executable after another exec;
      // its time, user, thread, and pid in another namespace.
      default:
        path += '*';
    }
  }
  if (core_uses_pid && !has_pid) path += "." + std::to_string(process.pid);
  return path.substr(0, 1) == "/" ? path : glob_quoted(process.directory) + "/" + path;
}

std::string describe_core(const DeadProcess& process, std::uint64_t core_limit,
                          const std::string& root) {
  const auto setting = [&root](const char* name) {
    return std::string(trim(read_file(root + "/proc/sys/kernel/" + name).value_or("")));
  };
  const std::string pattern = setting("core_pattern");
  const bool is_piped = pattern.substr(0, 1) == "|";
  if (!process.has_dumped) {
    if (!dumps_core(process.signal) || is_piped || core_limit != 0) return "";
    return "it left no core file, as RLIMIT_CORE is 0: start it as sh -c 'ulimit -c unlimited; "
           "exec PROGRAM' for one";
  }
  if (is_piped) return describe_pipe(pattern, process.pid);
  const bool uses_pid = setting("core_uses_pid") == "1";
  const std::string expected = core_glob(pattern, uses_pid, process, node_name());
  const std::string found = newest_core(expected, process.died_s);
  if (!found.empty()) return "its core file is " + printable(found, 500);
  return "its core file was not found as " + printable(expected, 500) +
         ": look in the folder that it had gone to";
}

}  // namespace hv::launcher
