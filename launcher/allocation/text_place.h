// Place: a line of a list of hosts and where it stands, for messages with a caret.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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

// visit(begin, end) for each piece into which the separator cuts bytes [begin, end) of a text, in
// order; an empty piece is one, too.
template <class Visit>
void for_each_piece(std::string_view text, char separator, std::size_t begin, std::size_t end,
                    const Visit& visit) {
  text = text.substr(0, end);
  while (begin <= end) {
    const std::size_t piece_end = std::min(text.find(separator, begin), end);
    visit(begin, piece_end);
    begin = piece_end + 1;
  }
}

}  // namespace hv::launcher
