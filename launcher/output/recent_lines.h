// RecentLines: the last lines of one rank, for the words that explain its failure. Pure, bounded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

constexpr std::size_t kRecentLines = 20;
constexpr std::size_t kRecentBytes = 8 << 10;

// Keeps the raw ends of what came, a copy of at most kRecentBytes a chunk, and looks for lines only
// when asked.
class RecentLines {
 public:
  void add(int stream, std::string_view bytes);
  // Both streams' lines in the order in which they ended, oldest first; a line whose beginning is
  // gone starts with an ellipsis, and a last line without newline counts. Without newlines and '\r'
  // before them.
  std::vector<std::string> lines() const;

 private:
  // What one stream wrote before the other wrote again.
  struct Stretch {
    int stream;
    std::string bytes;
  };
  void forget(std::size_t count);

  std::deque<Stretch> stretches_;
  std::size_t bytes_ = 0;         // of all stretches
  std::array<bool, 3> is_cut_{};  // by stream: its first kept byte is in the middle of a line
};

}  // namespace hv::launcher
