// Tests of the rank's end of the agent's socket, against an agent that follows a script.
// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/agent_store.h"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "src/net/socket.h"

using namespace hv;
using namespace hv::rendezvous;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLimit{5000};

// Accepts one rank and talks to it in a thread of its own.
struct Agent {
  explicit Agent(std::function<void(Agent&)> script) : name("@hvrun-test-" + random_hex(8)) {
    REQUIRE(listen_unix(name, &listener).ok());
    thread = std::thread([this, script = std::move(script)] {
      pollfd ready{listener.get(), POLLIN, 0};
      if (::poll(&ready, 1, 5000) != 1) return;
      socket.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      script(*this);
    });
  }
  ~Agent() { thread.join(); }

  // The next message of this type; an empty frame on anything else.
  template <class Message>
  Message expect() {
    Frame frame;
    char bytes[4096];
    while (!parser.next(&frame)) {
      const ssize_t got = ::recv(socket.get(), bytes, sizeof bytes, 0);
      if (got <= 0 || !parser.feed({bytes, static_cast<std::size_t>(got)})) break;
    }
    Message message;
    is_good = is_good && frame.type == static_cast<std::uint8_t>(Message::kType) &&
              decode(frame.payload, &message);
    return message;
  }
  template <class Message>
  void send(const Message& message) {
    send_bytes(encode_frame_of(message));
  }
  void send_bytes(const std::string& bytes) {
    is_good = is_good && ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                             static_cast<ssize_t>(bytes.size());
  }
  void welcome() {
    expect<Join>();
    Welcome hello;
    hello.key[0] = 42;
    send(hello);
  }

  std::string name;
  UniqueFd listener;
  UniqueFd socket;
  FrameParser parser{kMaxPayload};
  std::atomic<bool> is_good{true};
  std::thread thread;
};

std::unique_ptr<AgentStore> join(Agent& agent) {
  std::unique_ptr<AgentStore> store;
  const Status status = AgentStore::join(agent.name, 3, 1, kLimit, &store);
  REQUIRE_MESSAGE(status.ok(), status.message);
  return store;
}

bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 5000) == 1;
}

}  // namespace

TEST_CASE("joining tells rank and epoch and brings the job's key") {
  Join seen;
  JobKey key{};
  {
    Agent agent([&seen](Agent& self) {
      seen = self.expect<Join>();
      Welcome hello;
      hello.key[0] = 42;
      self.send(hello);
    });
    const auto store = join(agent);
    REQUIRE(store->job_key(&key).ok());
  }
  CHECK(seen.protocol == kRankProtocol);
  CHECK(seen.rank == 3);
  CHECK(seen.epoch == 1);
  CHECK(key[0] == 42);
}

TEST_CASE("a refusal is a contract error in the agent's words") {
  Agent agent([](Agent& self) {
    self.expect<Join>();
    self.send(Refused{"rank 3 is not one of mine"});
  });
  std::unique_ptr<AgentStore> store;
  const Status status = AgentStore::join(agent.name, 3, 0, kLimit, &store);
  CHECK(status.code == StatusCode::kContract);
  CHECK(status.message.find("rank 3 is not one of mine") != std::string::npos);
}

TEST_CASE("without an agent joining says what is missing") {
  std::unique_ptr<AgentStore> store;
  const Status status = AgentStore::join("@hvrun-nobody-" + random_hex(8), 0, 0, kLimit, &store);
  CHECK(status.code == StatusCode::kSystem);
  CHECK(status.message.find("hvrun-agent") != std::string::npos);
}

TEST_CASE("an agent that says nothing is not waited for beyond the timeout") {
  Agent agent([](Agent& self) {
    self.expect<Join>();
    self.expect<Goodbye>();  // until the rank closes
  });
  std::unique_ptr<AgentStore> store;
  const Status status = AgentStore::join(agent.name, 0, 0, milliseconds(50), &store);
  CHECK(status.message.find("no answer") != std::string::npos);
}

TEST_CASE("put, fence and get talk as the protocol says") {
  Put put;
  Get get;
  Steps steps;
  Agent agent([&](Agent& self) {
    self.welcome();
    put = self.expect<Put>();
    for (std::uint32_t number = 1; number <= 2; ++number) {
      if (self.expect<Fence>().number == number) self.send(FenceDone{number});
    }
    get = self.expect<Get>();
    self.send(Value{true, std::string("a\0b", 3)});
    self.expect<Get>();
    self.send(Value{false, ""});
    self.expect<Lost>();
    steps = self.expect<Steps>();
    self.expect<Goodbye>();
  });
  {
    const auto store = join(agent);
    CHECK(store->put("key", "value").ok());
    CHECK(store->fence(kLimit).ok());
    CHECK(store->fence(kLimit).ok());
    std::string value;
    CHECK(store->get(7, "key", &value).ok());
    CHECK(value == std::string("a\0b", 3));
    CHECK(store->get(7, "other", &value).code == StatusCode::kPeerLost);
    store->report(PeerLost{2, "silent"});
    store->report(wire::StepTimes{5, 4, 3, 1, 2});
    store->report(Leaving{});
  }
  agent.thread.join();
  agent.thread = std::thread([] {});
  CHECK(agent.is_good);
  CHECK(put.value == "value");
  CHECK(get.rank == 7);
  CHECK(steps.times.steps == 5);
  CHECK(steps.times.data_waits == 2);
}

TEST_CASE("keys and values over the limit are refused before anything is sent") {
  Agent agent([](Agent& self) { self.welcome(); });
  const auto store = join(agent);
  CHECK(store->put(std::string(256, 'k'), "").code == StatusCode::kArgument);
  CHECK(store->put("k", std::string((1 << 20) + 1, 'v')).code == StatusCode::kArgument);
}

TEST_CASE("an event between question and answer is kept, and makes the descriptor readable") {
  Agent agent([](Agent& self) {
    self.welcome();
    self.expect<Get>();
    self.send_bytes(encode_frame_of(Event{5, "ended by signal 9 (Killed)"}) +
                    encode_frame_of(Value{true, "v"}));
    self.expect<Goodbye>();
  });
  const auto store = join(agent);
  std::string value;
  CHECK(store->get(0, "k", &value).ok());
  CHECK(is_readable(store->event_fd()));
  PeerEvent event;
  REQUIRE(store->next_event(&event));
  CHECK(event.rank == 5);
  CHECK(event.reason == "ended by signal 9 (Killed)");
  CHECK_FALSE(store->next_event(&event));
  store->report(Leaving{});
}

TEST_CASE("an event that comes by itself is taken without blocking") {
  Agent agent([](Agent& self) {
    self.welcome();
    self.expect<Put>();
    self.send(Event{1, "ended"});
    self.expect<Goodbye>();
  });
  const auto store = join(agent);
  PeerEvent event;
  CHECK_FALSE(store->next_event(&event));
  CHECK(store->put("k", "v").ok());
  CHECK(is_readable(store->event_fd()));
  CHECK(store->next_event(&event));
  store->report(Leaving{});
}

TEST_CASE("a stop of the whole job comes as events, between others, and ends no fence") {
  Agent agent([](Agent& self) {
    self.welcome();
    self.expect<Fence>();
    self.send(Silence{true});
    self.send(FenceDone{1});
    self.expect<Put>();
    self.send_bytes(encode_frame_of(Event{5, "ended"}) + encode_frame_of(Silence{false}));
    self.expect<Goodbye>();
  });
  const auto store = join(agent);
  CHECK(store->fence(kLimit).ok());
  PeerEvent event;
  REQUIRE(store->next_event(&event));
  CHECK(event.kind == PeerEvent::Kind::kSilenceAllowed);
  CHECK(store->put("k", "v").ok());
  while (!store->next_event(&event)) CHECK(is_readable(store->event_fd()));
  CHECK(event.kind == PeerEvent::Kind::kLost);
  while (!store->next_event(&event)) CHECK(is_readable(store->event_fd()));
  CHECK(event.kind == PeerEvent::Kind::kSilenceOver);
  store->report(Leaving{});
}

TEST_CASE("a fence ends with the loss of a rank, which is named and told once more as an event") {
  Agent agent([](Agent& self) {
    self.welcome();
    self.expect<Fence>();
    self.send(Event{4, "ended with code 1"});
    self.expect<Goodbye>();
  });
  const auto store = join(agent);
  const Status status = store->fence(kLimit);
  CHECK(status.code == StatusCode::kPeerLost);
  CHECK(status.message.find("rank 4 ended with code 1") != std::string::npos);
  PeerEvent event;
  CHECK(store->next_event(&event));
  store->report(Leaving{});
}

TEST_CASE(
    "an agent that goes, or sends rubbish, ends every call with that reason, not with a hang") {
  for (const std::string& bytes : {std::string(), std::string(5, '\0'), encode_frame(200, "what"),
                                   encode_frame(static_cast<std::uint8_t>(Type::kEvent), "x"),
                                   encode_frame(static_cast<std::uint8_t>(Type::kSilence), "")}) {
    Agent agent([&bytes](Agent& self) {
      self.welcome();
      self.expect<Fence>();
      if (!bytes.empty()) self.send_bytes(bytes);
      ::shutdown(self.socket.get(), SHUT_WR);
    });
    const auto store = join(agent);
    CHECK(store->fence(kLimit).code == StatusCode::kSystem);
    CHECK(store->put("k", "v").message.find("out of reach") != std::string::npos);
    PeerEvent event;
    CHECK_FALSE(store->next_event(&event));
  }
}

TEST_CASE("an agent that does not read holds up no step times, and hears whole frames later") {
  std::atomic<bool> are_told{false};
  std::uint64_t most = 0;
  bool is_in_order = true;
  {
    Agent agent([&](Agent& self) {
      self.welcome();
      while (!are_told) std::this_thread::yield();
      Frame frame;
      char bytes[4096];
      for (;;) {
        const ssize_t got = ::recv(self.socket.get(), bytes, sizeof bytes, 0);
        if (got <= 0 || !self.parser.feed({bytes, static_cast<std::size_t>(got)})) break;
        while (self.parser.next(&frame)) {
          Steps steps;
          is_in_order = is_in_order && decode(frame.payload, &steps) && steps.times.steps > most;
          most = steps.times.steps;
        }
      }
    });
    const auto store = join(agent);
    const TimePoint begun = now();
    for (std::uint64_t i = 1; i <= 50'000; ++i) store->report(wire::StepTimes{i, i, 0, 0, 0});
    CHECK(now() - begun < kLimit);  // one that waits takes as long as that, at the first
    are_told = true;
  }
  CHECK(is_in_order);
  CHECK(most > 0);
  CHECK(most < 50'000);
}
