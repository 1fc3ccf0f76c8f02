// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/terminal_size.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace hv::launcher {

std::optional<TerminalSize> terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return TerminalSize{size.ws_col, size.ws_row};
}

std::optional<TerminalSize> own_terminal_size() {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO})
    if (const auto size = terminal_size(fd)) return size;
  return std::nullopt;
}

}  // namespace hv::launcher
