// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/console_tail.h"

#include <algorithm>

namespace hv::launcher {
namespace {

constexpr std::size_t kTimestampBytes =
    std::string_view("2026-11-21T05:40:48.123456+01:00 ").size();

// Whether a line's beginning is exactly what LabelMaker writes for that rank, at whatever time.
bool is_label(std::string_view text, std::uint32_t rank, const LabelStyle& style) {
  if (style.label) {
    // "\x1b[36m[0]\x1b[0m "
    if (style.colour) text.remove_prefix(std::min(text.find('[', 2), text.size()));
    const std::string number = "[" + std::to_string(rank);
    if (!text.starts_with(number)) return false;
    text.remove_prefix(number.size());
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos || (end > 0 && text[0] != ' ')) return false;
    const std::size_t blank = text.find(' ', end);  // behind the colour's end
    if (blank == std::string_view::npos) return false;
    text.remove_prefix(blank + 1);
  }
  return text.size() == (style.timestamp ? kTimestampBytes : 0);
}

}  // namespace

void ConsoleTail::add(std::string_view text) {
  text = text.substr(text.size() - std::min(text.size(), kTailBytes));
  const std::lock_guard lock(mutex_);
  text_ += text;
  if (text_.size() > 2 * kTailBytes) text_.erase(0, text_.size() - kTailBytes);
}

bool ConsoleTail::ends_with(const std::vector<std::string>& lines, std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  std::string_view left = text_;
  if (left.ends_with('\n')) left.remove_suffix(1);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::size_t before = left.rfind('\n');
    std::string_view written = left.substr(before == std::string_view::npos ? 0 : before + 1);
    while (written.ends_with('\r')) written.remove_suffix(1);
    if (!written.ends_with(*line)) return false;
    written.remove_suffix(line->size());
    if (!is_label(written, rank, style_)) return false;
    const bool is_first = line + 1 == lines.rend();
    if (before == std::string_view::npos) return is_first;
    left = left.substr(0, before);
  }
  return !lines.empty();
}

}  // namespace hv::launcher
