// Tests of the tensor queue.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tensor_queue.h"

#include <doctest/doctest.h>

#include <thread>

using namespace hv;
using namespace hv::runtime;

namespace {

OperationPtr named(const std::string& name) {
  auto operation = std::make_shared<Operation>();
  operation->name = name;
  return operation;
}

}  // namespace

TEST_CASE("what was added comes out once, in order") {
  TensorQueue queue;
  CHECK_FALSE(queue.has_new());
  REQUIRE(queue.add(named("b")).ok());
  REQUIRE(queue.add(named("a")).ok());
  CHECK(queue.has_new());
  const auto taken = queue.take_new();
  REQUIRE(taken.size() == 2);
  CHECK(taken[0]->name == "b");
  CHECK(queue.take_new().empty());
  CHECK_FALSE(queue.empty());
}

TEST_CASE("a name in flight is refused until it is complete") {
  TensorQueue queue;
  const OperationPtr first = named("w");
  REQUIRE(queue.add(first).ok());
  const Status twice = queue.add(named("w"));
  CHECK(twice.code == StatusCode::kDuplicate);
  CHECK(twice.message.find("'w'") != std::string::npos);
  queue.complete(first, {StatusCode::kMismatch, "why"});
  CHECK(first->is_done);
  CHECK(first->outcome.message == "why");
  CHECK(queue.empty());
  CHECK(queue.add(named("w")).ok());
}

TEST_CASE("a closed queue answers with the first reason and still knows what is in flight") {
  TensorQueue queue;
  const OperationPtr before = named("before");
  REQUIRE(queue.add(before).ok());
  queue.close({StatusCode::kPeerLost, "rank 2 ended"});
  queue.close({StatusCode::kShutdown, "shut down"});
  const Status refused = queue.add(named("after"));
  CHECK(refused.code == StatusCode::kPeerLost);
  CHECK(refused.message == "tensor 'after': rank 2 ended");
  CHECK(queue.in_flight().size() == 1);
  CHECK(queue.find("before") == before);
  CHECK(queue.find("after") == nullptr);
}

TEST_CASE("failing all completes everything in flight, taken or not, with its name in the words") {
  TensorQueue queue;
  const OperationPtr taken = named("taken"), fresh = named("fresh");
  REQUIRE(queue.add(taken).ok());
  (void)queue.take_new();
  REQUIRE(queue.add(fresh).ok());
  queue.fail_all({StatusCode::kMemory, "out of memory"});
  CHECK(queue.empty());
  CHECK(queue.in_flight().empty());
  CHECK(taken->outcome.message == "tensor 'taken': out of memory");
  CHECK(fresh->outcome.code == StatusCode::kMemory);
  CHECK(fresh->is_done);
}

TEST_CASE("whoever sees an operation done may use its name at once") {
  TensorQueue queue;
  std::thread completer([&] {
    for (int i = 0; i < 2000; ++i) {
      std::vector<OperationPtr> taken;
      while ((taken = queue.take_new()).empty()) std::this_thread::yield();
      queue.complete(taken.front(), {});
    }
  });
  int good = 0;
  for (int i = 0; i < 2000; ++i) {
    const OperationPtr operation = named("same");
    good += queue.add(operation).ok();
    while (!operation->is_done.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  completer.join();
  CHECK(good == 2000);
}
