// One connection with its lanes: credit, ends, and frames that break the rules.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/transport/tcp/tcp_link.h"
#include "runtime/transport/tcp/tcp_transport.h"

namespace hv::runtime {
namespace {

ForkGuardedFd guarded(int fd) { return ForkGuardedFd(UniqueFd(fd)); }

struct Ends {
  Ends() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
  }
  int fds[2];
};

// A link, and the raw other end of its connection.
struct RawPeer : Ends {
  TcpLink link{guarded(fds[0])};
  ~RawPeer() { ::close(fds[1]); }
  void say(std::vector<unsigned char> bytes) {
    REQUIRE(::send(fds[1], bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    link.receive();
  }
};

struct Linked : Ends {
  TcpLink left{guarded(fds[0])}, right{guarded(fds[1])};
};

}  // namespace

TEST_CASE("lanes carry bytes in order, independent of each other, and stop at their credit") {
  Linked ends;
  std::vector<unsigned char> bytes(kWindowBytes);
  std::iota(bytes.begin(), bytes.end(), 0);
  CHECK(ends.left.channel(1).writable() == kWindowBytes);
  ends.left.channel(1).write(bytes.data(), bytes.size());
  CHECK(ends.left.channel(1).writable() == 0);
  ends.left.channel(2).write("other", 5);
  std::size_t got = 0;
  while (got < bytes.size()) {
    ends.left.flush();
    ends.right.receive();
    const auto arrived = ends.right.channel(1).readable();
    REQUIRE(std::memcmp(arrived.data(), bytes.data() + got, arrived.size()) == 0);
    got += arrived.size();
    ends.right.channel(1).consume(arrived.size());
  }
  ends.left.flush();
  ends.right.receive();
  CHECK(std::memcmp(ends.right.channel(2).readable().data(), "other", 5) == 0);
  ends.left.receive();
  CHECK(ends.left.channel(1).writable() > kWindowBytes * 3 / 4);  // given back by the quarter
}

TEST_CASE("a lane that nobody reads holds up no other") {
  Linked ends;
  const std::vector<std::byte> full(kWindowBytes);
  ends.left.channel(3).write(full.data(), full.size());
  for (int i = 0; i < 200; ++i) {
    ends.left.channel(kControlLane).write("ping", 4);
    ends.left.flush();
    ends.right.receive();
  }
  while (ends.left.has_unsent()) {
    ends.left.flush();
    ends.right.receive();
  }
  CHECK(ends.right.has_unread_control());
  CHECK(ends.right.channel(kControlLane).readable().size() == 800);
}

TEST_CASE("random traffic both ways arrives byte for byte") {
  Linked ends;
  std::mt19937 random(3);
  std::vector<unsigned char> sent, received;
  while (received.size() < 8 << 20) {
    std::vector<unsigned char> bytes(
        std::min<std::size_t>(random() % 300000, ends.left.channel(5).writable()));
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    ends.left.channel(5).write(bytes.data(), bytes.size());
    sent.insert(sent.end(), bytes.begin(), bytes.end());
    ends.left.flush();
    ends.right.receive();
    const auto arrived = ends.right.channel(5).readable();
    const std::size_t part = std::min<std::size_t>(arrived.size(), random() % 400000);
    const auto* from = reinterpret_cast<const unsigned char*>(arrived.data());
    received.insert(received.end(), from, from + part);
    ends.right.channel(5).consume(part);
    ends.right.flush();
    ends.left.receive();
  }
  sent.resize(received.size());
  CHECK(sent == received);
}

TEST_CASE("an end without goodbye makes the peer a suspect, one after a goodbye does not") {
  {
    RawPeer peer;
    ::shutdown(peer.fds[1], SHUT_RDWR);
    peer.link.receive();
    CHECK(peer.link.state() == PeerState::kSuspect);
    CHECK(peer.link.words() == "closed its connection");
    CHECK(peer.link.fd() == -1);
    peer.link.channel(1).write("into the void", 13);
  }
  RawPeer peer;
  peer.say({3, 0, 0, 0, 0, 0, 0, 0});
  CHECK(peer.link.state() == PeerState::kLeft);
  ::shutdown(peer.fds[1], SHUT_RDWR);
  peer.link.receive();
  CHECK(peer.link.state() == PeerState::kLeft);
  CHECK(peer.link.fd() == -1);
}

TEST_CASE("a connection that the system ends is told with the system's reason") {
  Ends ends;
  std::map<int, ForkGuardedFd> sockets;
  sockets.emplace(4, guarded(ends.fds[0]));
  TcpTransport transport(std::move(sockets));
  transport.channel(4, 1).write("never read", 10);
  ::close(ends.fds[1]);  // with bytes in it: a reset
  transport.progress();
  CHECK(transport.state(4) == PeerState::kSuspect);
  CHECK(transport.suspicion(4) == "lost its connection (receive: Connection reset by peer)");
}

TEST_CASE("frames that break the protocol end the connection") {
  const std::vector<std::vector<unsigned char>> bad = {
      {9, 0, 0, 0, 1, 0, 0, 0},              // unknown kind
      {1, 200, 0, 0, 1, 0, 0, 0},            // unknown lane
      {1, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f},  // more than the window
      {2, 1, 0, 0, 1, 0, 0, 0},              // credit for what was never sent
  };
  for (const auto& frame : bad) {
    RawPeer peer;
    peer.say(frame);
    CHECK(peer.link.state() == PeerState::kSuspect);
    CHECK(peer.link.words() == "sent a frame that breaks the protocol");
  }
}

TEST_CASE("random bytes never do more than end the connection") {
  std::mt19937 random(77);
  for (int round = 0; round < 300; ++round) {
    RawPeer peer;
    std::vector<unsigned char> noise(random() % 400);
    for (unsigned char& byte : noise)
      byte = static_cast<unsigned char>(random() % (round % 2 ? 256 : 4));
    peer.say(noise);
    CHECK((peer.link.state() != PeerState::kPresent || peer.link.fd() >= 0));
  }
}

TEST_CASE("a transport tells of control bytes and of nothing else") {
  Ends ends;
  std::map<int, ForkGuardedFd> mine, theirs;
  mine.emplace(1, guarded(ends.fds[0]));
  theirs.emplace(0, guarded(ends.fds[1]));
  TcpTransport left(std::move(mine)), right(std::move(theirs));
  CHECK(left.peers() == std::vector<int>{1});
  left.channel(1, 2).write("data", 4);
  int peer = -1;
  right.progress();
  CHECK_FALSE(right.next_arrival(&peer));
  left.channel(1, kControlLane).write("word", 4);
  right.progress();
  CHECK(right.next_arrival(&peer));
  CHECK(peer == 0);
  left.say_goodbye();
  right.progress();
  CHECK(right.state(0) == PeerState::kLeft);
}

}  // namespace hv::runtime
