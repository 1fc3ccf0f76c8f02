// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/recent_lines.h"

#include <algorithm>

namespace hv::launcher {

void RecentLines::add(int stream, std::string_view bytes) {
  if (bytes.empty()) return;
  if (bytes.size() > kRecentBytes) {
    forget(bytes_);
    bytes.remove_prefix(bytes.size() - kRecentBytes - 1);
  }
  if (stretches_.empty() || stretches_.back().stream != stream) stretches_.push_back({stream, {}});
  stretches_.back().bytes += bytes;
  bytes_ += bytes.size();
  // Twice the bound is allowed, so that forgetting is not done at every chunk.
  if (bytes_ > 2 * kRecentBytes || bytes.size() > kRecentBytes) forget(bytes_ - kRecentBytes);
}

void RecentLines::forget(std::size_t count) {
  bytes_ -= count;
  while (count > 0) {
    Stretch& oldest = stretches_.front();
    const std::size_t taken = std::min(count, oldest.bytes.size());
    is_cut_.at(static_cast<std::size_t>(oldest.stream)) = oldest.bytes[taken - 1] != '\n';
    oldest.bytes.erase(0, taken);
    if (oldest.bytes.empty()) stretches_.pop_front();
    count -= taken;
  }
}

std::vector<std::string> RecentLines::lines() const {
  std::vector<std::string> lines;
  std::array<std::string, 3> unfinished;
  for (std::size_t stream = 1; stream < unfinished.size(); ++stream) {
    if (is_cut_[stream]) unfinished[stream] = "\u2026";
  }
  const auto finish = [&lines](std::string& line) {
    while (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    line.clear();
  };
  for (const Stretch& stretch : stretches_) {
    std::string& line = unfinished.at(static_cast<std::size_t>(stretch.stream));
    for (const char byte : stretch.bytes) {
      if (byte == '\n') {
        finish(line);
      } else {
        line += byte;
      }
    }
  }
  for (std::string& line : unfinished) {
    if (!line.empty() && line != "\u2026") finish(line);
  }
  if (lines.size() > kRecentLines) lines.erase(lines.begin(), lines.end() - kRecentLines);
  return lines;
}

}  // namespace hv::launcher
