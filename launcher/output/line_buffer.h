// LineBuffer: cuts one stream's bytes into lines, whatever pieces they arrive in. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// Only '\n' ends a line. A line longer than the limit comes out in pieces of the limit; no byte is
// added, dropped or looked at otherwise. What has no end yet is held back, never more than the
// limit.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

namespace hv::launcher {

constexpr std::size_t kLongestLine = 1 << 20;

// held, then text, are a line or a piece of one. Both point into memory that lasts until the sink
// returns.
struct LinePiece {
  enum class Ending { kNewline, kCut, kEndOfStream };  // kNewline: text ends in it
  std::string_view held;
  std::string_view text;
  Ending ending = Ending::kNewline;
};

class LineBuffer {
 public:
  explicit LineBuffer(std::size_t longest = kLongestLine) : longest_(longest) {}

  // Calls sink(const LinePiece&) for each line that bytes complete, in order.
  template <class Sink>
  void feed(std::string_view bytes, Sink&& sink) {
    while (!bytes.empty()) {
      const auto* newline = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
      const std::size_t length =
          newline ? static_cast<std::size_t>(newline - bytes.data()) : bytes.size();
      if (held_.size() + length > longest_) {
        const std::size_t fits = longest_ - held_.size();
        give({held_, bytes.substr(0, fits), LinePiece::Ending::kCut}, sink);
        bytes.remove_prefix(fits);
      } else if (newline) {
        give({held_, bytes.substr(0, length + 1), LinePiece::Ending::kNewline}, sink);
        bytes.remove_prefix(length + 1);
      } else {
        held_.append(bytes);
        return;
      }
    }
  }

  // The stream has ended: a last line without newline comes out as it is.
  template <class Sink>
  void end(Sink&& sink) {
    if (!held_.empty()) give({held_, {}, LinePiece::Ending::kEndOfStream}, sink);
  }

  // The beginning of a line whose end has not come.
  std::size_t held_bytes() const { return held_.size(); }

 private:
  template <class Sink>
  void give(const LinePiece& piece, Sink&& sink) {
    sink(piece);
    if (held_.empty()) return;
    // One long line must not keep a megabyte for the rest of the job.
    if (held_.capacity() > kKeptCapacity) std::string().swap(held_);
    held_.clear();
  }

  static constexpr std::size_t kKeptCapacity = 4096;
  std::size_t longest_;
  std::string held_;
};

}  // namespace hv::launcher
