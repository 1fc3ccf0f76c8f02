// When the memory of results on a device is given to others.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/result_room.h"

#include <doctest/doctest.h>

#include <memory>

#include "tests/fakes/fake_accelerator.h"

using namespace hv;
using namespace hv::runtime;

namespace {

struct Gathered {
  Gathered() {
    operation.description.kind = CollectiveKind::kAllgather;
    operation.device = 0;
    operation.accelerator = accelerator;
    operation.result_bytes = 16;
    operation.owned.reset(new std::byte[16]);
    operation.output = operation.owned.get();
  }

  const std::shared_ptr<FakeAccelerator> accelerator = std::make_shared<FakeAccelerator>();
  Operation operation;
};

}  // namespace

TEST_CASE("a result's memory is kept for others until the caller's stream has passed") {
  Gathered gathered;
  give_back_result(gathered.operation);
  CHECK(gathered.accelerator->kept == 1);
  CHECK(gathered.operation.owned == nullptr);
}

TEST_CASE("what failed without an end that anybody knows may be written still, and is not kept") {
  Gathered gathered;
  gathered.operation.outcome = {StatusCode::kPeerLost, "rank 1 has died"};
  give_back_result(gathered.operation);
  CHECK(gathered.accelerator->kept == 0);
  CHECK(gathered.operation.owned != nullptr);
}

TEST_CASE("an output that is too small is told, and the work's end is known all the same") {
  Gathered gathered;
  gathered.operation.output_bytes = 8;
  const auto end = std::make_shared<const Moment>();
  CHECK(hand_over(gathered.operation, end).code == StatusCode::kArgument);
  CHECK(gathered.operation.ended == end);
}
