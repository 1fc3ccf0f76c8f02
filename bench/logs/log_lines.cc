// bench_log_lines: a rank that writes numbered lines of 87 bytes to stdout as fast as it can.
// SPDX-License-Identifier: Apache-2.0
//
// bench_log_lines LINES WRITE_BYTES: one write(2) for each WRITE_BYTES, wherever lines end; 0: one
// for each line.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "src/base/text.h"

namespace {

constexpr std::size_t kLineBytes = 87;

bool write_all(const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(1, bytes, count);
    if (written < 0 && errno != EINTR) return false;
    if (written <= 0) continue;
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
  return true;
}

// "line 0000041 ....": a number to check the order by, then filling.
void make_line(char* line, std::int64_t number) {
  char head[32];
  const int length =
      std::snprintf(head, sizeof head, "line %09lld ", static_cast<long long>(number));
  std::memset(line, '.', kLineBytes);
  std::memcpy(line, head, static_cast<std::size_t>(length));
  line[kLineBytes - 1] = '\n';
}

bool write_lines(std::int64_t lines, std::size_t write_bytes) {
  std::string pending;
  char line[kLineBytes];
  for (std::int64_t number = 0; number < lines; ++number) {
    make_line(line, number);
    if (write_bytes == 0) {
      if (!write_all(line, kLineBytes)) return false;
      continue;
    }
    pending.append(line, kLineBytes);
    if (pending.size() < write_bytes) continue;
    if (!write_all(pending.data(), write_bytes)) return false;
    pending.erase(0, write_bytes);
  }
  return write_all(pending.data(), pending.size());
}

}  // namespace

int main(int argc, char** argv) {
  const auto lines = argc == 3 ? hv::parse_integer(argv[1]) : std::nullopt;
  const auto write_bytes = argc == 3 ? hv::parse_integer(argv[2]) : std::nullopt;
  if (!lines || !write_bytes || *lines < 0 || *write_bytes < 0) {
    std::fprintf(stderr, "usage: bench_log_lines LINES WRITE_BYTES\n");
    return 2;
  }
  if (write_lines(*lines, static_cast<std::size_t>(*write_bytes))) return 0;
  std::perror("bench_log_lines: write to standard output");
  return 1;
}
