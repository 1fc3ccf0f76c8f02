// A connection between ranks whose other end sends any bytes, in pieces that the first byte limits.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_link.h"

#include <sys/socket.h>

#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::runtime;

namespace {

std::string frame(unsigned char kind, unsigned char lane, std::uint32_t length) {
  std::string bytes{static_cast<char>(kind), static_cast<char>(lane), 0, 0};
  return bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
}

// Reads all lanes, as collectives do; half of what is there, so that rings wrap and fill.
std::size_t read_some(TcpLink& link) {
  std::size_t total = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    Channel& channel = link.channel(lane);
    const std::size_t size = channel.readable().size();
    HV_CHECK(size <= kWindowBytes, "no more than a window");
    total += (size + 1) / 2;
    channel.consume((size + 1) / 2);
    HV_CHECK(channel.writable() <= kWindowBytes, "credit within the window");
    if (lane % 3 == 0 && channel.writable() >= 3) channel.write("abc", 3);
  }
  return total;
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  return {"\x10" + frame(1, 0, 5) + "hello" + frame(1, 8, 3) + "abc" + frame(3, 0, 0),
          "\xff" + frame(2, 1, 1) + frame(1, 2, 1 << 20) + std::string(300, 'x'),
          "\x01" + frame(3, 0, 0) + frame(1, 1, 1) + "x", "\x20" + frame(1, 9, 1) + "x"};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const std::size_t step = 1 + input.byte();
  int fds[2];
  HV_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0,
           "a pair");
  UniqueFd peer(fds[1]);
  TcpLink link{ForkGuardedFd(UniqueFd(fds[0]))};
  std::size_t sent = 0, read = 0;
  while (!input.empty() && link.state() != PeerState::kSuspect) {
    const std::string_view bytes = input.take(step);
    const ssize_t got = ::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (got < 0) break;  // the link has hung up
    sent += static_cast<std::size_t>(got);
    link.receive();
    link.flush();
    read += read_some(link);
  }
  HV_CHECK(read <= sent, "nothing is read that was not sent");
  peer.reset();
  link.receive();
  HV_CHECK(link.state() != PeerState::kPresent, "the end of the connection is seen");
  HV_CHECK(link.state() == PeerState::kLeft || !link.words().empty(), "and told in words");
  return 0;
}
