// The bell of a rank that waits for sockets, too: alone on its host, and beside others.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/socket_bell.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/transport/inproc/inproc_source.h"

namespace hv::runtime {
namespace {

TimePoint long_from_now() { return now() + std::chrono::hours(1); }

// Ranks of one host, all in this process; the first has the bell, and a pipe for a socket.
struct BellHost {
  explicit BellHost(int ranks) {
    const HostGeometry geometry{ranks, 4096};
    for (int r = 0; r < ranks; ++r)
      of.push_back(std::make_unique<HostMemory>(
          inproc_memory("socket_bell_test", geometry.total_bytes()), geometry, r));
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    from.reset(ends[0]);
    to.reset(ends[1]);
    bell = std::make_unique<SocketBell>(*of.front(), io, from.get());
    io.watch_when_armed(from.get());
    io.start();
  }
  void arrive() { REQUIRE(::write(to.get(), "x", 1) == 1); }
  void take_arrival() {
    char byte;
    REQUIRE(::read(from.get(), &byte, 1) == 1);
  }

  UniqueFd from, to;
  std::vector<std::unique_ptr<HostMemory>> of;
  std::unique_ptr<SocketBell> bell;
  IoThread io{[this] { bell->ring(); }};
};

}  // namespace

TEST_CASE("a bell wakes for its socket, for a ring from before the sleep, and at the deadline") {
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    BellHost host(ranks);
    SocketBell& bell = *host.bell;
    host.arrive();
    bell.wait(bell.value(), long_from_now());
    host.take_arrival();
    const std::uint32_t seen = bell.value();
    bell.ring();
    bell.wait(seen, long_from_now());
    const TimePoint start = now();
    bell.wait(bell.value(), start);  // may be early, too
    bell.wait(bell.value(), start + std::chrono::milliseconds(2));
  }
}

TEST_CASE("with sleepers at sockets and at the futex word no ring is lost") {
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    BellHost host(ranks);
    SocketBell& bell = *host.bell;
    constexpr int kTurns = 3000;
    std::atomic<int> posted{0}, seen_by[2] = {{0}, {0}};
    const TimePoint deadline = now() + std::chrono::minutes(1);
    const auto sleeper = [&](int number) {
      while (seen_by[number] < kTurns && now() < deadline) {
        const std::uint32_t seen = bell.value();
        seen_by[number] = posted.load();
        if (seen_by[number] < kTurns) bell.wait(seen, deadline);
      }
    };
    std::thread first(sleeper, 0), second(sleeper, 1);
    for (int turn = 1; turn <= kTurns && now() < deadline; ++turn) {
      posted = turn;
      if (ranks > 1 && turn % 2 == 0) {
        host.of[1]->ring(0);
      } else {
        bell.ring();
      }
      // Now and then both are waited for, so that they sleep.
      while (turn % 8 == 0 && (seen_by[0] < turn || seen_by[1] < turn) && now() < deadline)
        std::this_thread::yield();
    }
    first.join();
    second.join();
    CHECK(seen_by[0].load() == kTurns);
    CHECK(seen_by[1].load() == kTurns);
  }
}

}  // namespace hv::runtime
