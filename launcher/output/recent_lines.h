// RecentLines: the last lines of one rank, for the words that explain its failure. Pure, bounded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

constexpr std::size_t kRecentLines = 50;
constexpr std::size_t kRecentBytes = 16 << 10;  // a traceback of fifty long lines fits

// Errors go to standard error, so its end is kept; that of standard output only as long as standard
// error has said nothing. Lines are looked for only when asked.
class RecentLines {
 public:
  void add(int stream, std::string_view bytes);
  // Oldest first, of the last kRecentBytes; a line whose beginning is gone starts with an ellipsis,
  // and a last line without newline counts. Without newlines and '\r' before them.
  std::vector<std::string> lines() const;

 private:
  int stream_ = 1;      // whose bytes these are
  std::string bytes_;   // at most twice kRecentBytes, so that not every chunk moves them
  char before_ = '\n';  // the last byte before them
};

}  // namespace hv::launcher
