// The size of a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

namespace hv::launcher {

struct TerminalSize {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

// none: the descriptor is no terminal, or one that knows no size.
std::optional<TerminalSize> terminal_size(int fd);
// hvrun's own: of stdout, else of stderr, else of stdin.
std::optional<TerminalSize> own_terminal_size();

}  // namespace hv::launcher
