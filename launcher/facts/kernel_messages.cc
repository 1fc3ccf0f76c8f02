// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/kernel_messages.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostRecords = 1 << 18;

}  // namespace

// Each read is one record; of a file, as in tests, as much as fits.
int read_kernel_messages(int log, const std::function<void(std::string_view)>& take) {
  std::array<char, 16384> record{};
  for (std::size_t i = 0; i < kMostRecords; ++i) {
    const ssize_t got = ::read(log, record.data(), record.size());
    if (got < 0 && (errno == EINTR || errno == EPIPE)) continue;  // EPIPE: one was overwritten
    if (got < 0 && errno != EAGAIN) return errno;
    if (got <= 0) return 0;
    const std::string text(record.data(), static_cast<std::size_t>(got));
    for (const std::string& line : split(text, '\n')) take(line);
  }
  return 0;
}

}  // namespace hv::launcher
