// What a node takes from no peer, well formed or not: it would start, fail or wait for what cannot
// be.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>

#include "runtime/engine/negotiation/negotiation.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const TimePoint kTime = TimePoint{} + std::chrono::hours(1);

// Rank 0 and, on another host, ranks 1 and 2.
ControlTree tree_of(int rank) {
  Topology topology;
  topology.rank = rank;
  topology.size = 3;
  topology.host_of = {0, 1, 1};
  topology.leaders = {0, 1};
  return make_control_tree(topology);
}

Submission bounded_tensor(const std::string& name, ElementType type = ElementType::kFloat32) {
  Submission submission;
  submission.name = name;
  submission.description.kind = CollectiveKind::kAllreduce;
  submission.description.type = type;
  submission.description.shape = {4};
  return submission;
}

Submission bounded_gather(const std::string& name, std::int64_t rows) {
  Submission submission = bounded_tensor(name);
  submission.description.kind = CollectiveKind::kAllgather;
  submission.description.shape = {kVaries, 2};
  submission.first_extent = rows;
  return submission;
}

std::string encoded(const std::vector<Group>& groups, const std::vector<Refusal>& refusals = {}) {
  return encode_control(ControlType::kDecision, Decision{.groups = groups, .refusals = refusals});
}

// Does rank 2 take that decision? It has "w" (float32), "i" (int32), "g" (three rows) and, cached
// as number 1, "c" ready.
bool takes(const std::vector<Group>& groups, const std::vector<Refusal>& refusals = {}) {
  Negotiation node({}, tree_of(2));
  node.submit(bounded_tensor("c"), kTime);
  REQUIRE(node.receive(1, encoded({{{}, {{"c", {}}}}}), kTime).ok());
  REQUIRE(node.take_verdicts().size() == 1);
  for (const Submission& own : {bounded_tensor("c"), bounded_tensor("w"),
                                bounded_tensor("i", ElementType::kInt32), bounded_gather("g", 3)})
    node.submit(own, kTime);
  const bool is_taken = node.receive(1, encoded(groups, refusals), kTime).ok();
  CHECK(node.take_verdicts().size() == (is_taken ? groups.size() + refusals.size() : 0));
  return is_taken;
}

std::vector<Group> fresh(const std::vector<FreshTensor>& tensors) { return {{{}, tensors}}; }

// Does the root take a report of rank 1, which speaks for ranks 1 and 2, after that change to it?
bool takes_report(const std::function<void(Report&)>& change) {
  Negotiation root({}, tree_of(0));
  root.submit(bounded_gather("g", 1), kTime);
  Report report;
  report.fresh.push_back({"g", {{bounded_gather("g", 1).description, {1, 2}, {4, 5}}}});
  change(report);
  const bool is_taken = root.receive(1, encode_control(ControlType::kReport, report), kTime).ok();
  root.conclude(kTime);
  return is_taken;
}

}  // namespace

TEST_CASE("a decision starts what this rank has ready, as it has it, once") {
  CHECK(takes(fresh({{"w", {}}})));
  CHECK(takes(fresh({{"g", {5, 0, 3}}})));
  CHECK(takes({{{1}, {{"w", {}}}}}));
  CHECK_FALSE(takes({{{}, {}}}));                            // a group of nothing
  CHECK_FALSE(takes({{{1, 1}, {}}}));                        // twice
  CHECK_FALSE(takes(fresh({{"g", {5, 0, 4}}})));             // more rows than this rank holds
  CHECK_FALSE(takes(fresh({{"g", {-1, 0, 3}}})));            // fewer than none
  CHECK_FALSE(takes(fresh({{"w", {1, 1, 1}}})));             // nothing is gathered
  CHECK_FALSE(takes(fresh({{"w", {}}, {"i", {}}})));         // of two types
  CHECK_FALSE(takes(fresh({{"g", {5, 0, 3}}, {"w", {}}})));  // of two kinds
}

TEST_CASE("a refusal fails what waits, and never as a success") {
  CHECK(takes({}, {{"w", 3, "ranks differ"}}));
  CHECK(takes({{{1}, {}}}, {{"i", 3, "ranks differ"}}));
  CHECK_FALSE(takes({}, {{"stranger", 3, "x"}}));
  CHECK_FALSE(takes({}, {{"w", 0, "x"}}));
  CHECK_FALSE(takes({}, {{"w", 4711, "x"}}));
}

TEST_CASE("a report speaks for the ranks below its sender, for each once") {
  CHECK(takes_report([](Report&) {}));
  CHECK(takes_report([](Report& said) { said.leaving = {2}; }));
  CHECK(takes_report([](Report& said) { said.partial.push_back({"w", 1, {1, 2}, {1}}); }));
  CHECK_FALSE(takes_report([](Report& said) { said.fresh[0].variants[0].ranks = {0, 2}; }));
  CHECK_FALSE(takes_report([](Report& said) { said.fresh[0].variants[0].ranks = {2, 2}; }));
  CHECK_FALSE(takes_report([](Report& said) {
    said.fresh[0].variants[0].ranks = {1};
    said.fresh[0].variants[0].first_extents = {4};
  }));
  CHECK_FALSE(takes_report([](Report& said) { said.leaving = {0}; }));
  CHECK_FALSE(takes_report([](Report& said) { said.leaving = {UINT32_MAX}; }));
  CHECK_FALSE(takes_report([](Report& said) {
    said.partial.push_back({"w", 1, {INT32_MAX}, {}});
  }));
}
