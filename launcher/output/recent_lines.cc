// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/recent_lines.h"

#include <algorithm>

namespace hv::launcher {

void RecentLines::add(int stream, std::string_view bytes) {
  if (bytes.empty() || stream < stream_) return;
  if (stream > stream_) {
    stream_ = stream;
    bytes_.clear();
    before_ = '\n';
  }
  if (bytes.size() > kRecentBytes) {
    const std::size_t dropped = bytes.size() - kRecentBytes;
    before_ = bytes[dropped - 1];
    bytes_ = bytes.substr(dropped);
    return;
  }
  bytes_ += bytes;
  if (bytes_.size() <= 2 * kRecentBytes) return;
  const std::size_t dropped = bytes_.size() - kRecentBytes;
  before_ = bytes_[dropped - 1];
  bytes_.erase(0, dropped);
}

std::vector<std::string> RecentLines::lines() const {
  const std::size_t skipped = bytes_.size() - std::min(bytes_.size(), kRecentBytes);
  const bool is_cut = (skipped > 0 ? bytes_[skipped - 1] : before_) != '\n';
  std::vector<std::string> lines;
  std::string line = is_cut ? "\u2026" : "";
  const auto finish = [&] {
    while (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    line.clear();
  };
  for (std::size_t i = skipped; i < bytes_.size(); ++i) {
    if (bytes_[i] == '\n') {
      finish();
    } else {
      line += bytes_[i];
    }
  }
  if (!line.empty() && line != "\u2026") finish();
  if (lines.size() > kRecentLines) lines.erase(lines.begin(), lines.end() - kRecentLines);
  return lines;
}

}  // namespace hv::launcher
