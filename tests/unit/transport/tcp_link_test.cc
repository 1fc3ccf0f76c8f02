// One connection with its lanes: credit, ends, and frames that break the rules.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <malloc.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/transport/tcp/arrival_window.h"
#include "runtime/transport/tcp/tcp_link.h"
#include "runtime/transport/tcp/tcp_transport.h"
#include "tests/unit/transport/linked_ends.h"

namespace hv::runtime {
namespace {

std::map<int, std::vector<ForkGuardedFd>> to_rank(int rank, int fd) {
  std::map<int, std::vector<ForkGuardedFd>> sockets;
  sockets[rank] = alone(fd);
  return sockets;
}

// Bytes that this process has allocated; 0 where that is not counted, under sanitizers.
std::size_t in_use() {
  const auto counts = ::mallinfo2();
  return counts.uordblks + counts.hblkhd;
}

}  // namespace

TEST_CASE("an arrival window joins pieces, whatever their order and overlap") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    ArrivalWindow window;
    std::vector<bool> has(200);
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t begin = random() % 190, end = begin + 1 + random() % 10;
      window.add(begin, end);
      std::fill(has.begin() + static_cast<long>(begin), has.begin() + static_cast<long>(end), true);
      const auto gap = std::find(has.begin(), has.end(), false) - has.begin();
      REQUIRE(window.ready() == static_cast<std::uint64_t>(gap));
    }
  }
}

TEST_CASE("an arrival window goes round its ring of marks") {
  constexpr std::uint64_t kSpan = ArrivalWindow::kSpan;
  std::mt19937 random(6);
  ArrivalWindow window;
  std::uint64_t end = 0;
  while (end < 5 * kSpan) {
    const std::uint64_t begin = end, size = 3 + random() % (kSpan - 3);
    const std::uint64_t gap = 1 + random() % (size - 1);
    end += size;
    window.add(begin + gap, end);  // up to the last byte that there are marks for
    REQUIRE(window.ready() == begin);
    REQUIRE_FALSE(window.is_whole());
    window.add(begin, begin + gap - 1);
    REQUIRE(window.ready() == begin + gap - 1);
    window.add(begin + gap - 1, begin + gap);
    REQUIRE(window.ready() == end);
    REQUIRE(window.is_whole());
  }
}

TEST_CASE("however small the pieces that come early, what is kept of them stays small") {
  const std::size_t before = in_use();
  ArrivalWindow window;
  for (std::uint64_t at = 1; at < ArrivalWindow::kSpan; at += 2) window.add(at, at + 1);
  CHECK(in_use() <= before + ArrivalWindow::kSpan / 8 + 4096);
  for (std::uint64_t at = 0; at < ArrivalWindow::kSpan; at += 2) window.add(at, at + 1);
  CHECK(window.ready() == ArrivalWindow::kSpan);
}

TEST_CASE("a lane that holds nothing gives its ring back, and goes on as before") {
  RawPeer peer;
  Channel& lane = peer.link.channel(2);
  const std::size_t before = in_use();
  peer.say_on_lane_2(0, "abc");
  CHECK((before == 0 || in_use() >= before + kWindowBytes));
  lane.shrink();  // three bytes are unread
  CHECK((before == 0 || in_use() >= before + kWindowBytes));
  lane.consume(3);
  peer.say_on_lane_2(4, "e");  // one has come early
  lane.shrink();
  peer.say_on_lane_2(3, "d");
  REQUIRE(lane.readable().size() == 2);
  CHECK(std::memcmp(lane.readable().data(), "de", 2) == 0);
  lane.consume(2);
  lane.shrink();
  CHECK((before == 0 || in_use() < before + kWindowBytes / 2));
  peer.say_on_lane_2(5, "fg");
  REQUIRE(lane.readable().size() == 2);
  CHECK(std::memcmp(lane.readable().data(), "fg", 2) == 0);
}

TEST_CASE("a peer that only ever sends what needs no credit does not keep a rank busy") {
  // Beats, credit of nothing and data of no bytes: as many as the connection holds.
  for (const auto& frame : {head(4, 0, 0), head(2, 1, 0), head(1, 2, 0)}) {
    Ends ends;
    const int room = 1 << 20;
    ::setsockopt(ends.fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    TcpLink link(alone(ends.fds[0]));
    std::vector<unsigned char> many;
    while (many.size() < 1 << 14) many.insert(many.end(), frame.begin(), frame.end());
    while (::send(ends.fds[1], many.data(), many.size(), MSG_NOSIGNAL) > 0) {
    }
    const auto waiting = [&] {
      int bytes = 0;
      REQUIRE(::ioctl(link.fd(0), FIONREAD, &bytes) == 0);
      return bytes;
    };
    const int before = waiting();
    REQUIRE(before > 160 << 10);
    link.receive(0);
    CHECK(waiting() > 0);
    CHECK(waiting() < before);
    for (int turn = 0; turn < 100 && waiting() > 0; ++turn) link.receive(0);
    CHECK(waiting() == 0);
    CHECK(link.state() == PeerState::kPresent);
    ::close(ends.fds[1]);
  }
}

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
    ends.left.flush(0);
    ends.right.receive(0);
    const auto arrived = ends.right.channel(1).readable();
    REQUIRE(std::memcmp(arrived.data(), bytes.data() + got, arrived.size()) == 0);
    got += arrived.size();
    ends.right.channel(1).consume(arrived.size());
  }
  ends.left.flush(0);
  ends.right.receive(0);
  CHECK(std::memcmp(ends.right.channel(2).readable().data(), "other", 5) == 0);
  ends.left.receive(0);
  CHECK(ends.left.channel(1).writable() > kWindowBytes * 3 / 4);  // given back by the quarter
}

TEST_CASE("while the socket is full each lane takes a little, once, and its credit again after") {
  RawPeer peer;
  Channel& large = peer.link.channel(1);
  Channel& small = peer.link.channel(2);
  const std::vector<unsigned char> half(kWindowBytes / 2);
  for (int i = 0; i < 2; ++i) {  // each time that it is full
    large.write(half.data(), half.size());
    REQUIRE(peer.link.has_unsent());
    CHECK(large.writable() == 0);
    CHECK(small.writable() == 64 << 10);
    small.write("word", 4);
    CHECK(small.writable() == 0);
    std::vector<unsigned char> taken(1 << 20);
    while (peer.link.has_unsent()) {
      REQUIRE(::read(peer.fds[1], taken.data(), taken.size()) > 0);
      peer.link.flush(0);
    }
    CHECK(large.writable() == (i == 0 ? half.size() : 0));
    CHECK(small.writable() == kWindowBytes - 4 * static_cast<std::size_t>(i + 1));
  }
}

// A ring that begins anew at an odd place would cut a word in two, and who reads words wait for
// ever.
TEST_CASE("whole words can be read to the end of what has come, however a lane was read before") {
  Linked ends;
  Channel& to = ends.left.channel(1);
  Channel& from = ends.right.channel(1);
  const std::vector<unsigned char> bytes(kWindowBytes - 16);
  to.write(bytes.data(), 13);
  ends.right.receive(0);
  from.consume(13);
  to.write(bytes.data(), 3);
  to.write(bytes.data(), bytes.size());
  const auto receive_all = [&] {
    for (int i = 0; i < 1000; ++i) {  // a socket holds some 200 KiB
      ends.left.flush(0);
      ends.right.receive(0);
    }
    REQUIRE(!ends.left.has_unsent());
  };
  receive_all();
  from.consume(3);
  from.consume(kWindowBytes / 2);
  ends.left.receive(0);  // credit
  const std::size_t more = to.writable() / 8 * 8;
  REQUIRE(more > 16);
  to.write(bytes.data(), more);  // over the ring's end
  receive_all();
  std::size_t read = kWindowBytes / 2;
  while (from.readable().size() >= 8) {
    const std::size_t whole = from.readable().size() / 8 * 8;
    from.consume(whole);
    read += whole;
  }
  CHECK(read == bytes.size() + more);
}

TEST_CASE("what comes to an empty lane lies where the last lay, behind what is unread otherwise") {
  const std::string line(64, 'a'), other(64, 'b'), third(64, 'c');
  RawPeer peer;
  Channel& lane = peer.link.channel(2);
  peer.say_on_lane_2(0, line);
  const std::byte* const begin = lane.readable().data();
  lane.consume(64);
  peer.say_on_lane_2(64, line);
  CHECK(lane.readable().data() == begin);
  peer.say_on_lane_2(128, other);
  CHECK(std::memcmp(lane.readable().data(), (line + other).data(), 128) == 0);
  lane.consume(64);
  peer.say_on_lane_2(192, third);
  CHECK(lane.readable().data() == begin + 64);
  CHECK(std::memcmp(lane.readable().data(), (other + third).data(), 128) == 0);
}

TEST_CASE("a lane that nobody reads holds up no other") {
  Linked ends;
  const std::vector<std::byte> full(kWindowBytes);
  ends.left.channel(3).write(full.data(), full.size());
  for (int i = 0; i < 200; ++i) {
    ends.left.channel(kControlLane).write("ping", 4);
    ends.left.flush(0);
    ends.right.receive(0);
  }
  while (ends.left.has_unsent()) {
    ends.left.flush(0);
    ends.right.receive(0);
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
    ends.left.flush(0);
    ends.right.receive(0);
    const auto arrived = ends.right.channel(5).readable();
    const std::size_t part = std::min<std::size_t>(arrived.size(), random() % 400000);
    const auto* from = reinterpret_cast<const unsigned char*>(arrived.data());
    received.insert(received.end(), from, from + part);
    ends.right.channel(5).consume(part);
    ends.right.flush(0);
    ends.left.receive(0);
  }
  sent.resize(received.size());
  CHECK(sent == received);
}

TEST_CASE("an end without goodbye makes the peer a suspect, one after a goodbye does not") {
  {
    RawPeer peer;
    ::shutdown(peer.fds[1], SHUT_RDWR);
    peer.link.receive(0);
    CHECK(peer.link.state() == PeerState::kSuspect);
    CHECK(peer.link.words() == "closed its connection");
    CHECK(peer.link.fd(0) == -1);
    peer.link.channel(1).write("into the void", 13);
    // Messages, too; what only sends data must not end for that.
    CHECK(peer.link.channel(kControlLane).writable() == kWindowBytes);
    peer.link.channel(kControlLane).write("into the void", 13);
    CHECK(peer.link.channel(1).writable() == 0);
  }
  RawPeer peer;
  peer.say(head(3, 0, 0));
  CHECK(peer.link.state() == PeerState::kLeft);
  ::shutdown(peer.fds[1], SHUT_RDWR);
  peer.link.receive(0);
  CHECK(peer.link.state() == PeerState::kLeft);
  CHECK(peer.link.fd(0) == -1);
}

TEST_CASE("a connection that the system ends is told with the system's reason") {
  Ends ends;
  Status status;
  const auto made = TcpTransport::make(to_rank(4, ends.fds[0]), &status);
  REQUIRE(made);
  TcpTransport& transport = *made;
  transport.channel(4, 1).write("never read", 10);
  ::close(ends.fds[1]);  // with bytes in it: a reset
  transport.progress();
  CHECK(transport.state(4) == PeerState::kSuspect);
  CHECK(transport.suspicion(4) == "lost its connection (receive: Connection reset by peer)");
}

TEST_CASE("frames that break the protocol end the connection") {
  const std::vector<std::vector<unsigned char>> bad = {
      head(9, 0, 1),                  // unknown kind
      head(1, 200, 1),                // a lane that is not open
      head(1, 1 + (200 << 8), 1),     // the same, by its high byte
      head(1, 0, 0x7fffffff),         // more than the window
      head(1, 0, kWindowBytes, 1),    // the same, by where it lies
      head(1, 0, 1, kWindowBytes),    // behind the window
      head(1, 0, 1, UINT64_MAX),      // far behind it
      head(1, 0, 2, UINT64_MAX - 1),  // the same, and its end would overflow
      head(2, 1, 1),                  // credit for what was never sent
  };
  for (const auto& frame : bad) {
    RawPeer peer;
    peer.say(frame);
    CHECK(peer.link.state() == PeerState::kSuspect);
    CHECK(peer.link.words() == "sent a frame that breaks the protocol");
  }
}

TEST_CASE("a lane is open once it was asked for, up to the highest there is") {
  Linked ends;
  const int highest = kMostSets * kLanesPerSet;
  for (const int lane : {kLanesPerSet + 1, highest}) {
    ends.left.channel(lane).write("late", 4);
    ends.left.flush(0);
    Channel& opened = ends.right.channel(lane);
    ends.right.receive(0);
    REQUIRE(opened.readable().size() == 4);
    CHECK(std::memcmp(opened.readable().data(), "late", 4) == 0);
  }
  ends.left.channel(highest - 1).write("unasked", 7);
  ends.left.flush(0);
  ends.right.receive(0);
  CHECK(ends.right.state() == PeerState::kSuspect);
}

TEST_CASE("bytes that are whole already cannot be sent again") {
  RawPeer peer;
  std::vector<unsigned char> frame = head(1, 2, 3);
  frame.insert(frame.end(), {'a', 'b', 'c'});
  peer.say(frame);
  CHECK(peer.link.channel(2).readable().size() == 3);
  frame = head(1, 2, 1, 2);
  frame.push_back('x');
  peer.say(frame);
  CHECK(peer.link.state() == PeerState::kSuspect);
}

TEST_CASE("a lane is readable as far as nothing is missing, whatever order its frames come in") {
  RawPeer peer;
  const auto readable = [&] {
    const auto bytes = peer.link.channel(2).readable();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  peer.say_on_lane_2(6, "world");
  CHECK(readable().empty());
  peer.say_on_lane_2(3, "lo");
  CHECK(readable().empty());
  peer.say_on_lane_2(0, "hel");
  CHECK(readable() == "hello");
  peer.say_on_lane_2(5, " ");
  CHECK(readable() == "hello world");
}

TEST_CASE(
    "with several streams every piece arrives once and in order, and each stream has a share") {
  constexpr int kStreams = 3;
  std::vector<Ends> wires(kStreams);
  std::vector<ForkGuardedFd> ours, theirs;
  for (Ends& wire : wires) {
    ours.push_back(guarded(wire.fds[0]));
    theirs.push_back(guarded(wire.fds[1]));
  }
  TcpLink left(std::move(ours)), right(std::move(theirs));
  std::mt19937 random(11);
  std::vector<unsigned char> sent, received;
  std::vector<std::size_t> carried(kStreams);
  while (received.size() < 8 << 20) {
    std::vector<unsigned char> bytes(
        std::min<std::size_t>(random() % 300000, left.channel(5).writable()));
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    left.channel(5).write(bytes.data(), bytes.size());
    sent.insert(sent.end(), bytes.begin(), bytes.end());
    for (int stream = 0; stream < kStreams; ++stream) {
      int waiting = 0;
      REQUIRE(::ioctl(right.fd(stream), FIONREAD, &waiting) == 0);
      carried[static_cast<std::size_t>(stream)] += static_cast<std::size_t>(waiting) / 1024;
      if (random() % 2) left.flush(stream);
      if (random() % 2) right.receive(stream);
      right.flush(stream);
      left.receive(stream);
    }
    const auto arrived = right.channel(5).readable();
    const std::size_t part = std::min<std::size_t>(arrived.size(), random() % 400000);
    const auto* from = reinterpret_cast<const unsigned char*>(arrived.data());
    received.insert(received.end(), from, from + part);
    right.channel(5).consume(part);
    REQUIRE(right.state() == PeerState::kPresent);
  }
  sent.resize(received.size());
  CHECK(sent == received);
  for (const std::size_t part : carried) CHECK(part > 0);
}

TEST_CASE("a peer with several streams has left once it has said so on each") {
  Ends one, two;
  TcpLink link(both(one.fds[0], two.fds[0]));
  const UniqueFd first(one.fds[1]);
  UniqueFd second(two.fds[1]);
  const auto goodbye = head(3, 0, 0);
  const auto size = static_cast<ssize_t>(goodbye.size());
  REQUIRE(::send(first.get(), goodbye.data(), goodbye.size(), 0) == size);
  link.receive(0);
  CHECK(link.state() == PeerState::kPresent);
  SUBCASE("on both") {
    REQUIRE(::send(second.get(), goodbye.data(), goodbye.size(), 0) == size);
    link.receive(1);
    CHECK(link.state() == PeerState::kLeft);
  }
  SUBCASE("on one, and the other ends") {
    second.reset();
    link.receive(1);
    CHECK(link.state() == PeerState::kSuspect);
  }
}

TEST_CASE("a beat is a sign of life and nothing else") {
  Linked ends;
  CHECK_FALSE(ends.right.take_heard());
  ends.left.send_beat();
  ends.right.receive(0);
  CHECK(ends.right.take_heard());
  CHECK_FALSE(ends.right.take_heard());
  CHECK_FALSE(ends.right.has_unread_control());
  ends.left.channel(1).write("data", 4);
  ends.right.receive(0);
  CHECK(ends.right.take_heard());
}

TEST_CASE("random bytes never do more than end the connection") {
  std::mt19937 random(77);
  for (int round = 0; round < 300; ++round) {
    RawPeer peer;
    std::vector<unsigned char> noise(random() % 400);
    for (unsigned char& byte : noise)
      byte = static_cast<unsigned char>(random() % (round % 2 ? 256 : 4));
    peer.say(noise);
    CHECK((peer.link.state() != PeerState::kPresent || peer.link.fd(0) >= 0));
  }
}

TEST_CASE("a transport tells of control bytes and of nothing else") {
  Ends ends;
  Status status;
  const auto mine = TcpTransport::make(to_rank(1, ends.fds[0]), &status);
  const auto theirs = TcpTransport::make(to_rank(0, ends.fds[1]), &status);
  REQUIRE(mine);
  REQUIRE(theirs);
  TcpTransport &left = *mine, &right = *theirs;
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

TEST_CASE("a transport's descriptor tells of room as soon as something waits for it, not before") {
  Ends ends;
  const int little = 16 << 10;  // less than a window, whatever this system's default is
  REQUIRE(::setsockopt(ends.fds[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0);
  Status status;
  const auto made = TcpTransport::make(to_rank(1, ends.fds[0]), &status);
  REQUIRE(made);
  pollfd watched{made->poll_fd(), POLLIN, 0};
  made->progress();
  CHECK(::poll(&watched, 1, 0) == 0);
  Channel& lane = made->channel(1, 2);
  const std::vector<char> bytes(64 << 10, 'x');
  while (!made->has_unsent()) {
    REQUIRE(lane.writable() > 0);
    lane.write(bytes.data(), std::min(bytes.size(), lane.writable()));
  }
  CHECK(::poll(&watched, 1, 0) == 0);
  std::vector<char> taken(kWindowBytes);
  const auto take_all = [&] {
    while (::recv(ends.fds[1], taken.data(), taken.size(), 0) > 0) {
    }
  };
  take_all();
  CHECK(::poll(&watched, 1, 0) == 1);  // though nobody has looked since it was queued
  while (made->has_unsent()) {
    made->progress();
    take_all();
  }
  CHECK(::poll(&watched, 1, 0) == 0);
  ::close(ends.fds[1]);
}

}  // namespace hv::runtime
