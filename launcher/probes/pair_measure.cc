// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/pair_measure.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <thread>
#include <vector>

#include "launcher/probes/host_probe.h"
#include "src/base/blocking_write.h"
#include "src/base/text.h"
#include "src/net/socket.h"

namespace hv::launcher {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(2000);  // per step
constexpr std::size_t kChunk = 256 << 10;
// All hosts begin at about the same time. Bulk data of one must not delay the small messages of
// another.
constexpr auto kTimeOfSmallMessages = std::chrono::milliseconds(300);

double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

Status exchange(int socket, wire::PairMeasure* measure) {
  std::vector<double> times;
  char message[kExchangeBytes] = "hvrun";
  for (std::size_t i = 0; i < kExchanges; ++i) {
    const TimePoint begin = now();
    Status status = send_all(socket, message, sizeof message, kPatience);
    if (status.ok()) status = read_exactly(socket, message, sizeof message, kPatience);
    if (!status.ok()) return status;
    if (i > 0) times.push_back(microseconds(now() - begin));  // the first one only wakes both ends
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  measure->round_trip_us = times[times.size() / 2];
  return Status::success();
}

// Sends as much as the socket takes within kTimeToFill. False: it took nothing for kPatience.
bool fill(int socket, std::uint64_t* sent) {
  const std::vector<char> chunk(kChunk);
  const TimePoint end = now() + kTimeToFill;
  while (now() < end && *sent < kMostFill) {
    pollfd ready{socket, POLLOUT, 0};
    if (::poll(&ready, 1, static_cast<int>(kPatience.count())) == 0) return false;
    const ssize_t count = ::send(socket, chunk.data(), chunk.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
    *sent += count > 0 ? static_cast<std::uint64_t>(count) : 0;
  }
  return true;
}

void note_segments(int socket, wire::PairMeasure* measure) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  measure->segment_bytes = info.tcpi_snd_mss;
  if (info.tcpi_segs_out > 0)
    measure->resent_share = std::min(1.0, static_cast<double>(info.tcpi_total_retrans) /
                                              static_cast<double>(info.tcpi_segs_out));
}

// Whether the other end has acknowledged bulk data.
bool has_arrived_in_part(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_bytes_acked > kEchoedBytes + info.tcpi_snd_mss;
}

}  // namespace

wire::PairMeasure measure_pair(int socket) {
  wire::PairMeasure measure;
  const TimePoint start = now();
  if (const Status status = exchange(socket, &measure); !status.ok()) {
    measure.problem = "exchange small messages: " + status.message;
    note_segments(socket, &measure);
    return measure;
  }
  std::this_thread::sleep_until(start + kTimeOfSmallMessages);
  const TimePoint begin = now();
  std::uint64_t sent = 0, arrived = 0;
  bool is_whole = fill(socket, &sent) && ::shutdown(socket, SHUT_WR) == 0;
  if (is_whole) is_whole = read_exactly(socket, &arrived, sizeof arrived, kPatience).ok();
  const double seconds = seconds_since(begin);
  note_segments(socket, &measure);
  if (is_whole && seconds > 0)
    measure.megabytes_per_s = static_cast<double>(arrived) / 1e6 / seconds;
  else if (has_arrived_in_part(socket))
    measure.problem = "send " + format_bytes(sent) + ": it had not arrived within " +
                      format_duration(now() - begin);
  else
    measure.is_stuck = true;
  return measure;
}

int run_pair_measure() {
  ::prctl(PR_SET_NAME, kProbeName);  // the load probe leaves out processes of this name
  const int error = write_all(1, encode(measure_pair(0)));
  if (error != 0) std::fprintf(stderr, "write the measure: %s\n", errno_text(error).c_str());
  return error == 0 ? 0 : 1;
}

}  // namespace hv::launcher
