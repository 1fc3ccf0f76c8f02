// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/read_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

std::optional<std::string> read_file(const std::string& path, std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string text;
  char piece[4096];
  while (text.size() < limit) {
    const ssize_t got = ::read(fd.get(), piece, std::min(sizeof piece, limit - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(piece, static_cast<std::size_t>(got));
  }
  return text;
}

std::vector<std::string> names_in(const std::string& folder) {
  const auto close = [](DIR* directory) { ::closedir(directory); };
  const std::unique_ptr<DIR, decltype(close)> directory(::opendir(folder.c_str()), close);
  std::vector<std::string> names;
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

std::optional<std::string> value_after(std::string_view label, std::string_view text) {
  for (const std::string& line : split(text, '\n')) {
    if (line.compare(0, label.size(), label) == 0)
      return std::string(trim(std::string_view(line).substr(label.size())));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> bits_after(std::string_view label, std::string_view text) {
  const auto value = value_after(label, text);
  if (!value) return std::nullopt;
  std::uint64_t bits = 0;
  const char* const last = value->data() + value->size();
  const auto [end, error] = std::from_chars(value->data(), last, bits, 16);
  return error == std::errc() && end == last ? std::optional(bits) : std::nullopt;
}

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
