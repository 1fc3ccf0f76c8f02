// Process sets come and go while a job of engines runs.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <deque>
#include <memory>

#include "runtime/engine/engine.h"
#include "tests/fakes/fake_backend.h"
#include "tests/fakes/fake_fabric.h"
#include "tests/unit/engine/tensor.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr int kSetRanks = 4;

OperationPtr change(CollectiveKind kind, std::vector<std::int32_t> ranks,
                    std::uint32_t number = 0) {
  auto operation = std::make_shared<Operation>();
  operation->name = "change of sets";
  operation->description.kind = kind;
  operation->description.ranks = std::move(ranks);
  operation->description.root = static_cast<std::int32_t>(number);
  return operation;
}

OperationPtr tensor_of(std::uint32_t set, const std::string& name) {
  OperationPtr operation = named_operation(name);
  operation->set = set;
  return operation;
}

struct SetNode {
  SetNode(FakeWires& wires, int rank)
      : fabric(wires, rank), engine({}, fabric, {{&all}}, maker()) {}
  SetMaker maker() {
    return [this](const ProcessSet& set, SetParts* parts) {
      if (!refusal.ok()) return refusal;
      made.push_back(set.number);
      parts->backends = {&of_sets};
      return Status::success();
    };
  }
  Status refusal;  // what its maker says
  FakeFabric fabric;
  FakeBackend all, of_sets;
  std::vector<std::uint32_t> made;
  Engine engine;
};

struct Job {
  Job() {
    for (int rank = 0; rank < kSetRanks; ++rank)
      nodes.push_back(std::make_unique<SetNode>(wires, rank));
  }
  Engine& engine(int rank) { return nodes[static_cast<std::size_t>(rank)]->engine; }
  void run(int rounds = 30) {
    for (int i = 0; i < rounds; ++i)
      for (const auto& node : nodes) node->engine.step(now());
  }
  // The same on every rank.
  std::array<OperationPtr, kSetRanks> everywhere(CollectiveKind kind,
                                                 std::vector<std::int32_t> ranks,
                                                 std::uint32_t number = 0) {
    std::array<OperationPtr, kSetRanks> operations;
    for (int rank = 0; rank < kSetRanks; ++rank) {
      operations[static_cast<std::size_t>(rank)] = change(kind, ranks, number);
      REQUIRE(engine(rank).enqueue(operations[static_cast<std::size_t>(rank)]).ok());
    }
    run();
    return operations;
  }
  void add(std::vector<std::int32_t> ranks, std::uint32_t number) {
    for (const OperationPtr& operation : everywhere(CollectiveKind::kAddSet, ranks)) {
      REQUIRE(operation->is_done);
      REQUIRE_MESSAGE(operation->outcome.ok(), operation->outcome.message);
      REQUIRE(operation->new_set == number);
    }
  }
  OperationPtr submit(int rank, std::uint32_t set, const std::string& name) {
    OperationPtr operation = tensor_of(set, name);
    REQUIRE(engine(rank).enqueue(operation).ok());
    return operation;
  }
  std::string refusal(int rank, std::uint32_t set) {
    const Status status = engine(rank).enqueue(tensor_of(set, "w"));
    CHECK(status.code == StatusCode::kArgument);
    return status.message;
  }
  FakeWires wires{kSetRanks};
  std::vector<std::unique_ptr<SetNode>> nodes;
};

}  // namespace

TEST_CASE("a set's members work together, and nobody else takes part") {
  Job job;
  job.add({1, 3}, 1);
  CHECK(job.nodes[1]->made == std::vector<std::uint32_t>{1});
  CHECK(job.nodes[0]->made.empty());
  const OperationPtr one = job.submit(1, 1, "w"), other = job.submit(3, 1, "w");
  job.run();
  CHECK((one->is_done && one->outcome.ok()));
  CHECK((other->is_done && other->outcome.ok()));
  CHECK(job.nodes[1]->of_sets.requests.size() == 1);
  CHECK(job.nodes[1]->all.requests.empty());
  CHECK(job.refusal(0, 1) == "tensor 'w': rank 0 is not in process set 1, which has ranks 1,3");
  CHECK(job.refusal(0, 7) == "tensor 'w': there is no process set 7");
}

TEST_CASE("no rank is told of a set before every rank has made it") {
  Job job;
  std::vector<OperationPtr> added;
  for (const int rank : {0, 1, 2}) {
    added.push_back(change(CollectiveKind::kAddSet, {0, 1}));
    REQUIRE(job.engine(rank).enqueue(added.back()).ok());
  }
  job.run();
  for (const OperationPtr& operation : added) CHECK(!operation->is_done);
  REQUIRE(job.engine(3).enqueue(change(CollectiveKind::kAddSet, {0, 1})).ok());
  job.run();
  for (const OperationPtr& operation : added)
    CHECK((operation->is_done && operation->outcome.ok()));
}

// Rank 1 stands still after it has asked for the set: the others have made it, and must not speak
// in it.
TEST_CASE(
    "a set that some rank has not made yet is not there for anybody, and a leave does not speak in "
    "it") {
  for (const bool leaves : {false, true}) {
    Job job;
    std::array<OperationPtr, kSetRanks> changes;
    for (int rank = 0; rank < kSetRanks; ++rank) {
      changes[static_cast<std::size_t>(rank)] = change(CollectiveKind::kAddSet, {1, 2});
      REQUIRE(job.engine(rank).enqueue(changes[static_cast<std::size_t>(rank)]).ok());
    }
    job.engine(1).step(now());  // it reports
    const auto run_without_1 = [&] {
      for (int i = 0; i < 30; ++i)
        for (const int rank : {0, 2, 3}) job.engine(rank).step(now());
    };
    run_without_1();
    CHECK(job.nodes[2]->made == std::vector<std::uint32_t>{1});
    CHECK(job.nodes[1]->made.empty());
    CHECK_FALSE(changes[2]->is_done);
    CHECK(job.engine(2).process_sets().size() == 1);  // that of all ranks
    CHECK(job.refusal(2, 1) == "tensor 'w': process set 1 is still being added");
    if (leaves) job.engine(2).request_leave();
    run_without_1();
    job.run();
    for (int rank = 0; rank < kSetRanks; ++rank) {
      const Status& outcome = changes[static_cast<std::size_t>(rank)]->outcome;
      REQUIRE(changes[static_cast<std::size_t>(rank)]->is_done);
      CHECK_FALSE(job.engine(rank).has_failed());
      if (leaves) {
        CHECK((outcome.ok() || outcome.code == StatusCode::kShutdown));
        CHECK(job.engine(rank).is_finished());
      } else {
        CHECK_MESSAGE(outcome.ok(), outcome.message);
        CHECK(job.engine(rank).process_sets().size() == 2);
      }
    }
  }
}

TEST_CASE("a rank that cannot make a set gives up, and the others learn from whom and why") {
  Job job;
  job.nodes[1]->refusal = {StatusCode::kMemory, "making process set 1: out of memory"};
  const auto changes = job.everywhere(CollectiveKind::kAddSet, {1, 2});
  CHECK(job.engine(1).has_failed());
  CHECK(changes[1]->outcome.code == StatusCode::kMemory);
  CHECK(changes[1]->outcome.message.find("making process set 1: out of memory") !=
        std::string::npos);
  for (const int rank : {0, 2, 3}) {
    const OperationPtr& added = changes[static_cast<std::size_t>(rank)];
    REQUIRE(added->is_done);
    CHECK(added->outcome.code == StatusCode::kPeerLost);
    CHECK(added->outcome.message.find("rank 1 gave up: making process set 1: out of memory") !=
          std::string::npos);
    CHECK(job.engine(rank).process_sets().size() == 1);
  }
}

TEST_CASE("sets do not wait for each other, and a name may be in flight in each") {
  Job job;
  job.add({0, 1}, 1);
  job.add({0, 1, 2}, 2);
  const OperationPtr stuck = job.submit(0, 1, "w");
  std::vector<OperationPtr> free;
  for (int rank = 0; rank < kSetRanks; ++rank) free.push_back(job.submit(rank, 0, "w"));
  for (const int rank : {0, 1, 2}) free.push_back(job.submit(rank, 2, "w"));
  job.run();
  CHECK(!stuck->is_done);
  for (const OperationPtr& operation : free) CHECK((operation->is_done && operation->outcome.ok()));
}

TEST_CASE("a removed set ends what waits in it, and its number is never used again") {
  Job job;
  job.add({2, 3}, 1);
  const OperationPtr waits = job.submit(2, 1, "w");
  job.run();
  for (const OperationPtr& operation : job.everywhere(CollectiveKind::kRemoveSet, {}, 1))
    CHECK((operation->is_done && operation->outcome.ok()));
  CHECK(waits->outcome.code == StatusCode::kShutdown);
  CHECK(waits->outcome.message.find("process set 1") != std::string::npos);
  CHECK(job.refusal(2, 1) == "tensor 'w': there is no process set 1 any more");
  CHECK(job.engine(0).process_sets().size() == 1);
  job.add({2, 3}, 2);
}

TEST_CASE("a set goes only when what runs in it has ended on every member") {
  Job job;
  job.add({0, 1}, 1);
  job.nodes[1]->of_sets.progress = Progress::kPending;
  const OperationPtr quick = job.submit(0, 1, "w"), slow = job.submit(1, 1, "w");
  const auto removed = job.everywhere(CollectiveKind::kRemoveSet, {}, 1);
  CHECK(quick->is_done);
  CHECK(!slow->is_done);
  for (const OperationPtr& operation : removed) CHECK(!operation->is_done);
  job.nodes[1]->of_sets.progress = Progress::kDone;
  job.run();
  CHECK((slow->is_done && slow->outcome.ok()));
  for (const OperationPtr& operation : removed)
    CHECK((operation->is_done && operation->outcome.ok()));
}

TEST_CASE("what is no set, or none any more, is refused on every rank, and the job goes on") {
  Job job;
  for (const OperationPtr& operation : job.everywhere(CollectiveKind::kAddSet, {1, 9}))
    CHECK(operation->outcome.message.find("rank 9 is not among the job's 4") != std::string::npos);
  for (const std::uint32_t number : {0u, 5u}) {
    for (const OperationPtr& operation : job.everywhere(CollectiveKind::kRemoveSet, {}, number))
      CHECK(operation->outcome.code == StatusCode::kArgument);
  }
  job.add({1}, 1);
}

TEST_CASE("ranks that name different members are told who named whom") {
  Job job;
  std::vector<OperationPtr> added;
  for (int rank = 0; rank < kSetRanks; ++rank) {
    added.push_back(change(CollectiveKind::kAddSet, {0, rank == 2 ? 2 : 1}));
    REQUIRE(job.engine(rank).enqueue(added.back()).ok());
  }
  job.run();
  for (const OperationPtr& operation : added) {
    CHECK(operation->outcome.code == StatusCode::kMismatch);
    const std::string& words = operation->outcome.message;
    CHECK(words.find("rank 2 has addition of a process set of ranks 0,2") != std::string::npos);
    CHECK(words.find("must call hvrun_process_set_add with the same ranks") != std::string::npos);
  }
  job.add({0, 1}, 1);
}

TEST_CASE("a mismatch in a set names ranks of the job") {
  Job job;
  job.add({1, 3}, 1);
  const OperationPtr one = tensor_of(1, "w"), other = tensor_of(1, "w");
  other->description.shape = {77};
  REQUIRE(job.engine(1).enqueue(one).ok());
  REQUIRE(job.engine(3).enqueue(other).ok());
  job.run();
  CHECK(one->outcome.code == StatusCode::kMismatch);
  CHECK(one->outcome.message.find("rank 1 has") != std::string::npos);
  CHECK(one->outcome.message.find("rank 3 has") != std::string::npos);
}

TEST_CASE("a rank that shuts down ends the waits of every set, and of changes under way") {
  Job job;
  job.add({0, 1}, 1);
  const OperationPtr waits = job.submit(1, 1, "w");
  const OperationPtr added = change(CollectiveKind::kAddSet, {1, 2});
  REQUIRE(job.engine(1).enqueue(added).ok());
  job.run();
  job.engine(3).request_leave();
  job.run();
  CHECK(waits->outcome.code == StatusCode::kShutdown);
  CHECK(added->outcome.code == StatusCode::kShutdown);
  for (int rank = 0; rank < kSetRanks; ++rank) {
    CHECK(job.engine(rank).is_finished());
    CHECK(!job.engine(rank).has_failed());
  }
}

// What a set has begun goes on, though the root of all ranks has left.
TEST_CASE("a failure in a set is told to its members by themselves") {
  Job job;
  job.add({1, 2, 3}, 1);
  std::vector<OperationPtr> running;
  for (const int rank : {1, 2, 3}) {
    job.nodes[static_cast<std::size_t>(rank)]->of_sets.progress = Progress::kPending;
    running.push_back(job.submit(rank, 1, "w"));
  }
  job.run();
  job.engine(0).request_leave();
  job.run();
  REQUIRE(job.engine(0).is_finished());
  for (const OperationPtr& operation : running) REQUIRE_FALSE(operation->is_done);
  job.nodes[3]->of_sets.failure = {StatusCode::kMemory, "out of memory"};
  job.nodes[3]->of_sets.progress = Progress::kFailed;
  job.run();
  for (const OperationPtr& operation : running) REQUIRE(operation->is_done);
  for (const int other : {0, 1}) {
    const Status& outcome = running[static_cast<std::size_t>(other)]->outcome;
    CHECK(outcome.code == StatusCode::kPeerLost);
    CHECK(outcome.message.find("rank 3 gave up: ") != std::string::npos);
  }
}

TEST_CASE("what a member of a removed set still says is dropped, of a set to come it is a breach") {
  Job job;
  job.add({0, 1}, 1);
  job.everywhere(CollectiveKind::kRemoveSet, {}, 1);
  const std::uint32_t past = 1, to_come = 2;
  std::string message(reinterpret_cast<const char*>(&past), sizeof past);
  job.wires.inboxes[0].emplace_back(1, message + "late");
  job.run(2);
  CHECK(!job.engine(0).has_failed());
  message.assign(reinterpret_cast<const char*>(&to_come), sizeof to_come);
  job.wires.inboxes[0].emplace_back(1, message + "early");
  job.run(2);
  CHECK(job.engine(0).has_failed());
}
