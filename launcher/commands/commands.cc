// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/commands.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

#include "src/base/bounded_file.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/process/command.h"

namespace hv::launcher {

std::string current_directory(const Environment& environment) {
  const std::string named = environment.get_or("PWD", "");
  if (!named.empty() && named[0] == '/' && is_same_file(named, ".")) return named;
  char path[PATH_MAX];
  if (!::getcwd(path, sizeof path)) {
    throw Error(ErrorKind::kUsage, "find the current directory: " + errno_text(errno),
                "change to one that exists, or name the ranks' with --wdir");
  }
  return path;
}

std::string find_on_path(const std::string& program, const Environment& environment) {
  std::string reason;
  return find_program(program, environment.get_or("PATH", ""), "/", &reason);
}

int print_text(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return 0;
  const int error = errno;
  throw Error(ErrorKind::kStart, "write to standard output: " + errno_text(error),
              error == ENOSPC || error == EDQUOT
                  ? "free some space, or send it elsewhere ('hvrun ... | less')"
                  : "see where standard output leads, or send it elsewhere ('hvrun ... | less')");
}

int print_report(const std::string& text) { return print_text(printable_lines(text)); }

void print_message(const std::string& text) {
  std::fprintf(stderr, "hvrun: %s\n", printable_lines(text).c_str());
}

void print_warnings(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) print_message("warning: " + text);
}

void print_error(const std::string& text, const std::string& advice) {
  print_message("error: " + text + (advice.empty() ? "" : "\n  try: " + advice));
}

}  // namespace hv::launcher
