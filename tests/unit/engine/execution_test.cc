// Tests of how groups become backend requests and outcomes.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/execution.h"

#include <doctest/doctest.h>

#include "tests/fakes/fake_accelerator.h"
#include "tests/fakes/fake_backend.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr TimePoint kNow{std::chrono::hours(1)};

OperationPtr allreduce(std::int64_t count, std::byte* data) {
  auto operation = std::make_shared<Operation>();
  operation->name = "w" + std::to_string(count);
  operation->description.kind = CollectiveKind::kAllreduce;
  operation->description.type = ElementType::kFloat32;
  operation->description.shape = {count};
  operation->input = data;
  operation->output = data;
  return operation;
}

}  // namespace

TEST_CASE(
    "a group becomes one request with a segment per tensor, average becomes sum and divisor") {
  FakeBackend backend;
  Execution execution({{0, 3}, true}, {&backend});
  std::byte memory[64];
  std::vector<OperationPtr> group{allreduce(4, memory), allreduce(0, nullptr),
                                  allreduce(8, memory + 16)};
  for (const auto& operation : group) {
    operation->description.reduction = Reduction::kAverage;
    operation->description.prescale = 2;
  }
  execution.start(group, {});
  REQUIRE(backend.requests.size() == 1);
  const CollectiveRequest& request = backend.requests[0];
  CHECK(request.reduction == Reduction::kSum);
  CHECK(request.divisor == 3);
  CHECK(request.prescale == 2);
  CHECK(request.deterministic);
  REQUIRE(request.segments.size() == 3);
  CHECK(request.segments[1].count == 0);
  CHECK(request.segments[2].input == memory + 16);
  CHECK(execution.advance(kNow));
  CHECK(execution.take_ended().size() == 3);
  CHECK(execution.is_idle());
}

TEST_CASE(
    "an allgather's result is sized by all ranks' extents and made here if the caller gave no "
    "memory") {
  FakeBackend backend;
  Execution execution({{0, 3}, false}, {&backend});
  const std::byte memory[8]{};
  auto operation = std::make_shared<Operation>();
  operation->description.kind = CollectiveKind::kAllgather;
  operation->description.type = ElementType::kInt32;
  operation->description.shape = {kVaries, 2};
  operation->first_extent = 1;
  operation->input = memory;
  execution.start({operation}, {1, 0, 4});
  REQUIRE(backend.requests.size() == 1);
  CHECK(backend.requests[0].counts_by_rank == std::vector<std::int64_t>{2, 0, 8});
  CHECK(backend.requests[0].segments[0].count == 2);
  CHECK(operation->result_shape == std::vector<std::int64_t>{5, 2});
  CHECK(operation->result_bytes == 40);
  CHECK(operation->owned != nullptr);
  CHECK(backend.requests[0].segments[0].output == operation->owned.get());
}

namespace {

OperationPtr gathering(std::int64_t extent, const std::byte* data) {
  auto operation = std::make_shared<Operation>();
  operation->name = "rows";
  operation->description.kind = CollectiveKind::kAllgather;
  operation->description.type = ElementType::kInt32;
  operation->description.shape = {kVaries};
  operation->first_extent = extent;
  operation->input = data;
  return operation;
}

}  // namespace

TEST_CASE("a gathered result that memory has no room for is a failure of the whole, with words") {
  FakeBackend backend;
  Execution execution({{0, 2}, false}, {&backend});
  const std::byte memory[4]{};
  execution.start({gathering(1, memory)}, {1, std::int64_t{1} << 58});
  CHECK(backend.requests.empty());
  CHECK(execution.failure().code == StatusCode::kMemory);
  CHECK(execution.failure().message.find("tensor 'rows'") != std::string::npos);
  const auto ended = execution.take_ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].second.code == StatusCode::kMemory);
}

TEST_CASE("a gathered result beyond what can be counted is that tensor's error on every rank") {
  const std::int64_t most = INT64_MAX;
  for (const auto& extents : {std::vector<std::int64_t>{most, most}, {1, most / 2}}) {
    FakeBackend backend;
    Execution execution({{0, 2}, false}, {&backend});
    const std::byte memory[4]{};
    execution.start({gathering(1, memory)}, extents);
    CHECK(backend.requests.empty());
    CHECK(execution.failure().ok());
    const auto ended = execution.take_ended();
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].second.code == StatusCode::kArgument);
  }
}

TEST_CASE("what moves no bytes is complete without a backend") {
  FakeBackend backend;
  Execution execution({{0, 2}, false}, {&backend});
  auto barrier = std::make_shared<Operation>();
  execution.start({barrier}, {});
  execution.start({allreduce(0, nullptr)}, {});
  CHECK(backend.requests.empty());
  CHECK(execution.take_ended().size() == 2);
}

TEST_CASE("the first backend that supports a request gets it, without any it is unsupported") {
  FakeBackend picky, willing;
  picky.refused_type = ElementType::kFloat32;
  std::byte memory[16];
  Execution both({2, false}, {&picky, &willing});
  both.start({allreduce(4, memory)}, {});
  CHECK(picky.requests.empty());
  CHECK(willing.requests.size() == 1);
  Execution none({2, false}, {&picky});
  none.start({allreduce(4, memory)}, {});
  const auto ended = none.take_ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].second.code == StatusCode::kUnsupported);
  CHECK(ended[0].second.message.find("tensor 'w4'") == 0);
}

TEST_CASE("a collective that only pauses is advanced again at once") {
  FakeBackend backend;
  Execution execution({{0, 2}, false}, {&backend});
  std::byte memory[64];
  backend.progress = Progress::kAdvanced;
  execution.start({allreduce(16, memory)}, {});
  CHECK(execution.advance(kNow));
  CHECK(execution.take_ended().empty());
  CHECK_FALSE(execution.is_idle());
  backend.progress = Progress::kPending;
  CHECK_FALSE(execution.advance(kNow));
}

TEST_CASE("a rank that has joined makes no room for a sparse result") {
  for (const bool is_absent : {false, true}) {
    FakeBackend backend;
    Execution execution({{0, 2}, false}, {&backend});
    auto operation = std::make_shared<Operation>();
    operation->description.kind = CollectiveKind::kSparseAllreduce;
    operation->description.type = ElementType::kFloat32;
    operation->description.shape = {0, 3};
    operation->is_absent = is_absent;
    execution.start({operation}, {0, 5});
    REQUIRE(backend.requests.size() == 1);
    for (const Segment& segment : backend.requests[0].segments)
      CHECK((segment.output == nullptr) == is_absent);
    CHECK((operation->owned == nullptr) == is_absent);
  }
}

TEST_CASE("a failed collective gives its tensors its status and stops the rest") {
  FakeBackend backend;
  Execution execution({{0, 2}, false}, {&backend});
  std::byte memory[64];
  execution.start({allreduce(4, memory)}, {});
  execution.start({allreduce(8, memory)}, {});
  backend.progress = Progress::kPending;
  CHECK_FALSE(execution.advance(kNow));
  backend.progress = Progress::kFailed;
  backend.failure = {StatusCode::kPeerLost, "rank 1 ended"};
  CHECK(execution.advance(kNow));
  CHECK(execution.failure().code == StatusCode::kPeerLost);
  CHECK(execution.take_ended().size() == 1);
  CHECK(execution.abandon());
  execution.give_up({StatusCode::kPeerLost, "rank 1 ended"});
  const auto rest = execution.take_ended();
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].second.message == "tensor 'w8': rank 1 ended");
  CHECK(backend.under_way == 0);
}

namespace {

// Done for the host; the device still works on it.
struct GivenAway : Collective {
  Progress advance() override { return Progress::kDone; }
  Status status() const override { return Status::success(); }
  MomentPtr ended() const override { return std::make_shared<const Moment>(); }
};

struct FakeDeviceBackend : FakeBackend {
  std::unique_ptr<Collective> prepare(const CollectiveRequest&) override {
    return preparations-- > 0 ? FakeBackend::start({}) : nullptr;
  }
  std::unique_ptr<Collective> start(CollectiveRequest request) override {
    requests.push_back(std::move(request));
    return std::make_unique<GivenAway>();
  }
  Status watch() override {
    ++watched;
    return trouble;
  }
  bool abandon() override { return ++abandoned == 2; }

  int preparations = 0, watched = 0, abandoned = 0;
  Status trouble;
};

std::vector<std::int64_t> counts_of(const FakeBackend& backend) {
  std::vector<std::int64_t> counts;
  for (const CollectiveRequest& request : backend.requests)
    if (!request.segments.empty()) counts.push_back(request.segments[0].count);
  return counts;
}

}  // namespace

TEST_CASE("until a backend is prepared everything waits, and then begins in its order") {
  FakeDeviceBackend device;
  FakeBackend host;
  device.refused_type = ElementType::kFloat64;
  device.preparations = 2;
  device.progress = Progress::kPending;
  Execution execution({{0, 2}, false}, {&device, &host});
  std::byte memory[64];
  const OperationPtr of_host = allreduce(2, memory);
  of_host->description.type = ElementType::kFloat64;
  execution.start({allreduce(4, memory)}, {});
  execution.start({of_host}, {});
  execution.start({allreduce(8, memory)}, {});
  CHECK_FALSE(execution.advance(kNow));
  CHECK_FALSE(execution.is_idle());
  CHECK(host.requests.empty());
  device.progress = Progress::kDone;
  CHECK(execution.advance(kNow));  // the second preparation begins
  CHECK(host.requests.empty());
  while (!execution.is_idle()) REQUIRE(execution.advance(kNow));
  CHECK(counts_of(device) == std::vector<std::int64_t>{4, 8});
  CHECK(host.requests.size() == 1);
  CHECK(execution.take_ended().size() == 3);
}

TEST_CASE("a preparation that fails is a failure of the whole") {
  FakeDeviceBackend device;
  device.preparations = 1;
  device.progress = Progress::kFailed;
  device.failure = {StatusCode::kSystem, "no communicator"};
  Execution execution({{0, 2}, false}, {&device});
  std::byte memory[64];
  execution.start({allreduce(4, memory)}, {});
  execution.start({allreduce(8, memory)}, {});
  CHECK(execution.advance(kNow));
  CHECK(execution.failure().message == "no communicator");
  CHECK_FALSE(execution.abandon());
  CHECK(execution.abandon());
  execution.give_up(execution.failure());
  CHECK(execution.take_ended().size() == 2);
  CHECK(execution.is_idle());
  CHECK(device.abandoned == 2);
}

TEST_CASE("what a device still does is looked at every 100 ms, and its error is a failure") {
  FakeDeviceBackend device;
  const auto accelerator = std::make_shared<FakeAccelerator>();
  Execution execution({{0, 2}, false}, {&device});
  std::byte memory[64];
  const OperationPtr operation = allreduce(4, memory);
  operation->accelerator = accelerator;
  CHECK(execution.next_look() == TimePoint::max());
  execution.start({operation}, {});
  execution.advance(kNow);
  CHECK(execution.is_idle());
  const auto period = std::chrono::milliseconds(100);
  CHECK(execution.next_look() == kNow + period);
  execution.advance(kNow + period / 2);
  CHECK(device.watched == 0);
  execution.advance(kNow + period);
  CHECK(device.watched == 1);
  CHECK(execution.next_look() == kNow + 2 * period);
  accelerator->work = Status::success();
  execution.advance(kNow + 2 * period);
  CHECK(execution.next_look() == TimePoint::max());
  accelerator->work = {StatusCode::kInProgress, {}};
  execution.start({operation}, {});
  execution.advance(kNow + 3 * period);
  SUBCASE("of the device") { accelerator->work = {StatusCode::kSystem, "an illegal address"}; }
  SUBCASE("of the backend") { device.trouble = {StatusCode::kSystem, "an illegal address"}; }
  execution.advance(kNow + 4 * period);
  CHECK(execution.failure().message == "an illegal address");
}
