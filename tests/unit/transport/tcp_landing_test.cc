// Bytes that go from the socket straight to where they are wanted.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collective/lanes.h"
#include "runtime/collective/piece_stream.h"
#include "runtime/transport/tcp/tcp_link.h"
#include "tests/unit/transport/linked_ends.h"

namespace {
thread_local bool is_memory_short = false;
thread_local bool is_room_short = false;  // there is some, for small pieces
constexpr std::size_t kSmallBytes = 4096;
}  // namespace

// A sanitizer's own stand for these, and are told apart from malloc().
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kRoomCanBeShort = true;

// Not inlined: the compiler would see malloc() and delete side by side.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const piece = is_room_short && size > kSmallBytes ? nullptr : std::malloc(size);
  if (piece == nullptr) throw std::bad_alloc();
  return piece;
}
[[gnu::noinline]] void operator delete(void* piece) noexcept { std::free(piece); }
[[gnu::noinline]] void operator delete(void* piece, std::size_t /*size*/) noexcept {
  std::free(piece);
}
#else
constexpr bool kRoomCanBeShort = false;
#endif

// What a link asks for where it may not throw.
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return is_memory_short ? nullptr : ::operator new[](size);
}

namespace hv::runtime {
namespace {

std::byte* bytes_of(std::string& text) { return reinterpret_cast<std::byte*>(text.data()); }

std::string readable(Channel& lane) {
  const auto bytes = lane.readable();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// A lane whose reader's memory has bytes of its own around it.
struct Wanted {
  explicit Wanted(std::size_t size) : memory(size + 2 * kFence, '.') {}
  std::byte* at(std::size_t offset) { return bytes_of(memory) + kFence + offset; }
  std::string_view text(std::size_t size) const {
    return std::string_view(memory).substr(kFence, size);
  }
  bool is_fenced() const {
    const std::string fence(kFence, '.');
    return memory.starts_with(fence) && memory.ends_with(fence);
  }

  static constexpr std::size_t kFence = 64;
  std::string memory;
};

}  // namespace

TEST_CASE("what is there is taken, what comes lands behind it, and the rest stays in the lane") {
  RawPeer peer;
  Channel& lane = peer.link.channel(2);
  Wanted wanted(8);
  peer.say_on_lane_2(0, "ab");
  CHECK(lane.receive(wanted.at(0), 8) == 2);
  CHECK(lane.receive(wanted.at(2), 6) == 0);
  peer.say_on_lane_2(2, "cde");
  CHECK(wanted.text(8) == "abcde...");  // before anybody has asked
  CHECK(lane.receive(wanted.at(2), 6) == 3);
  peer.say_on_lane_2(5, "fghij");
  CHECK(lane.receive(wanted.at(5), 3) == 3);
  CHECK(wanted.text(8) == "abcdefgh");
  CHECK(wanted.is_fenced());
  CHECK(readable(lane) == "ij");
}

TEST_CASE("bytes behind a gap land at their place, and are taken once the gap is filled") {
  RawPeer peer;
  Channel& lane = peer.link.channel(2);
  Wanted wanted(6);
  CHECK(lane.receive(wanted.at(0), 6) == 0);
  peer.say_on_lane_2(4, "efgh");
  CHECK(lane.receive(wanted.at(0), 6) == 0);
  peer.say_on_lane_2(0, "abcd");
  CHECK(lane.receive(wanted.at(0), 6) == 6);
  CHECK(wanted.text(6) == "abcdef");
  CHECK(wanted.is_fenced());
  CHECK(readable(lane) == "gh");
}

TEST_CASE("memory that was withdrawn is written to no more, and nothing that it held is lost") {
  RawPeer peer;
  Channel& lane = peer.link.channel(2);
  Wanted wanted(16);
  CHECK(lane.receive(wanted.at(0), 16) == 0);
  peer.say_on_lane_2(0, "abc");
  peer.say_on_lane_2(6, "ghi");
  lane.withdraw();
  const std::string before = wanted.memory;
  peer.say_on_lane_2(3, "def");
  peer.say_on_lane_2(9, "jkl");
  CHECK(wanted.memory == before);
  CHECK(readable(lane) == "abcdefghijkl");
}

TEST_CASE("bytes that come a second time, once they were taken, land nowhere") {
  for (const std::string first_piece : {"abcd", "ab"}) {  // all of the other frame, and a part
    Ends one, two;
    TcpLink link(both(one.fds[0], two.fds[0]));
    const UniqueFd first(one.fds[1]), second(two.fds[1]);
    const auto say = [&](const UniqueFd& peer, int stream, const std::string& bytes) {
      REQUIRE(::send(peer.get(), bytes.data(), bytes.size(), 0) ==
              static_cast<ssize_t>(bytes.size()));
      link.receive(stream);
    };
    const auto frame = [](std::size_t size) {
      const auto bytes = head(1, 2, static_cast<std::uint32_t>(size));
      return std::string(bytes.begin(), bytes.end());
    };
    const std::size_t taken = first_piece.size();
    Channel& lane = link.channel(2);
    Wanted wanted(8);
    say(first, 0, frame(4));
    say(second, 1, frame(taken) + first_piece);
    REQUIRE(lane.receive(wanted.at(0), taken) == taken);
    REQUIRE(lane.receive(wanted.at(taken), 8 - taken) == 0);
    say(first, 0, "ABCD");
    CHECK(wanted.text(8) == first_piece + std::string(8 - taken, '.'));
    CHECK(wanted.is_fenced());
    CHECK(lane.receive(wanted.at(taken), 8 - taken) == 0);
    CHECK(link.state() == PeerState::kSuspect);
    CHECK(link.words() == "sent a frame that breaks the protocol");
  }
}

TEST_CASE("what was withdrawn after a part was taken is read on from there") {
  RawPeer peer;
  Channel& lane = peer.link.channel(2);
  const std::string line(64, 'x'), other(64, 'y');
  Wanted wanted(128);
  CHECK(lane.receive(wanted.at(0), 128) == 0);
  peer.say_on_lane_2(0, line);
  CHECK(lane.receive(wanted.at(0), 128) == 64);
  peer.say_on_lane_2(128, "behind");  // in the ring, from its beginning
  peer.say_on_lane_2(64, other.substr(0, 32));
  lane.withdraw();  // before that, round the ring's end
  peer.say_on_lane_2(96, other.substr(32));
  std::string rest;
  while (!lane.readable().empty()) {
    rest += readable(lane);
    lane.consume(lane.readable().size());
  }
  CHECK(rest == other + "behind");
}

TEST_CASE("what cannot be kept for want of memory ends the connection, in words") {
  RawPeer peer;
  Channel& lane = peer.link.channel(2);
  Wanted wanted(16);
  CHECK(lane.receive(wanted.at(0), 16) == 0);
  peer.say_on_lane_2(0, "abc");
  is_memory_short = true;
  lane.withdraw();
  is_memory_short = false;
  CHECK(peer.link.state() == PeerState::kSuspect);
  CHECK(peer.link.words() == "was cut off: no memory for what it had sent");
  CHECK(lane.readable().empty());
}

TEST_CASE("what cannot be queued for want of memory ends the connection, in words") {
  if (!kRoomCanBeShort) return;
  RawPeer peer;
  Channel& lane = peer.link.channel(2);
  const std::string much(lane.writable(), 'x');  // more than the system takes
  is_room_short = true;
  CHECK_THROWS_AS(lane.write(much.data(), much.size()), std::bad_alloc);
  is_room_short = false;
  CHECK(peer.link.state() == PeerState::kSuspect);
  CHECK(peer.link.words() == "was cut off: no memory for what it is sent");
}

TEST_CASE(
    "what cannot be queued behind other frames leaves these whole, and goes without a trace") {
  if (!kRoomCanBeShort) return;
  RawPeer peer;
  Channel& lane = peer.link.channel(2);
  const std::string much(lane.writable(), 'x'), more(10000, 'y');
  lane.write(much.data(), much.size());
  REQUIRE(peer.link.has_unsent(0));
  is_room_short = true;
  CHECK_THROWS_AS(peer.link.channel(3).write(more.data(), more.size()), std::bad_alloc);
  is_room_short = false;
  CHECK(peer.link.state() == PeerState::kPresent);
  std::string came;
  for (char bytes[4096];;) {
    const ssize_t got = ::recv(peer.fds[1], bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) {
      came.append(bytes, static_cast<std::size_t>(got));
      continue;
    }
    if (!peer.link.has_unsent(0)) break;
    peer.link.flush(0);
  }
  CHECK(came.size() == head(1, 2, 0).size() + much.size());
  CHECK(came.ends_with(much));
}

TEST_CASE("memory that cannot be written to is no fault of the peer") {
  RawPeer peer;
  void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  Channel& lane = peer.link.channel(2);
  CHECK(lane.receive(static_cast<std::byte*>(page), 4096) == 0);
  peer.say(head(1, 2, 5));
  peer.say({'h', 'e', 'l', 'l', 'o'});
  CHECK(peer.link.state() == PeerState::kPresent);
  CHECK(readable(lane) == "hello");
  ::munmap(page, 4096);
}

// Whoever gives up an operation frees its memory next.
TEST_CASE("a receiver's end keeps what comes after it out of its memory") {
  RawPeer peer;
  Wanted wanted(16);
  {
    Receiver receiver(peer.link.channel(2));
    CHECK(receiver.step(wanted.at(0), 16) == Receiver::Outcome::kNothing);
    peer.say_on_lane_2(0, "abc");
    CHECK(receiver.step(wanted.at(0), 16) == Receiver::Outcome::kSome);
    Receiver moved = std::move(receiver);
    peer.say_on_lane_2(3, "def");
    CHECK(moved.step(wanted.at(0), 16) == Receiver::Outcome::kSome);
    CHECK(moved.position() == 6);
  }
  const std::string before = wanted.memory;
  peer.say_on_lane_2(6, "ghi");
  CHECK(wanted.memory == before);
  CHECK(readable(peer.link.channel(2)) == "ghi");
}

TEST_CASE("a receiver goes on when somebody else withdraws, and leaves the next one's alone") {
  RawPeer peer;
  Channel& lane = peer.link.channel(2);
  Wanted first(8), second(8);
  {
    Receiver done(lane);
    CHECK(done.step(first.at(0), 8) == Receiver::Outcome::kNothing);
    peer.say_on_lane_2(0, "abc");
    lane.withdraw();
    peer.say_on_lane_2(3, "defgh");
    CHECK(done.step(first.at(0), 8) == Receiver::Outcome::kWhole);
    CHECK(lane.receive(second.at(0), 8) == 0);
  }
  peer.say_on_lane_2(8, "12345678");
  CHECK(first.text(8) == "abcdefgh");
  CHECK(second.text(8) == "12345678");
}

TEST_CASE("pieces of any size come out as they went in, without their padding") {
  Linked ends;
  std::mt19937 random(7);
  Sender sender(ends.left.channel(3));
  Receiver receiver(ends.right.channel(3));
  for (int piece = 0; piece < 200; ++piece) {
    const std::size_t size = piece % 3 == 0 ? random() % 20 : random() % 300'000;
    std::string text(padded(size), 'p');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(random());
    Wanted wanted(size);
    sender.add(bytes_of(text), text.size());
    Receiver::Outcome outcome = Receiver::Outcome::kNothing;
    while (outcome != Receiver::Outcome::kWhole) {
      if (random() % 2) sender.step();
      ends.left.flush(0);
      if (random() % 2) ends.right.receive(0);
      outcome = receiver.step(wanted.at(0), size);
      ends.left.receive(0);  // credit
    }
    CHECK(wanted.text(size) == std::string_view(text).substr(0, size));
    CHECK(wanted.is_fenced());
  }
}

TEST_CASE(
    "a lane that is read in every way, over several streams, loses nothing and mixes nothing") {
  constexpr int kStreams = 3;
  std::vector<ForkGuardedFd> ours, theirs;
  for (int stream = 0; stream < kStreams; ++stream) {
    const Ends wire;
    ours.push_back(guarded(wire.fds[0]));
    theirs.push_back(guarded(wire.fds[1]));
  }
  TcpLink left(std::move(ours)), right(std::move(theirs));
  Channel &to = left.channel(5), &from = right.channel(5);
  std::mt19937 random(13);
  std::string sent, received;
  std::size_t landings = 0;  // how often bytes lay in their place before anybody asked
  const auto pass = [&] {
    std::string bytes(std::min<std::size_t>(random() % 300'000, to.writable()), ' ');
    for (char& byte : bytes) byte = static_cast<char>(random());
    to.write(bytes.data(), bytes.size());
    sent += bytes;
    for (int stream = 0; stream < kStreams; ++stream) {
      if (random() % 2) left.flush(stream);
      if (random() % 2) right.receive(stream);
      right.flush(stream);
      left.receive(stream);
    }
    REQUIRE(right.state() == PeerState::kPresent);
  };
  while (received.size() < 16 << 20) {
    if (random() % 2) {
      pass();
      const auto arrived = from.readable();
      const std::size_t part = std::min<std::size_t>(arrived.size(), random() % 400'000);
      received.append(reinterpret_cast<const char*>(arrived.data()), part);
      from.consume(part);
      continue;
    }
    const std::size_t size = 1 + random() % (3 << 20);
    Wanted wanted(size);
    std::size_t taken = from.receive(wanted.at(0), size);
    // One in four is given up on its way.
    for (std::size_t patience = random() % 4 ? ~std::size_t{0} : random() % 9;
         taken < size && patience > 0; --patience) {
      wanted.memory[Wanted::kFence + taken] = '?';
      pass();
      const bool has_landed = wanted.text(taken + 1).back() != '?';
      const std::size_t part = from.receive(wanted.at(taken), size - taken);
      landings += has_landed && part > 0 ? 1 : 0;
      taken += part;
    }
    if (taken < size) pass();  // lands, and is not asked for
    from.withdraw();
    CHECK(wanted.is_fenced());
    received += wanted.text(taken);
  }
  CHECK(landings > 20);
  REQUIRE(received.size() <= sent.size());
  CHECK(received == std::string_view(sent).substr(0, received.size()));
}

TEST_CASE("what lands gives its credit back as what is consumed does") {
  Linked ends;
  constexpr std::size_t kBytes = 8 * kWindowBytes;
  std::mt19937 random(17);
  std::vector<std::byte> tensor(kBytes), into(kBytes);
  for (std::byte& byte : tensor) byte = static_cast<std::byte>(random());
  std::size_t sent = 0, taken = 0;
  for (int turn = 0; turn < 10'000 && taken < kBytes; ++turn) {
    const std::size_t part = std::min(kBytes - sent, ends.left.channel(1).writable());
    if (part > 0) ends.left.channel(1).write(tensor.data() + sent, part);
    sent += part;
    ends.left.flush(0);
    ends.right.receive(0);
    taken += ends.right.channel(1).receive(into.data() + taken, kBytes - taken);
    ends.right.flush(0);
    ends.left.receive(0);
  }
  CHECK(taken == kBytes);
  CHECK(into == tensor);
}

}  // namespace hv::runtime
