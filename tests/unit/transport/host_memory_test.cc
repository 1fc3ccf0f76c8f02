// The memory that ranks of a host share: doorbells, flags, losses, control pipes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/transport/inproc/inproc_source.h"
#include "runtime/transport/shm/host_memory.h"
#include "runtime/transport/shm/memfd_source.h"
#include "runtime/transport/shm/shm_transport.h"

namespace hv::runtime {
namespace {

// One host of `ranks`, all in this thread.
struct Host {
  explicit Host(int ranks, const char* name = "host_memory_test") {
    HostGeometry geometry{ranks, 4096};
    for (int r = 0; r < ranks; ++r)
      of.push_back(
          std::make_unique<HostMemory>(inproc_memory(name, geometry.total_bytes()), geometry, r));
  }
  std::vector<std::unique_ptr<HostMemory>> of;
};

}  // namespace

TEST_CASE(
    "a wait returns at once when the bell has rung since its value was read, else at the "
    "deadline") {
  Host host(2);
  const std::uint32_t seen = host.of[0]->value();
  host.of[1]->ring(0);
  host.of[0]->wait(seen, now() + std::chrono::hours(1));
  const TimePoint start = now();
  host.of[0]->wait(host.of[0]->value(), start + std::chrono::milliseconds(20));
  CHECK(now() - start >= std::chrono::milliseconds(15));
}

TEST_CASE("no ring is lost between looking for work and sleeping") {
  Host host(2);
  std::atomic<int> posted{0};
  constexpr int kTurns = 20000;
  std::thread ringer([&] {
    for (int i = 1; i <= kTurns; ++i) {
      posted = i;
      host.of[1]->ring(0);
      if (i % 64 == 0) std::this_thread::yield();
    }
  });
  int taken = 0;
  const TimePoint deadline = now() + std::chrono::seconds(30);
  while (taken < kTurns && now() < deadline) {
    const std::uint32_t seen = host.of[0]->value();
    const int current = posted;
    if (current == taken) host.of[0]->wait(seen, deadline);
    taken = current;
  }
  ringer.join();
  CHECK(taken == kTurns);
}

TEST_CASE("the first loss is the one that all ranks of the host read") {
  Host host(3);
  int rank = -1;
  std::string reason;
  CHECK_FALSE(host.of[0]->read_loss(&rank, &reason));
  CHECK_FALSE(host.of[0]->has_loss());
  host.of[1]->publish_loss(17, "rank 17 ended by signal 9");
  host.of[2]->publish_loss(4, "rank 4 left");
  CHECK(host.of[0]->read_loss(&rank, &reason));
  CHECK(host.of[0]->has_loss());
  CHECK(rank == 17);
  CHECK(reason == "rank 17 ended by signal 9");
}

TEST_CASE("a control pipe keeps order and content over many turns of its ring") {
  Host host(2);
  ShmTransport left(*host.of[0], {3, 5}), right(*host.of[1], {3, 5});
  CHECK(left.peers() == std::vector<int>{5});
  Channel& out = left.channel(5, kControlLane);
  Channel& in = right.channel(3, kControlLane);
  std::mt19937 random(11);
  unsigned char next_out = 0, next_in = 0;
  std::size_t moved = 0;
  while (moved < 10 * pipe_capacity(PipeKind::kControl)) {
    std::vector<unsigned char> bytes(std::min<std::size_t>(random() % 9000, out.writable()));
    for (unsigned char& byte : bytes) byte = next_out++;
    out.write(bytes.data(), bytes.size());
    std::size_t want = random() % 9000;
    for (auto arrived = in.readable(); !arrived.empty() && want > 0; arrived = in.readable()) {
      const std::size_t part = std::min(want, arrived.size());
      for (std::size_t i = 0; i < part; ++i)
        REQUIRE(std::to_integer<unsigned char>(arrived[i]) == next_in++);
      in.consume(part);
      want -= part;
      moved += part;
    }
  }
}

TEST_CASE("a full pipe takes no more, and an arrival is told once") {
  Host host(2);
  ShmTransport left(*host.of[0], {0, 1}), right(*host.of[1], {0, 1});
  const std::vector<std::byte> bytes(pipe_capacity(PipeKind::kControl));
  left.channel(1, kControlLane).write(bytes.data(), bytes.size());
  CHECK(left.channel(1, kControlLane).writable() == 0);
  int peer = -1;
  CHECK(right.next_arrival(&peer));
  CHECK(peer == 0);
  CHECK_FALSE(right.next_arrival(&peer));
  right.channel(0, kControlLane).consume(100);
  CHECK(left.channel(1, kControlLane).writable() == 100);
}

TEST_CASE("a goodbye is seen by every rank of the host") {
  Host host(3);
  ShmTransport one(*host.of[0], {0, 1, 2}), two(*host.of[1], {0, 1, 2});
  CHECK(two.state(0) == PeerState::kPresent);
  one.say_goodbye();
  CHECK(two.state(0) == PeerState::kLeft);
  CHECK(two.state(2) == PeerState::kPresent);
}

TEST_CASE("a memfd is mapped only if it is sealed and of the agreed size") {
  UniqueFd fd;
  MappedMemory memory;
  REQUIRE(create_memfd(1 << 16, &fd).ok());
  CHECK(map_memfd(fd.get(), 1 << 16, &memory).ok());
  CHECK(memory.size == 1 << 16);
  CHECK(memory.bytes[65535] == std::byte{0});
  const Status wrong = map_memfd(fd.get(), 1 << 17, &memory);
  CHECK_FALSE(wrong.ok());
  CHECK(wrong.message.find("same version") != std::string::npos);
  CHECK(::ftruncate(fd.get(), 4096) != 0);
}

TEST_CASE("inproc memory is one for all who name it and new once all have gone") {
  auto first = inproc_memory("unit/one", 8192), second = inproc_memory("unit/one", 8192);
  CHECK(first.bytes == second.bytes);
  first.bytes[5] = std::byte{9};
  first = {};
  second = {};
  CHECK(inproc_memory("unit/one", 8192).bytes[5] == std::byte{0});
}

}  // namespace hv::runtime
