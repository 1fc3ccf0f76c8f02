// Connections whose other end is a link, too, or says what the test says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/tcp/tcp_link.h"

namespace hv::runtime {

inline ForkGuardedFd guarded(int fd) { return ForkGuardedFd(UniqueFd(fd)); }

struct Ends {
  Ends() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
  }
  int fds[2];
};

inline std::vector<ForkGuardedFd> alone(int fd) {
  std::vector<ForkGuardedFd> streams;
  streams.push_back(guarded(fd));
  return streams;
}

inline std::vector<ForkGuardedFd> both(int one, int two) {
  std::vector<ForkGuardedFd> streams = alone(one);
  streams.push_back(guarded(two));
  return streams;
}

// A frame's head, as the peer sends it.
inline std::vector<unsigned char> head(unsigned char kind, unsigned lane, std::uint32_t length,
                                       std::uint64_t position = 0) {
  std::vector<unsigned char> bytes{kind, 0, static_cast<unsigned char>(lane),
                                   static_cast<unsigned char>(lane >> 8)};
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<unsigned char>(length >> 8 * i));
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<unsigned char>(position >> 8 * i));
  return bytes;
}

// A link, and the raw other end of its connection.
struct RawPeer : Ends {
  TcpLink link{alone(fds[0])};
  ~RawPeer() { ::close(fds[1]); }
  void say(std::vector<unsigned char> bytes) {
    REQUIRE(::send(fds[1], bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    link.receive(0);
  }
  void say_on_lane_2(std::uint64_t position, const std::string& text) {
    std::vector<unsigned char> frame =
        head(1, 2, static_cast<std::uint32_t>(text.size()), position);
    frame.insert(frame.end(), text.begin(), text.end());
    say(std::move(frame));
  }
};

struct Linked : Ends {
  TcpLink left{alone(fds[0])}, right{alone(fds[1])};
};

}  // namespace hv::runtime
