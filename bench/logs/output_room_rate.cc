// bench_output_room: how fast the output room alone takes, labels and writes lines; no ranks, no
// agent.
// SPDX-License-Identifier: Apache-2.0
//
// bench_output_room CHUNK_BYTES [--timestamp|--no-label]: 2 ranks x 1 million lines of 87 bytes to
// a file in memory. Prints seconds, and beside them those of copying the same bytes into such a
// file with bare write(2).
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "launcher/output/output_room.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace {

using hv::launcher::OutputOptions;
using hv::launcher::OutputRoom;

constexpr std::size_t kLines = 1'000'000;
constexpr std::size_t kRanks = 2;
// What each rank may have under way, as with agents.
constexpr std::size_t kCreditBytes = 1 << 20;

std::string rank_text() {
  const std::string line = std::string(86, '.') + "\n";
  std::string text;
  for (std::size_t i = 0; i < kLines; ++i) text += line;
  return text;
}

double seconds_of_room(const std::string& text, std::size_t chunk_bytes, OutputOptions options) {
  const hv::UniqueFd out(::memfd_create("out", MFD_CLOEXEC));
  options.stdout_fd = out.get();
  std::atomic<std::size_t> under_way{0};
  const hv::TimePoint begun = hv::now();
  OutputRoom room(
      options,
      [&under_way](std::uint32_t, std::size_t bytes) {
        under_way -= bytes;
        under_way.notify_one();
      },
      [](const std::string& what, int, int) { std::fprintf(stderr, "%s failed\n", what.c_str()); });
  for (std::size_t at = 0; at < text.size(); at += chunk_bytes) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      for (std::size_t now = under_way; now > kRanks * kCreditBytes; now = under_way)
        under_way.wait(now);
      std::string bytes = text.substr(at, chunk_bytes);
      under_way += bytes.size();
      room.add({rank, 1, hv::wall_clock_ns(), std::move(bytes), false});
    }
  }
  room.finish();
  return hv::seconds_since(begun);
}

double seconds_of_bare_writes(const std::string& text) {
  constexpr std::size_t kWriteBytes = 256 << 10;
  const hv::UniqueFd out(::memfd_create("out", MFD_CLOEXEC));
  const hv::TimePoint begun = hv::now();
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t at = 0; at < text.size(); at += kWriteBytes) {
      const std::string bytes = text.substr(at, kWriteBytes);
      if (::write(out.get(), bytes.data(), bytes.size()) < 0) std::perror("write");
    }
  }
  return hv::seconds_since(begun);
}

}  // namespace

int main(int argc, char** argv) {
  const auto chunk_bytes = argc > 1 ? hv::parse_integer(argv[1]) : std::nullopt;
  if (!chunk_bytes || *chunk_bytes <= 0) {
    std::fprintf(stderr, "usage: bench_output_room CHUNK_BYTES [--timestamp|--no-label]\n");
    return 2;
  }
  OutputOptions options;
  options.timestamp = argc > 2 && std::strcmp(argv[2], "--timestamp") == 0;
  options.label = argc <= 2 || std::strcmp(argv[2], "--no-label") != 0;
  const std::string text = rank_text();
  for (int round = 0; round < 7; ++round) {
    const double room = seconds_of_room(text, static_cast<std::size_t>(*chunk_bytes), options);
    std::printf("room %.3f s, bare writes %.3f s\n", room, seconds_of_bare_writes(text));
  }
  return 0;
}
