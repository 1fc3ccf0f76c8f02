// The parts of a writer thread: queue, thread, reports.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cerrno>
#include <csignal>
#include <future>
#include <thread>

#include "launcher/output/reports.h"
#include "launcher/output/work_queue.h"
#include "launcher/output/writer_thread.h"
#include "tests/unit/output/room_fixture.h"

using namespace std::chrono_literals;
using namespace hv::launcher;

TEST_CASE("a queue gives all there is at once, in order") {
  WorkQueue<int> queue;
  queue.push(1);
  queue.push(2);
  std::vector<int> items;
  CHECK(queue.take_all(items));
  CHECK(items == std::vector<int>{1, 2});
}

TEST_CASE("a queue's taker returns with nothing at its limit") {
  WorkQueue<int> queue;
  std::vector<int> items{7};
  CHECK(queue.take_all(items, hv::now()));
  CHECK(items.empty());
}

TEST_CASE("a closed queue gives what is left, then says that it is over, and takes nothing") {
  WorkQueue<int> queue;
  queue.push(1);
  queue.close();
  queue.push(2);
  std::vector<int> items;
  CHECK(queue.take_all(items));
  CHECK(items == std::vector<int>{1});
  CHECK_FALSE(queue.take_all(items));
}

TEST_CASE("a queue wakes its taker for everything that many threads push") {
  WorkQueue<int> queue;
  constexpr int kEach = 5000;
  std::vector<std::thread> senders;
  for (int sender = 0; sender < 3; ++sender) {
    senders.emplace_back([&queue] {
      for (int i = 0; i < kEach; ++i) queue.push(i);
    });
  }
  std::vector<int> items;
  for (std::size_t taken = 0; taken < 3 * kEach; taken += items.size())
    REQUIRE(queue.take_all(items));
  for (std::thread& sender : senders) sender.join();
}

TEST_CASE("a writer thread can be waited for within a limit") {
  std::promise<void> go;
  WriterThread thread([&go] { go.get_future().wait(); });
  CHECK_FALSE(thread.join(hv::now() + 1ms));
  go.set_value();
  CHECK(thread.join());
  CHECK(thread.join(hv::now()));
}

TEST_CASE("a writer thread lets go of what it shares before it counts as ended") {
  auto shared = std::make_shared<int>(1);
  WriterThread thread([shared] {});
  CHECK(thread.join());
  CHECK(shared.use_count() == 1);
}

TEST_CASE("a writer thread blocks all signals, its maker's mask stays as it was") {
  sigset_t before;
  sigset_t after;
  sigset_t inside;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  WriterThread thread([&inside] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); });
  thread.join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGTTOU, SIGHUP}) {
    CHECK(sigismember(&inside, signal) == 1);
    CHECK(sigismember(&after, signal) == sigismember(&before, signal));
  }
}

TEST_CASE("reports add up what a rank's chunks held until they are sent") {
  std::map<std::uint32_t, std::size_t> written;
  int calls = 0;
  const auto reports = std::make_shared<Reports>(
      [&](std::uint32_t rank, std::size_t bytes) {
        written[rank] += bytes;
        ++calls;
      },
      [](const std::string&, int, int) {});
  {
    const Shipment one(chunk(1, 1, "12345"), reports), two(chunk(1, 2, "678"), reports),
        empty(chunk(2, 1, ""), reports);
  }
  CHECK(calls == 0);
  reports->send();
  CHECK(calls == 1);
  CHECK(written[1] == 8);
  reports->send();
  CHECK(calls == 1);
}

TEST_CASE("a chunk is reported when the last of its sinks lets go of it") {
  std::size_t written = 0;
  const auto reports =
      std::make_shared<Reports>([&](std::uint32_t, std::size_t bytes) { written += bytes; },
                                [](const std::string&, int, int) {});
  SharedShipment console = std::make_shared<const Shipment>(chunk(0, 1, "abc"), reports);
  SharedShipment file = console;
  console.reset();
  reports->send();
  CHECK(written == 0);
  file.reset();
  reports->send();
  CHECK(written == 3);
}

TEST_CASE("silenced reports call nobody") {
  int calls = 0;
  Reports reports([&](std::uint32_t, std::size_t) { ++calls; },
                  [&](const std::string&, int, int) { ++calls; });
  reports.note_written(0, 5);
  reports.silence();
  reports.send();
  reports.tell_broken("write", EPIPE, 1);
  CHECK(calls == 0);
}
