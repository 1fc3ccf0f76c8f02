// Place: a line of a list of hosts and where it stands, for messages with a caret.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hv::launcher {

struct Place {
  std::string source;     // "-H" or the file's name
  std::size_t line = 0;   // 1-based; 0: the source has no lines
  std::string_view text;  // the whole line

  // "hosts:3", "-H".
  std::string origin() const;
};

// Throws Error(kUsage): source:line:column, what is wrong, the line with a caret below that byte;
// and what was expected. column: of a byte of the text, from 0.
[[noreturn]] void mistake(const Place& place, std::size_t column, const std::string& what,
                          const std::string& expected);

}  // namespace hv::launcher
