// A rank's negotiation with peers that send any bytes, between submissions of its own.
// SPDX-License-Identifier: Apache-2.0
//
// The first byte picks the node of a job of two hosts with two ranks each: '0' the root, '2' one
// with a parent and a child, '3' a leaf. Then: s NAME KIND submit, r FROM PIECE receive, c
// conclude, w NAME wait for it, t time passes, j join, l leave, f fail. KIND: a and i allreduces, g
// an allgather, k an allreduce of a group of two.
#include "runtime/engine/negotiation/negotiation.h"

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
  made.description.group = kind == 'k' ? 5 : 0;
  made.description.group_size = kind == 'k' ? 2 : 0;
  return made;
}

NegotiationConfig config() {
  NegotiationConfig config;
  config.epoch = 7;
  config.fusion_threshold_bytes = 64;
  config.cache_capacity = 2;
  config.message_bytes = 300;
  config.stall_end = std::chrono::seconds(120);
  return config;
}

// One rank as its engine drives it, which may rely on what is checked here.
class Node {
 public:
  explicit Node(int rank)
      : rank_(rank), tree_(tree_of(rank)), negotiation_(config(), tree_of(rank)) {}

  void submit(const Submission& tensor) {
    if (is_over_ || has_joined_ || !in_flight_.emplace(tensor.name, tensor).second) return;
    negotiation_.submit(tensor, time_);
  }
  bool receive(int from, std::string_view message) {
    const Status status = negotiation_.receive(from, message, time_);
    HV_CHECK(status.ok() || !status.message.empty(), "a refusal has words");
    return status.ok();
  }
  void join() {
    if (is_over_ || std::exchange(has_joined_, true)) return;
    negotiation_.join(time_);
  }
  void await(char name) { negotiation_.await(std::string(1, name)); }
  void leave() { negotiation_.leave(); }
  void ask_launch(std::uint32_t set) { negotiation_.ask_launch(set); }
  void fail() { negotiation_.tell_failure("lost"); }
  void pass_time() { time_ += std::chrono::seconds(31); }
  void conclude() {
    negotiation_.conclude(time_);
    if (negotiation_.is_asked()) negotiation_.answer("stands here");
    if (const auto words = negotiation_.take_stall_end()) negotiation_.end(*words);
    (void)negotiation_.next_look();
    for (const Verdict& verdict : negotiation_.take_verdicts())
      std::visit([this](const auto& one) { check(one); }, verdict);
    for (const auto& [to, message] : negotiation_.take_messages()) check_message(to, message);
    for (const Waiting& stall : negotiation_.take_stalls()) {
      for (const std::uint32_t rank : stall.missing) HV_CHECK(rank < kSize, "a rank of this job");
      HV_CHECK(!stall_words(stall, {}, kSize, time_).empty(), "words");
    }
  }

 private:
  void check(const StartGroup& group) {
    HV_CHECK(!group.tensors.empty(), "something starts");
    for (const FreshTensor& tensor : group.tensors) {
      const TensorDescription& description = description_of(tensor);
      HV_CHECK(
          group.tensors.size() == 1 || (description.kind == CollectiveKind::kAllreduce &&
                                        description.type == description_of(group.tensors[0]).type),
          "what travels together is of one kind and type");
    }
    for (const FreshTensor& tensor : group.tensors)
      HV_CHECK(in_flight_.erase(tensor.name) == 1 || has_joined_, "each tensor once");
  }
  const TensorDescription& description_of(const FreshTensor& tensor) {
    const auto own = in_flight_.find(tensor.name);
    if (own != in_flight_.end()) {
      check_extents(own->second, tensor.first_extents);
      return own->second.description;
    }
    HV_CHECK(has_joined_ && tensor.present > 0 && tensor.description.size() == 1,
             "what starts is in flight here, once, or described to a rank that has joined");
    HV_CHECK(allows_absence(tensor.description[0].kind), "zeros are for allreduces");
    return tensor.description[0];
  }
  void check_extents(const Submission& own, const std::vector<std::int64_t>& extents) {
    if (!has_own_extents(own.description.kind)) {
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
  void check(const AllJoined& all) {
    HV_CHECK(has_joined_ && all.last >= 0 && all.last < kSize, "all, so this rank too");
    has_joined_ = false;
  }
  void check(const RankLeft& left) {
    HV_CHECK(left.rank >= 0 && left.rank < kSize, "a rank of this job");
    is_over_ = true;
    in_flight_.clear();
  }
  void check(const StallEnded& end) {
    HV_CHECK(!end.words.empty(), "the end has words");
    is_over_ = true;
    in_flight_.clear();
  }
  void check(const NextLaunch&) { HV_CHECK(!is_over_, "no turn comes after the end"); }
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
  bool has_joined_ = false;
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

// Two tensors that come together, until they are a bucket; then whole, and with a wait between.
std::vector<std::string> bucket_seeds() {
  Report both;
  both.epoch = 7;
  both.numbers = pack_numbers({1, 2});
  Report bucket;
  bucket.epoch = 7;
  bucket.buckets = {1};
  Report other = bucket;
  other.deviates = 1;
  const auto report = [](char from, const Report& what) {
    return received(from, encode_control(ControlType::kReport, what));
  };
  std::string learning =
      "0saasba" + report('1', report_of('a', 'a', {1})) + report('2', report_of('a', 'a', {2, 3})) +
      report('1', report_of('b', 'a', {1})) + report('2', report_of('b', 'a', {2, 3})) + "c";
  for (int i = 0; i < 4; ++i) learning += "saasba" + report('1', both) + report('2', both) + "c";
  Decision announced;
  announced.epoch = 7;
  announced.groups = {{{}, {{"a", {}}, {"b", {}}}}};
  announced.buckets = {{1, 2}};
  Decision whole;
  whole.epoch = 7;
  whole.groups.push_back({.bucket = 1});
  Decision given_up;
  given_up.epoch = 7;
  given_up.gives_up = true;
  const auto decision = [](const Decision& what) {
    return received('2', encode_control(ControlType::kDecision, what));
  };
  const std::string told = "saasbac" + decision(announced) + "saa";
  return {learning + "saasba" + report('1', bucket) + report('2', bucket) + "csaa" +
              report('1', bucket) + "wac" + report('2', both) + "c",
          learning + "saa" + report('2', other) + report('1', bucket) + "csbattc",
          "3" + told + "c" + "sbac" + decision(whole) + "csaac" + decision(given_up) + "c",
          "3" + told + "wac" + decision(given_up) + "csbac" + decided({{{1, 2}, {}}}) + "c"};
}

// Stalls: rank 0 asks, rank 2 is asked and passes on; answers; the end of the job.
std::vector<std::string> stall_seeds() {
  const std::string waits =
      "0sattt" + std::string("c") +
      received('2', encode_control(ControlType::kStallAnswer, StallAnswer{7, 1, 3, "works"})) +
      received('1', encode_control(ControlType::kStallAnswer, StallAnswer{7, 1, 1, "works"})) +
      "ctttttc";
  Report stalled;
  stalled.epoch = 7;
  stalled.ending = "a tensor waits";
  stalled.launches = {1, 5};
  Decision over;
  over.epoch = 7;
  over.launches = {5, 1, 2};
  over.ending = "a tensor waits";
  const std::string asked =
      "2sa" +
      received('0', encode_control(ControlType::kStallQuestion, StallQuestion{7, 1, {2, 3}})) +
      "c" +
      received('3', encode_control(ControlType::kStallAnswer, StallAnswer{7, 1, 3, "works"})) +
      "c" + received('3', encode_control(ControlType::kReport, stalled)) + "c" +
      received('0', encode_control(ControlType::kDecision, over)) + "c";
  return {waits + "n1c", "n2" + asked};
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
  rest.numbers = pack_numbers({1, 2});
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
  Report joining = report_of('w', 'a', {3});
  joining.joined = {2};
  Report all_joined;
  all_joined.epoch = 7;
  all_joined.joined = {3};
  Report first_joined = all_joined;
  first_joined.joined = {1};
  const std::string joined = received('2', encode_control(ControlType::kReport, joining)) + "swaj" +
                             received('1', encode_control(ControlType::kReport, first_joined)) +
                             "c" + received('2', encode_control(ControlType::kReport, all_joined)) +
                             "ctsaac";
  FreshTensor absent{"x", {}, 2, {submission('x', 'a').description}};
  Decision end;
  end.epoch = 7;
  end.last_joined = 1;
  const std::string group =
      std::string("0skkc") +
      received('1', encode_control(ControlType::kReport, report_of('k', 'k', {1}))) +
      received('2', encode_control(ControlType::kReport, report_of('k', 'k', {2, 3}))) + "cttsmkc";
  std::vector<std::string> all = {
      "0" + joined,
      group,
      "3j" + std::string("c") + decided({{{}, {absent}}}) +
          received('2', encode_control(ControlType::kDecision, end)) + "csaac",
      root,
      again,
      root + received('2', encode_control(ControlType::kReport, rest)) + "c",
      leaf,
      "3saasiicsgg" + decided({{{}, {{"a", {}}, {"i", {}}}}}) + "c",
      "3saac" + received('2', encode_control(ControlType::kDecision, last)) + "c",
      "2saar3" + piece(encode_control(ControlType::kReport, report_of('a', 'a', {3}))) + "cttcl" +
          "r0" + piece(encode_control(ControlType::kFailure, Failure{7, "gone"})) + "fc"};
  for (std::string& one : stall_seeds()) all.push_back(std::move(one));
  for (std::string& one : bucket_seeds()) all.push_back(std::move(one));
  return all;
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
      case 'w':
        node.await(static_cast<char>(input.byte()));
        break;
      case 't':
        node.pass_time();
        break;
      case 'j':
        node.join();
        break;
      case 'l':
        node.leave();
        break;
      case 'n':
        node.ask_launch(input.byte());
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
