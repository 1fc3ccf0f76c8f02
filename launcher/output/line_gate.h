// LineGate: which bytes of one stream still go on where there is no room for more: whole lines, so
// that what is dropped tears none. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// A line that has begun goes on to its end, unless that is too far away: then it is cut, and ended
// all the same.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "launcher/output/line_buffer.h"

namespace hv::launcher {

class LineGate {
 public:
  // longest: of a line's bytes that go on though there is no room.
  explicit LineGate(std::size_t longest = kLongestLine) : longest_(longest) {}

  // What of the next bytes goes on.
  std::string pass(std::string_view bytes, bool has_room) {
    std::string passed;
    while (!bytes.empty()) {
      const std::size_t newline = bytes.find('\n');
      const bool ends = newline != std::string_view::npos;
      const std::string_view piece = bytes.substr(0, ends ? newline + 1 : newline);
      bytes.remove_prefix(piece.size());
      pass_piece(piece, ends, has_room, &passed);
    }
    return passed;
  }

 private:
  enum class Line { kNone, kGoesOn, kDropped, kCut };  // that has begun

  void pass_piece(std::string_view piece, bool ends, bool has_room, std::string* passed) {
    if (line_ == Line::kNone) line_ = has_room ? Line::kGoesOn : Line::kDropped;
    if (line_ == Line::kGoesOn && !has_room) {
      over_ += piece.size();
      if (over_ > longest_) line_ = Line::kCut;
    }
    if (line_ == Line::kGoesOn) passed->append(piece);
    if (line_ == Line::kCut && ends) passed->append("\n");
    if (!ends) return;
    line_ = Line::kNone;
    over_ = 0;
  }

  const std::size_t longest_;
  Line line_ = Line::kNone;
  std::size_t over_ = 0;
};

}  // namespace hv::launcher
