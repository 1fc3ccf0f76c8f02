// Control messages: any size, in order, over pipes that hold little; and what a peer may not send.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <thread>

#include "runtime/transport/inproc/inproc_source.h"
#include "runtime/transport/message_router.h"
#include "runtime/transport/shm/shm_transport.h"
#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

// Two ranks of a host, both in this thread.
struct Pair {
  Pair() {
    HostGeometry geometry{2, 4096};
    for (int r = 0; r < 2; ++r) {
      memory[r] = std::make_unique<HostMemory>(inproc_memory("router", geometry.total_bytes()),
                                               geometry, r);
      transport[r] = std::make_unique<ShmTransport>(*memory[r], std::vector<int>{0, 1});
      router[r] = std::make_unique<MessageRouter>(r, 2, [this](int rank, const std::string& what) {
        garbage = std::to_string(rank) + " " + what;
      });
      router[r]->add(*transport[r]);
    }
  }
  std::unique_ptr<HostMemory> memory[2];
  std::unique_ptr<ShmTransport> transport[2];
  std::unique_ptr<MessageRouter> router[2];
  std::string garbage;
};

}  // namespace

TEST_CASE(
    "messages of any size arrive whole and in order, through a pipe much smaller than they are") {
  Pair pair;
  std::vector<std::string> sent;
  for (const std::size_t size : {0, 1, 5, 30000, 40000, 1000000, 3, 0})
    sent.push_back(std::string(size, static_cast<char>('a' + sent.size())));
  for (const std::string& message : sent)
    REQUIRE(pair.router[0]->send(1, message.data(), message.size()).ok());
  std::vector<std::string> received;
  for (int turn = 0; turn < 10000 && received.size() < sent.size(); ++turn) {
    int from = -1;
    std::string message;
    while (pair.router[1]->receive(&from, &message)) {
      CHECK(from == 0);
      received.push_back(message);
    }
    pair.router[0]->progress();
  }
  CHECK(received == sent);
  CHECK_FALSE(pair.router[0]->has_unsent());
}

TEST_CASE("a message to oneself arrives") {
  Pair pair;
  REQUIRE(pair.router[0]->send(0, "me", 2).ok());
  int from = -1;
  std::string message;
  CHECK(pair.router[0]->receive(&from, &message));
  CHECK(from == 0);
  CHECK(message == "me");
  CHECK_FALSE(pair.router[0]->receive(&from, &message));
}

TEST_CASE("a length beyond the limit is told as garbage and nothing is kept of it") {
  Pair pair;
  const std::uint32_t length = 0xffffffff;
  pair.transport[0]->channel(1, kControlLane).write(&length, sizeof length);
  pair.router[1]->progress();
  CHECK(pair.garbage == "0 sent a control message of an impossible length");
}

TEST_CASE("after a cut every send fails with the words of the cut, and nothing waits any more") {
  Pair pair;
  const std::string large(200000, 'x');
  REQUIRE(pair.router[0]->send(1, large.data(), large.size()).ok());
  CHECK(pair.router[0]->has_unsent());
  pair.router[0]->cut_off(1, {StatusCode::kPeerLost, "rank 1 ended"});
  CHECK_FALSE(pair.router[0]->has_unsent());
  CHECK(pair.router[0]->send(1, "x", 1).message == "rank 1 ended");
}

TEST_CASE("a goodbye goes out after what waits, or once that is dropped") {
  for (const bool is_dropped : {false, true}) {
    CAPTURE(is_dropped);
    Pair pair;
    const std::string large(200000, 'x');
    REQUIRE(pair.router[0]->send(1, large.data(), large.size()).ok());
    pair.router[0]->say_goodbye();
    CHECK_FALSE(pair.router[0]->has_said_goodbye());
    CHECK(pair.transport[1]->state(0) == PeerState::kPresent);
    if (is_dropped) pair.router[0]->drop_unsent();
    int from = -1;
    std::string message;
    for (int turn = 0; turn < 1000 && !pair.router[0]->has_said_goodbye(); ++turn) {
      CHECK_FALSE(pair.router[1]->receive(&from, &message));
      pair.router[0]->progress();
    }
    CHECK(pair.transport[1]->state(0) == PeerState::kLeft);
    CHECK(pair.router[1]->receive(&from, &message) == !is_dropped);
    CHECK(message == (is_dropped ? "" : large));
  }
}

// The contract of every transport, over whole fabrics: each rank sends numbered messages to each.
TEST_CASE("every rank hears every other in order over inproc, shm and tcp") {
  for (const RankKind kind : {RankKind::kThreadsOneMapping, RankKind::kThreadsMemfd}) {
    for (const JobShape& shape : {JobShape{3}, JobShape{1, 1}, JobShape{2, 2}, JobShape{2, 1, 3}}) {
      RunOptions options;
      options.kind = kind;
      run_ranks(shape, options, [](RankContext& context) {
        constexpr int kMessages = 60;
        std::vector<int> next(static_cast<std::size_t>(context.size), 0);
        int heard = 0, told = 0;
        while (heard < kMessages * context.size || told < kMessages) {
          const std::uint32_t seen = context.fabric.doorbell().value();
          if (told < kMessages) {
            std::string text(static_cast<std::size_t>(told * told * 50), 'm');
            text += std::to_string(told);
            for (int to = 0; to < context.size; ++to)
              require(context.fabric.messenger().send(to, text.data(), text.size()).ok(), "send");
            ++told;
          }
          context.fabric.progress();
          int from = -1;
          std::string message;
          bool any = false;
          while (context.fabric.messenger().receive(&from, &message)) {
            const int number = next[static_cast<std::size_t>(from)]++;
            const std::string tail = std::to_string(number);
            require(message.size() == static_cast<std::size_t>(number * number * 50) + tail.size(),
                    "size");
            require(message.substr(message.size() - tail.size()) == tail, "order");
            ++heard;
            any = true;
          }
          context.at("heard " + std::to_string(heard) + " told " + std::to_string(told));
          if (!any && told == kMessages && heard < kMessages * context.size)
            context.fabric.doorbell().wait(seen, now() + std::chrono::seconds(5));
        }
      });
    }
  }
}

}  // namespace hv::runtime
