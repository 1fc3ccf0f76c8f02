// A rank's negotiation with peers that send any bytes, between submissions of its own.
// SPDX-License-Identifier: Apache-2.0
//
// The first byte picks the node of a job of two hosts with two ranks each: '0' the root, '2' one
// with a parent and a child, '3' a leaf. Then: s NAME KIND submit, r FROM PIECE receive, c
// conclude, t time passes, l leave, f fail.
#include "runtime/engine/negotiation.h"

#include <algorithm>
#include <map>

#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr int kSize = 4;

ControlTree tree_of(int rank) {
  Topology topology;
  topology.rank = rank;
  topology.size = kSize;
  topology.host_of = {0, 0, 1, 1};
  topology.leaders = {0, 2};
  return make_control_tree(topology);
}

Submission submission(char name, char kind) {
  Submission made;
  made.name = std::string(1, name);
  made.description.kind = kind == 'g' ? CollectiveKind::kAllgather : CollectiveKind::kAllreduce;
  made.description.type = kind == 'i' ? ElementType::kInt32 : ElementType::kFloat32;
  made.description.shape = {kind == 'g' ? kVaries : 4, 2};
  made.first_extent = kind == 'g' ? 3 : 0;
  return made;
}

// One rank as its engine drives it, which may rely on what is checked here.
class Node {
 public:
  explicit Node(int rank)
      : rank_(rank), tree_(tree_of(rank)), negotiation_({7, 64, 2}, tree_of(rank)) {}

  void submit(const Submission& tensor) {
    if (is_over_ || !in_flight_.emplace(tensor.name, tensor).second) return;
    negotiation_.submit(tensor, time_);
  }
  bool receive(int from, std::string_view message) {
    const Status status = negotiation_.receive(from, message, time_);
    HV_CHECK(status.ok() || !status.message.empty(), "a refusal has words");
    return status.ok();
  }
  void leave() { negotiation_.leave(); }
  void fail() { negotiation_.tell_failure("lost"); }
  void pass_time() { time_ += std::chrono::seconds(31); }
  void conclude() {
    negotiation_.conclude(time_);
    (void)negotiation_.next_look();
    for (const Verdict& verdict : negotiation_.take_verdicts())
      std::visit([this](const auto& one) { check(one); }, verdict);
    for (const auto& [to, message] : negotiation_.take_messages()) check_message(to, message);
    for (const Waiting& stall : negotiation_.take_stalls()) {
      for (const std::uint32_t rank : stall.missing) HV_CHECK(rank < kSize, "a rank of this job");
      HV_CHECK(!stall_words(stall, kSize, time_).empty(), "words");
    }
  }

 private:
  void check(const StartGroup& group) {
    HV_CHECK(!group.tensors.empty(), "something starts");
    for (const FreshTensor& tensor : group.tensors) {
      const auto own = in_flight_.find(tensor.name);
      HV_CHECK(own != in_flight_.end(), "what starts is in flight here, and starts once");
      check_extents(own->second, tensor.first_extents);
      HV_CHECK(group.tensors.size() == 1 ||
                   (own->second.description.kind == CollectiveKind::kAllreduce &&
                    own->second.description.type ==
                        in_flight_.at(group.tensors[0].name).description.type),
               "what travels together is of one kind and type");
    }
    for (const FreshTensor& tensor : group.tensors)
      HV_CHECK(in_flight_.erase(tensor.name) == 1, "each tensor once");
  }
  void check_extents(const Submission& own, const std::vector<std::int64_t>& extents) {
    if (own.description.kind != CollectiveKind::kAllgather) {
      HV_CHECK(extents.empty(), "no extents where nothing is gathered");
      return;
    }
    HV_CHECK(extents.size() == kSize, "each rank's own");
    HV_CHECK(extents[static_cast<std::size_t>(rank_)] == own.first_extent,
             "this rank gives as many rows as it has");
    HV_CHECK(*std::min_element(extents.begin(), extents.end()) >= 0, "no negative extent");
  }
  void check(const FailTensor& failed) {
    HV_CHECK(in_flight_.erase(failed.name) == 1, "what fails is in flight and has not started");
    HV_CHECK(!failed.status.ok(), "a failure is no success");
  }
  void check(const RankLeft& left) {
    HV_CHECK(left.rank >= 0 && left.rank < kSize, "a rank of this job");
    is_over_ = true;
    in_flight_.clear();
  }
  void check_message(int to, std::string_view message) const {
    const bool is_neighbour =
        to == tree_.parent ||
        std::any_of(tree_.children.begin(), tree_.children.end(),
                    [to](const ControlTree::Child& child) { return child.rank == to; });
    HV_CHECK(is_neighbour && !message.empty(), "messages go along the tree");
  }

  const int rank_;
  const ControlTree tree_;
  Negotiation negotiation_;
  std::map<std::string, Submission> in_flight_;
  TimePoint time_ = TimePoint{} + std::chrono::hours(1);
  bool is_over_ = false;
};

std::string received(char from, const std::string& message) {
  return std::string("r") + from + fuzz::piece(message);
}

Report report_of(char name, char kind, std::vector<std::uint32_t> ranks) {
  const Submission made = submission(name, kind);
  Variant variant{made.description, std::move(ranks), {}};
  if (kind == 'g') variant.first_extents.assign(variant.ranks.size(), made.first_extent);
  Report report;
  report.epoch = 7;
  report.fresh.push_back({made.name, {variant}});
  return report;
}

std::string decided(const std::vector<Group>& groups) {
  Decision decision;
  decision.epoch = 7;
  decision.groups = groups;
  return received('2', encode_control(ControlType::kDecision, decision));
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  std::string root = "0";
  for (const char kind : {'a', 'g'}) {
    const char name = kind;
    root += std::string("s") + name + kind;
    root += received('1', encode_control(ControlType::kReport, report_of(name, kind, {1})));
    root +=
        received('2', encode_control(ControlType::kReport, report_of(name, kind, {2, 3}))) + "c";
  }
  Report rest = report_of('w', 'a', {2, 3});
  rest.numbers = {1, 2};
  rest.partial.push_back({"late", 40000, {3}, {}});
  const std::string again = root + "saasgg" +
                            received('1', encode_control(ControlType::kReport, rest)) +
                            received('2', encode_control(ControlType::kReport, rest)) + "cttc";
  rest.leaving = {2};
  const std::string leaf = "3saasgg" + std::string("c") + decided({{{}, {{"a", {}}}}}) +
                           decided({{{}, {{"g", {3, 3, 3, 3}}}}}) + "csaac" + decided({{{1}, {}}}) +
                           "c";
  Decision last;
  last.epoch = 7;
  last.refusals.push_back({"a", 3, "ranks differ"});
  last.leaving = 1;
  return {root,
          again,
          root + received('2', encode_control(ControlType::kReport, rest)) + "c",
          leaf,
          "3saasiicsgg" + decided({{{}, {{"a", {}}, {"i", {}}}}}) + "c",
          "3saac" + received('2', encode_control(ControlType::kDecision, last)) + "c",
          "2saar3" + piece(encode_control(ControlType::kReport, report_of('a', 'a', {3}))) +
              "cttcl" + "r0" + piece(encode_control(ControlType::kFailure, Failure{7, "gone"})) +
              "fc"};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  Node node(std::clamp(input.byte() - '0', 0, kSize - 1));
  while (!input.empty()) {
    switch (input.byte()) {
      case 's': {
        const char name = static_cast<char>(input.byte());
        node.submit(submission(name, static_cast<char>(input.byte())));
        break;
      }
      case 'r': {
        const int from = input.byte() - '0';
        if (!node.receive(from, input.piece())) return 0;  // the engine gives up
        break;
      }
      case 't':
        node.pass_time();
        break;
      case 'l':
        node.leave();
        break;
      case 'f':
        node.fail();
        break;
      default:
        node.conclude();
        break;
    }
  }
  node.conclude();
  return 0;
}
