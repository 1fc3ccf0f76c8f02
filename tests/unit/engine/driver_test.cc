// The driver with an engine that breaks: nobody is left waiting for the seat.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/driver.h"

#include <doctest/doctest.h>

#include <new>

#include "tests/fakes/fake_backend.h"
#include "tests/fakes/fake_fabric.h"
#include "tests/unit/engine/tensor.h"

using namespace hv;
using namespace hv::runtime;

namespace {

struct ThrowingBackend : FakeBackend {
  std::unique_ptr<Collective> start(CollectiveRequest) override { throw std::bad_alloc(); }
};

// One rank alone.
template <class ItsFabric, class ItsBackend>
struct Alone {
  FakeWires wires{1};
  ItsFabric fabric{wires, 0};
  ItsBackend backend;
  Engine engine{{}, fabric, {{&backend}}};
  Driver driver{engine, fabric, {}};
};
using DriverJob = Alone<FakeFabric, ThrowingBackend>;

// Its goodbye does not fit into the sockets.
struct SlowFabric : FakeFabric {
  using FakeFabric::FakeFabric;
  void say_goodbye() override { unsent = 3; }
  void progress() override {
    ++looks;
    if (unsent > 0 && moves) --unsent;
  }
  bool has_unsent() const override { return unsent > 0; }
  std::atomic<int> unsent{0}, looks{0};
  std::atomic<bool> moves{true};
};

struct SlowEnd : Alone<SlowFabric, FakeBackend> {
  void leave() {
    engine.request_leave();
    driver.wake();
    const TimePoint deadline = now() + std::chrono::seconds(20);
    while (!engine.is_finished() && now() < deadline) std::this_thread::yield();
    REQUIRE(engine.is_finished());
  }
};

}  // namespace

TEST_CASE("what a finished engine has not sent yet goes out although nobody calls") {
  SlowEnd job;
  job.leave();
  const TimePoint deadline = now() + std::chrono::seconds(20);
  while (job.fabric.unsent > 0 && now() < deadline) std::this_thread::yield();
  CHECK(job.fabric.unsent == 0);
}

TEST_CASE("whoever has waited for the engine's end has the fabric alone") {
  SlowEnd job;
  job.fabric.moves = false;
  job.leave();
  CHECK(job.driver.wait_until_finished(now() + std::chrono::seconds(20)));
  CHECK(job.fabric.unsent == 3);
  const int looks = job.fabric.looks;
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  CHECK(job.fabric.looks == looks);
}

TEST_CASE("an exception in the thread that drives ends every wait, and leaves the seat free") {
  DriverJob job;
  const OperationPtr operations[] = {named_operation("a"), named_operation("b"),
                                     named_operation("c")};
  std::vector<std::thread> waiters;
  std::atomic<int> memory_errors{0};
  for (const OperationPtr& operation : operations) {
    waiters.emplace_back([&job, &memory_errors, operation] {
      const Status added = job.engine.enqueue(operation);
      if (added.ok()) job.driver.wait(operation->is_done, now() + std::chrono::seconds(20));
      const Status& outcome = added.ok() ? operation->outcome : added;
      memory_errors += outcome.code == StatusCode::kMemory;
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
  CHECK(memory_errors == 3);
  CHECK(job.driver.wait_until_finished(now() + std::chrono::seconds(20)));
}

TEST_CASE("an exception in the engine thread ends what nobody waits for") {
  DriverJob job;
  const OperationPtr operation = named_operation("w");
  REQUIRE(job.engine.enqueue(operation).ok());
  job.driver.wake();
  const TimePoint deadline = now() + std::chrono::seconds(20);
  while (!operation->is_done && now() < deadline) std::this_thread::yield();
  REQUIRE(operation->is_done);
  CHECK(operation->outcome.code == StatusCode::kMemory);
}
