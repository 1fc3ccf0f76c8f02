// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/commands.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {

std::string current_directory() {
  char path[PATH_MAX];
  if (!::getcwd(path, sizeof path)) {
    throw Error(ErrorKind::kUsage, "find the current directory: " + errno_text(errno),
                "change to one that exists, or name the ranks' with --wdir");
  }
  return path;
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

void print_warnings(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::fprintf(stderr, "hvrun: warning: %s\n", line.c_str());
}

}  // namespace hv::launcher
