// Tests of groups: what travels when, what fails with what, and what waits.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/tensor_groups.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::runtime;

namespace {

const TimePoint kGroupStart{std::chrono::seconds(1000)};

TensorDescription of_group(std::uint64_t group, std::uint32_t size) {
  TensorDescription description;
  description.kind = CollectiveKind::kAllreduce;
  description.group = group;
  description.group_size = size;
  return description;
}

ReadyTensor ready(const std::string& name, std::uint64_t group, std::uint32_t size,
                  std::uint64_t number = 0) {
  return {0, name, number, {name, {}}, of_group(group, size)};
}

std::vector<std::string> names_of(const std::vector<ReadyTensor>& tensors) {
  std::vector<std::string> names;
  for (const ReadyTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

using Names = std::vector<std::string>;

OperationPtr group_operation(const std::string& name, std::uint64_t group, std::uint32_t size) {
  auto operation = std::make_shared<Operation>();
  operation->name = name;
  operation->description = of_group(group, size);
  return operation;
}

}  // namespace

TEST_CASE("a tensor of no group travels at once, a group with its last tensor") {
  TensorGroups groups;
  groups.add(ready("a", 7, 3), kGroupStart);
  groups.add(ready("alone", 0, 0), kGroupStart);
  groups.add(ready("b", 7, 3), kGroupStart);
  groups.add(ready("x", 8, 1), kGroupStart);
  CHECK(names_of(groups.take_whole(1 << 20)) == Names{"alone", "x"});
  groups.add(ready("c", 7, 3), kGroupStart);
  CHECK(names_of(groups.take_whole(1 << 20)) == Names{"a", "b", "c"});
  CHECK(groups.waiting().empty());
  groups.add(ready("a", 7, 1), kGroupStart);  // the number again, for another group
  CHECK(names_of(groups.take_whole(1 << 20)) == Names{"a"});
}

TEST_CASE("what the ranks disagree on takes its group with it, those before it and those after") {
  TensorGroups groups;
  groups.add(ready("a", 7, 3), kGroupStart);
  groups.refuse("b", of_group(7, 3),
                {StatusCode::kMismatch, "tensor 'b': rank 0 has 3, rank 1 has 4"});
  const auto first = groups.take_refusals(1 << 20);
  REQUIRE(first.size() == 1);
  CHECK(first[0].name == "a");
  CHECK(first[0].code == static_cast<std::uint32_t>(StatusCode::kMismatch));
  CHECK(first[0].words.find("its group 7 fails as one") != std::string::npos);
  CHECK(first[0].words.find("tensor 'b': rank 0 has 3, rank 1 has 4") != std::string::npos);
  CHECK(groups.waiting().empty());  // nobody waits for the rest of it
  groups.add(ready("c", 7, 3), kGroupStart);
  CHECK(groups.take_refusals(1 << 20).size() == 1);
  CHECK(groups.take_whole(1 << 20).empty());
  groups.add(ready("a", 7, 1),
             kGroupStart);  // all of the broken one was seen: the number is free again
  CHECK(names_of(groups.take_whole(1 << 20)) == Names{"a"});
}

TEST_CASE("tensors that do not agree on how many their group has are refused") {
  TensorGroups groups;
  groups.add(ready("a", 7, 2), kGroupStart);
  groups.add(ready("b", 7, 3), kGroupStart);
  const auto refusals = groups.take_refusals(1 << 20);
  REQUIRE(refusals.size() == 2);
  CHECK(refusals[0].words.find("'b' says that it has 3 tensors, others that it has 2") !=
        std::string::npos);
}

TEST_CASE(
    "after a refusal the number can be used again, whether the rest of the group came or not") {
  TensorGroups groups;
  groups.add(ready("a", 7, 2), kGroupStart);
  groups.add(ready("b", 7, 3), kGroupStart);  // they disagree on the size
  CHECK(groups.take_refusals(1 << 20).size() == 2);
  groups.add(ready("a", 7, 2), kGroupStart);
  groups.add(ready("b", 7, 2), kGroupStart);
  CHECK(names_of(groups.take_whole(1 << 20)) == Names{"a", "b"});
  groups.refuse("a", of_group(7, 3),
                {StatusCode::kMismatch, "ranks differ"});  // b and c never come
  groups.add(ready("a", 7, 3), kGroupStart);
  groups.add(ready("b", 7, 3), kGroupStart);
  groups.add(ready("c", 7, 3), kGroupStart);
  CHECK(names_of(groups.take_whole(1 << 20)) == Names{"a", "b", "c"});
  CHECK_FALSE(groups.has_output());
}

TEST_CASE("groups that nobody will make whole are refused, and forgotten") {
  TensorGroups groups;
  groups.add(ready("a", 7, 2), kGroupStart);
  groups.add(ready("x", 8, 2), kGroupStart);
  groups.refuse_incomplete();
  CHECK(groups.empty());
  const auto refusals = groups.take_refusals(1 << 20);
  REQUIRE(refusals.size() == 2);
  CHECK(refusals[0].words.find("not whole when all ranks had joined") != std::string::npos);
  groups.add(ready("b", 7, 1), kGroupStart);
  CHECK(names_of(groups.take_whole(1 << 20)) == Names{"b"});
}

TEST_CASE("what comes out at once is cut near the size of a message, one at least") {
  TensorGroups groups;
  for (int i = 0; i < 100; ++i)
    groups.add(ready(std::string(900, 'n') + std::to_string(i), 7, 100), kGroupStart);
  std::size_t total = 0, parts = 0;
  while (groups.has_output()) {
    const auto part = groups.take_whole(10000);
    CHECK(part.size() >= 1);
    CHECK(part.size() <= 10);
    total += part.size();
    ++parts;
  }
  CHECK(total == 100);
  CHECK(parts >= 10);
  groups.add(ready(std::string(900, 'n'), 8, 1), kGroupStart);
  CHECK(groups.take_whole(1).size() == 1);
}

TEST_CASE("a tensor whose cache entry goes while its group waits is spelled out") {
  TensorGroups groups;
  groups.add(ready("a", 7, 2, 41), kGroupStart);
  ResponseCache::Entry entry{41, "a", of_group(7, 2), {5, 6}};
  groups.spell_out({{40, "z", of_group(0, 0), {}}, entry});
  groups.add(ready("b", 7, 2, 42), kGroupStart);
  const auto whole = groups.take_whole(1 << 20);
  REQUIRE(whole.size() == 2);
  CHECK(whole[0].number == 0);
  CHECK(whole[0].fresh.name == "a");
  CHECK(whole[0].fresh.first_extents == std::vector<std::int64_t>{5, 6});
  CHECK(whole[1].number == 42);
}

TEST_CASE("a group that is not whole says what of it is there, and since when") {
  TensorGroups groups;
  groups.add(ready("a", 7, 3), kGroupStart);
  groups.add(ready("b", 7, 3), kGroupStart + std::chrono::seconds(5));
  const auto waiting = groups.waiting();
  REQUIRE(waiting.size() == 1);
  const std::string words = stall_words(waiting[0], kGroupStart + std::chrono::seconds(60));
  CHECK(words.find(
            "group 7 has waited 60 s: 2 of its 3 tensors are ready on all ranks ('a', 'b')") == 0);
}

TEST_CASE("outcomes of a group come together, one failure is everybody's") {
  GroupOutcomes outcomes;
  CHECK(outcomes.add({group_operation("alone", 0, 0), Status::success()}).size() == 1);
  CHECK(outcomes.add({group_operation("a", 7, 2), Status::success()}).empty());
  CHECK(outcomes.add({group_operation("other", 8, 2), Status::success()}).empty());
  const auto two = outcomes.add({group_operation("b", 7, 2), Status::success()});
  REQUIRE(two.size() == 2);
  CHECK(two[0].second.ok());
  CHECK(two[1].second.ok());
  const auto failed =
      outcomes.add({group_operation("b", 8, 2), {StatusCode::kArgument, "output_bytes is 4"}});
  REQUIRE(failed.size() == 2);
  CHECK(failed[0].second.code == StatusCode::kArgument);
  CHECK(failed[0].second.message.find(
            "tensor 'other': its group 8 fails as one: output_bytes is 4") == 0);
  CHECK(failed[1].second.message == "output_bytes is 4");
}
