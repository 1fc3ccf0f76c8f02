// Tests of the engine's step, two ranks in one thread.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/engine.h"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>

#include "runtime/engine/execution/pair_transfers.h"
#include "runtime/transport/transport.h"
#include "src/base/log.h"
#include "tests/fakes/fake_backend.h"
#include "tests/fakes/fake_fabric.h"
#include "tests/fakes/landing_queue.h"
#include "tests/unit/engine/tensor.h"

using namespace hv;
using namespace hv::runtime;

namespace {

struct ThrowingPlanBackend : FakeBackend {
  std::unique_ptr<Collective> start(CollectiveRequest request) override {
    if (throws) throws();
    return FakeBackend::start(std::move(request));
  }
  std::function<void()> throws;
};

struct EnginePair {
  FakeWires wires{2};
  FakeFabric fabrics[2]{{wires, 0}, {wires, 1}};
  ThrowingPlanBackend backends[2];
  Engine engines[2]{{{}, fabrics[0], {{&backends[0]}}}, {{}, fabrics[1], {{&backends[1]}}}};

  void run() {
    for (int i = 0; i < 10; ++i) {
      for (Engine& engine : engines) engine.step(now());
    }
  }
};

// The lane from another rank: bytes land in it as a test says, and none goes out.
struct LandingLane : Channel {
  std::size_t writable() const override { return 0; }
  void write(const void*, std::size_t) override {}
  std::span<const std::byte> readable() const override { return in.waiting(); }
  void consume(std::size_t size) override { in.pop(size); }
  void shrink() override {}
  std::size_t receive(std::byte* into, std::size_t size) override { return in.receive(into, size); }
  void withdraw() noexcept override {
    if (in.has_landing()) before_withdrawal();
    in.withdraw();
  }
  LandingQueue in;
  std::function<void()> before_withdrawal;
};

struct LandingFabric : FakeFabric, DataPlane {
  using FakeFabric::FakeFabric;
  const Topology& topology() const override { return FakeFabric::topology(); }
  Status health() const override { return FakeFabric::health(); }
  DataPlane* data_plane() override { return this; }
  SlotRings& host() override { throw std::logic_error("not asked"); }
  Channel& channel(int, int) override { return lane; }
  bool is_healthy() const override { return health().ok(); }
  LandingLane lane;
};

OperationPtr between_two(CollectiveKind kind, int peer, void* data, std::int64_t bytes) {
  const OperationPtr operation = named_operation("t");
  operation->tag = "t";
  operation->description.kind = kind;
  operation->description.type = ElementType::kUint8;
  operation->description.shape = {bytes};
  operation->description.root = peer;
  operation->input = operation->output = static_cast<std::byte*>(data);
  return operation;
}

}  // namespace

TEST_CASE("a tensor is done on both ranks once both have it and the backend is through") {
  EnginePair pair;
  const OperationPtr first = named_operation("w"), second = named_operation("w");
  REQUIRE(pair.engines[0].enqueue(first).ok());
  CHECK(pair.engines[0].has_work());
  pair.run();
  CHECK_FALSE(first->is_done);
  pair.backends[0].progress = Progress::kPending;
  REQUIRE(pair.engines[1].enqueue(second).ok());
  pair.run();
  CHECK(second->is_done);
  CHECK_FALSE(first->is_done);
  pair.backends[0].progress = Progress::kDone;
  pair.run();
  CHECK(first->is_done);
  CHECK_FALSE(pair.engines[0].has_work());
}

TEST_CASE("a step without anything to do says so") {
  EnginePair pair;
  pair.run();
  const Engine::Step step = pair.engines[0].step(now());
  CHECK_FALSE(step.has_progressed);
  CHECK_FALSE(step.has_completed);
  CHECK(pair.engines[0].next_look() == TimePoint::max());
}

TEST_CASE("a failed collective ends the engine, and the fabric knows") {
  EnginePair pair;
  const OperationPtr failing = named_operation("w"), waiting = named_operation("v"),
                     other = named_operation("w");
  pair.backends[0].progress = Progress::kFailed;
  pair.backends[0].failure = {StatusCode::kSystem, "the backend broke"};
  REQUIRE(pair.engines[0].enqueue(waiting).ok());
  REQUIRE(pair.engines[0].enqueue(failing).ok());
  REQUIRE(pair.engines[1].enqueue(other).ok());
  pair.run();
  CHECK(failing->outcome.code == StatusCode::kSystem);
  CHECK(waiting->outcome.message == "tensor 'v': the backend broke");
  CHECK(pair.engines[0].is_finished());
  CHECK_FALSE(pair.fabrics[0].health().ok());
  CHECK(pair.engines[0].enqueue(named_operation("later")).code == StatusCode::kSystem);
  const Status later = pair.engines[1].enqueue(named_operation("later"));
  CHECK(later.code == StatusCode::kPeerLost);
  CHECK(later.message.find("rank 0 gave up: the backend broke") != std::string::npos);
}

TEST_CASE(
    "an exception under way ends the engine on every rank, with words, and waits for nobody") {
  struct Case {
    std::function<void()> thrown;
    StatusCode code;
    std::string words;
  };
  for (const Case& c : {Case{[] { throw std::bad_alloc(); }, StatusCode::kMemory, "out of memory"},
                        Case{[] { throw std::runtime_error("no such lane"); }, StatusCode::kSystem,
                             "no such lane"}}) {
    EnginePair pair;
    pair.backends[0].throws = c.thrown;
    const OperationPtr own = named_operation("w"), waiting = named_operation("v"),
                       other = named_operation("w");
    REQUIRE(pair.engines[0].enqueue(waiting).ok());
    REQUIRE(pair.engines[0].enqueue(own).ok());
    REQUIRE(pair.engines[1].enqueue(other).ok());
    pair.run();
    for (const OperationPtr& operation : {own, waiting}) {
      CHECK(operation->is_done);
      CHECK(operation->outcome.code == c.code);
      CHECK(operation->outcome.message.find(c.words) != std::string::npos);
    }
    CHECK(pair.engines[0].has_failed());
    CHECK_FALSE(pair.engines[0].has_work());
    CHECK(pair.engines[0].enqueue(named_operation("later")).code == c.code);
    const Status later = pair.engines[1].enqueue(named_operation("later"));
    CHECK(later.code == StatusCode::kPeerLost);
    CHECK(later.message.find("rank 0 gave up") != std::string::npos);
    CHECK(later.message.find(c.words) != std::string::npos);
  }
}

TEST_CASE("a message that the fabric refuses ends the engine in words") {
  struct Refusing : FakeFabric {
    using FakeFabric::FakeFabric;
    Status send(int rank, const void* bytes, std::size_t size) override {
      if (is_refusing) return {StatusCode::kSystem, "too large"};
      return FakeFabric::send(rank, bytes, size);
    }
    bool is_refusing = true;
  };
  FakeWires wires{2};
  Refusing fabric{wires, 1};
  FakeBackend backend;
  Engine engine{{}, fabric, {{&backend}}};
  const OperationPtr pending = named_operation("w");
  REQUIRE(engine.enqueue(pending).ok());
  for (int i = 0; i < 3; ++i) engine.step(now());
  CHECK(pending->outcome.code == StatusCode::kSystem);
  CHECK(pending->outcome.message == "tensor 'w': too large");
  CHECK(engine.has_failed());
}

TEST_CASE("a failed engine need not be looked at, whatever waited when it failed") {
  EnginePair pair;
  REQUIRE(pair.engines[0].enqueue(named_operation("w")).ok());
  pair.run();
  CHECK(pair.engines[0].next_look() < TimePoint::max());  // somebody might stall
  pair.fabrics[0].mark_lost(1, {StatusCode::kPeerLost, "rank 1 is lost"});
  pair.run();
  CHECK(pair.engines[0].next_look() == TimePoint::max());
}

TEST_CASE("who learns of a loss first tells the others, in its words") {
  EnginePair pair;
  const OperationPtr pending = named_operation("w");
  REQUIRE(pair.engines[1].enqueue(pending).ok());
  pair.run();
  pair.fabrics[0].mark_lost(7, {StatusCode::kPeerLost, "rank 7 ended by signal 9 (Killed)"});
  pair.run();
  CHECK(pending->outcome.code == StatusCode::kPeerLost);
  CHECK(pending->outcome.message == "tensor 'w': rank 7 ended by signal 9 (Killed)");
  CHECK(pair.fabrics[1].health().message == "rank 7 ended by signal 9 (Killed)");
}

TEST_CASE("a peer that sends rubbish is as good as lost") {
  EnginePair pair;
  const OperationPtr pending = named_operation("w");
  REQUIRE(pair.engines[0].enqueue(pending).ok());
  pair.wires.inboxes[0].emplace_back(1, "rubbish");
  pair.run();
  CHECK(pending->outcome.code == StatusCode::kPeerLost);
  CHECK(pending->outcome.message.find("rank 1 sent") != std::string::npos);
}

TEST_CASE("leaving waits for what has been started, and refuses the rest") {
  EnginePair pair;
  const OperationPtr started[2] = {named_operation("w"), named_operation("w")};
  pair.backends[0].progress = Progress::kPending;
  for (int rank = 0; rank < 2; ++rank) REQUIRE(pair.engines[rank].enqueue(started[rank]).ok());
  pair.run();
  const OperationPtr pending = named_operation("v");
  REQUIRE(pair.engines[0].enqueue(pending).ok());
  pair.engines[1].request_leave();
  pair.run();
  CHECK(pending->outcome.code == StatusCode::kShutdown);
  CHECK(pending->outcome.message.find(
            "rank 1 has shut down: it has called hvd.shutdown() or hvrun_shutdown, or its program "
            "has ended") != std::string::npos);
  CHECK(pending->outcome.message.find("hvrun_join") != std::string::npos);
  CHECK_FALSE(started[0]->is_done);
  CHECK_FALSE(pair.engines[0].is_finished());
  pair.backends[0].progress = Progress::kDone;
  pair.run();
  CHECK(started[0]->outcome.ok());
  CHECK(pair.engines[0].is_finished());
  CHECK(pair.engines[1].is_finished());
}

TEST_CASE("an abort ends what runs") {
  EnginePair pair;
  const OperationPtr started[2] = {named_operation("w"), named_operation("w")};
  pair.backends[0].progress = Progress::kPending;
  for (int rank = 0; rank < 2; ++rank) REQUIRE(pair.engines[rank].enqueue(started[rank]).ok());
  pair.run();
  pair.engines[0].request_abort();
  pair.run();
  CHECK(started[0]->outcome.code == StatusCode::kShutdown);
  CHECK(pair.engines[0].is_finished());
  CHECK(pair.backends[0].under_way == 0);
}

TEST_CASE("a stop of the process is no stall, however long, but the time in which it runs may be") {
  using std::chrono::seconds;
  EngineConfig config;
  config.negotiation.stall_end = seconds(60);
  FakeWires wires{2};
  FakeFabric fabric{wires, 0};
  FakeBackend backend;
  Engine engine{config, fabric, {{&backend}}};
  const OperationPtr receive = named_operation("ours");
  receive->description.kind = CollectiveKind::kReceive;
  receive->tag = "ours";
  receive->description.root = 1;
  const OperationPtr waits = named_operation("w");
  for (const OperationPtr& operation : {receive, waits}) REQUIRE(engine.enqueue(operation).ok());
  TimePoint time = now();
  for (int i = 0; i < 10; ++i) engine.step(time += std::chrono::minutes(2));
  CHECK_FALSE(receive->is_done);
  CHECK_FALSE(waits->is_done);
  for (int i = 0; i < 70; ++i) engine.step(time += seconds(1));
  CHECK(receive->outcome.code == StatusCode::kStalled);
  CHECK(waits->outcome.code == StatusCode::kStalled);
}

// The number of a transfer that is offered now: they ascend in all of the process.
static std::uint64_t next_transfer() {
  PairTransfers other{nullptr, Duration::zero()};
  char byte = 0;
  other.submit(between_two(CollectiveKind::kSend, 1, &byte, 1), 1, now());
  const std::string offer = other.take_messages().at(0).second;
  std::uint64_t number = 0;
  std::memcpy(&number, offer.data() + 2 * sizeof(std::uint32_t) + 1, sizeof number);
  return number + 1;
}

// Whoever sees that it has ended may free its memory.
TEST_CASE("a receive ends after its memory is no connection's any more") {
  for (const bool leaves : {true, false}) {
    FakeWires wires{2};
    LandingFabric sender_fabric{wires, 0}, fabric{wires, 1};
    FakeBackend backends[2];
    Engine sender{{}, sender_fabric, {{&backends[0]}}}, engine{{}, fabric, {{&backends[1]}}};
    std::string memory(100, ' '), sent(100, 's');
    const OperationPtr receive = between_two(CollectiveKind::kReceive, 0, memory.data(), 100);
    REQUIRE(engine.enqueue(receive).ok());
    REQUIRE(sender.enqueue(between_two(CollectiveKind::kSend, 1, sent.data(), 100)).ok());
    const auto run = [&] {
      for (int i = 0; i < 10; ++i) {
        engine.step(now());
        if (fabric.lane.in.size() == 0 && !sender.is_finished()) sender.step(now());
      }
    };
    int withdrawals = 0;
    fabric.lane.before_withdrawal = [&] {
      ++withdrawals;
      CHECK_FALSE(receive->is_done);
    };
    const std::uint64_t header[2] = {next_transfer(), 100};
    sender.step(now());  // the offer
    engine.step(now());
    fabric.lane.in.push(header, sizeof header);
    engine.step(now());
    fabric.lane.in.push(sent.data(), 50);
    CHECK(memory == std::string(50, 's') + std::string(50, ' '));
    if (leaves) {
      engine.request_leave();
    } else {
      engine.request_abort();
    }
    run();
    CHECK(withdrawals == 1);
    CHECK(receive->is_done);
    CHECK(receive->outcome.code == StatusCode::kShutdown);
  }
}

TEST_CASE("for whom the others waited is told at the end, of a job that fails too") {
  static std::string text;
  text.clear();
  set_log_sink([](const std::string& line) { text += line; });
  FakeWires wires{2};
  FakeFabric fabric{wires, 0};
  FakeBackend backend;
  Engine engine{{}, fabric, {{&backend}}};
  REQUIRE(engine.enqueue(named_operation("w")).ok());
  TimePoint time = now();
  for (int i = 0; i < 10; ++i) engine.step(time += std::chrono::seconds(1));
  CHECK(text.find("waited") == std::string::npos);
  engine.request_abort();
  engine.step(time);
  set_log_sink(nullptr);
  CHECK(engine.is_finished());
  CHECK(text.find("tensors waited 9 s of 9 s for the last rank to have them: rank 1 9 s") !=
        std::string::npos);
}
