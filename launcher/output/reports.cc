// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/reports.h"

namespace hv::launcher {

void Reports::note_written(std::uint32_t rank, std::size_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(written_mutex_);
  written_[rank] += bytes;
}

void Reports::send() {
  std::unordered_map<std::uint32_t, std::size_t> written;
  {
    const std::lock_guard lock(written_mutex_);
    written.swap(written_);
  }
  if (written.empty()) return;
  const std::lock_guard lock(calls_mutex_);
  if (is_silent_) return;
  for (const auto& [rank, bytes] : written) on_written_(rank, bytes);
}

void Reports::tell_broken(const std::string& what, int errno_value, int stream) {
  const std::lock_guard lock(calls_mutex_);
  if (!is_silent_) on_broken_(what, errno_value, stream);
}

void Reports::silence() {
  const std::lock_guard lock(calls_mutex_);
  is_silent_ = true;
}

}  // namespace hv::launcher
