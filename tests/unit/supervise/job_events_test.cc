// Tests of launcher/supervise/events/job_events.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/events/job_events.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <map>
#include <thread>
#include <vector>

using namespace hv::launcher;

TEST_CASE("events are dispatched in order, those before the start too") {
  boost::asio::io_context io;
  JobEvents events(io.get_executor());
  std::vector<int> seen;
  int idle = 0;
  events.add(SignalReceived{1});
  events.add(SignalReceived{2});
  CHECK(io.poll() == 0);
  io.restart();
  events.start(
      [&](const JobEvent& event) {
        seen.push_back(std::get<SignalReceived>(event).signal);
        if (seen.size() == 1) events.add(SignalReceived{3});  // added by a handler: comes last
      },
      [&idle] { ++idle; });
  io.run();
  CHECK(seen == std::vector<int>{1, 2, 3});
  CHECK(idle == 2);
}

TEST_CASE("events of several threads all arrive, in order for each thread") {
  constexpr std::uint32_t kThreads = 4, kEvents = 1000;
  boost::asio::io_context io;
  auto work = boost::asio::make_work_guard(io);
  JobEvents events(io.get_executor());
  std::map<std::uint32_t, std::size_t> next;
  std::size_t seen = 0;
  bool is_ordered = true;
  events.start(
      [&](const JobEvent& event) {
        const auto& written = std::get<OutputWritten>(event);
        is_ordered = is_ordered && written.bytes == next[written.rank]++;
        if (++seen == kThreads * kEvents) work.reset();
      },
      [] {});
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&events, thread] {
      for (std::size_t i = 0; i < kEvents; ++i) events.add(OutputWritten{thread, i});
    });
  io.run();
  for (std::thread& thread : threads) thread.join();
  CHECK(seen == kThreads * kEvents);
  CHECK(is_ordered);
}
