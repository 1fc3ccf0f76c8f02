// Negotiation: the ranks agree on which tensors are ready everywhere, and in which order they
// travel.
// SPDX-License-Identifier: Apache-2.0
//
// A pure state machine: inputs in, messages and verdicts out, time passed in; nothing blocks,
// nothing is sent here. Each rank is a node of the control tree.
//
// (a) A rank submits a tensor. In the response cache, exactly as it is now: its number is enough.
// Else its whole description is reported.
//
// (b) A node waits until its whole subtree has the tensor ready, then reports it once to its
// parent.
//
// (c) The root, where everything is complete in the end, compares descriptions, orders what is
// ready as rank 0 submitted it, plans the fusion and sends one decision down the tree.
//
// (d) Every node passes the decision on, then applies it: starts the groups in order, fails what
// was refused, and updates its cache, which therefore is the same everywhere.
//
// (e) An entry that a decision evicts may be under way as a number. Each node keeps what it has
// evicted until every child has applied the same decision (a report says how many the sender has
// applied, and edges keep their order): a number that arrives until then is turned into the
// description, and goes on as that. So a tensor is reported once per use, whatever happens to its
// entry.
//
// (f) Tensors that come together step after step become a bucket, which is one number: see
// prediction.h.
//
// (g) What would be too much for one message goes in several: rank 0's order holds within each.
//
// Cost of a bucket: 8 bytes per edge up, 8 down, and twice the depth of the tree in hops; of a
// cached tensor outside of one: a bit or a little more up, 8 bytes down.
// A rank that fails says so to its neighbours, with the reason, and they fail and pass it on:
// whoever knows of a loss first tells all. While something is open a node gives its children signs
// of life, so that they can tell a parent that has stopped. A rank that leaves says so up the tree;
// the root's word of it is the last decision of this epoch.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/engine/negotiation/control_messages.h"
#include "runtime/engine/negotiation/control_tree.h"
#include "runtime/engine/negotiation/prediction.h"
#include "runtime/engine/negotiation/readiness.h"
#include "runtime/engine/negotiation/response_cache.h"
#include "runtime/engine/negotiation/stall_inspector.h"
#include "runtime/engine/negotiation/stall_questions.h"
#include "runtime/engine/negotiation/tensor_groups.h"
#include "runtime/engine/observation.h"
#include "src/base/status.h"

namespace hv::runtime {

struct NegotiationConfig {
  std::uint32_t epoch = 0;
  std::vector<int> members{};  // the job's rank of each, for words
  std::uint32_t set = 0;       // whose members they are
  ObservationPtr observation{};
  std::int64_t fusion_threshold_bytes = 64 << 20;
  std::int64_t bucket_bytes = 25 << 20;  // the most of a bucket (prediction.h); 0: no buckets
  std::size_t cache_capacity = 1024;
  Duration stall_limit = std::chrono::seconds(60);
  Duration stall_end{};                 // a tensor that waits so long ends the job; zero: none does
  std::size_t message_bytes = 1 << 20;  // reports and decisions are cut near this
};

// One tensor that this rank has ready.
struct Submission {
  std::string name;
  TensorDescription description;
  std::int64_t first_extent = 0;  // where it varies: this rank's own
  std::uint64_t phase = 0;        // see BucketPlanner::observe
};

// What to do now, in order; equal on all ranks.
struct StartGroup {
  std::vector<FreshTensor> tensors;
};
struct FailTensor {
  std::string name;
  Status status;
};
struct RankLeft {
  int rank;
};
struct AllJoined {
  int last;
};
struct StallEnded {
  std::string words;
};
struct NextLaunch {
  std::uint32_t set;
};
using Verdict = std::variant<StartGroup, FailTensor, AllJoined, RankLeft, StallEnded, NextLaunch>;

class Negotiation {
 public:
  Negotiation(const NegotiationConfig& config, ControlTree tree);
  Negotiation(const Negotiation&) = delete;
  Negotiation& operator=(const Negotiation&) = delete;

  // The name is not in flight here already.
  void submit(Submission submission, TimePoint time);
  // kPeerLost: the sender has failed, in its words. Else not kOk: the message is none that a rank
  // of this build and epoch sends.
  Status receive(int from, std::string_view message, TimePoint time);
  // A caller waits for this tensor, which is therefore not held back for others.
  void await(const std::string& name);
  // Some tensors are held back here until others are ready.
  bool is_holding() const { return prediction_.is_holding(); }
  // This rank has run out of data: until the verdict AllJoined it submits nothing, and takes part
  // in the others' allreduces all the same.
  void join(TimePoint time);
  // This rank wants to shut down.
  void leave();
  // A stall, in these words, ends the job: everybody's verdict, after which nothing is decided.
  void end(const std::string& words);
  // Another set asks for a turn: all ranks hear of it in the order of this set's groups.
  void ask_launch(std::uint32_t set) {
    (tree_.is_root() ? launches_ : report_.launches).push_back(set);
  }
  // This rank has failed: tells its neighbours in the tree, who do the same.
  void tell_failure(const std::string& words);
  // Gathers what follows from the inputs so far. Call after them, then take the outputs.
  void conclude(TimePoint time);

  std::vector<std::pair<int, std::string>> take_messages() { return std::exchange(messages_, {}); }
  std::vector<Verdict> take_verdicts() { return std::exchange(verdicts_, {}); }
  Duration stall_end() const { return config_.stall_end; }
  // At the root: stalls to warn of.
  std::vector<Waiting> take_stalls() { return stalls_inspector_.news(std::exchange(stalls_, {})); }
  // The same of groups that are not whole.
  std::vector<TensorGroups::Incomplete> take_group_stalls() {
    return std::exchange(group_stalls_, {});
  }
  // At the root, once: a stall has lasted for stall_end; whoever takes it ends the job.
  std::optional<std::string> take_stall_end() { return std::exchange(stall_end_, std::nullopt); }
  // Others wait for this rank: answer() says where it stands, behind "rank N ".
  bool is_asked() const { return questions_.is_asked(); }
  void answer(const std::string& words) { questions_.answer(words, &messages_); }
  // Below the root: the parent, when it is silent.
  std::optional<Silence> take_silence() { return std::exchange(silence_, std::nullopt); }
  // When conclude() has something to do although nothing came in.
  TimePoint next_look() const;
  bool is_root() const { return tree_.is_root(); }
  // At the root: who was waited for. So far, at any time.
  const WaitLedger& waits() const { return readiness_.arrivals().ledger(); }
  bool has_open_waits() const { return tree_.is_root() && !readiness_.empty(); }
  // At the root: waits whose only missing rank it knows are charged up to now.
  void charge_open_waits(TimePoint time);
  // After a rank has left, or a stall has ended the job, nothing is decided any more.
  bool is_over() const { return is_over_; }

 private:
  struct Awaiting {
    Submission submission;
    std::uint64_t order;  // of submission here
    TimePoint since;
  };

  Status bad_message(int from, const char* what) const;
  Status receive_report(const ControlTree::Child& child, std::string_view bytes, TimePoint time);
  Status receive_decision(std::string_view bytes);
  bool take_buckets(const Report& report, int from, TimePoint time);
  void deviate();
  TimePoint patience_ends() const;
  void give_up_buckets();
  void join_readiness(int source);
  void count_ready(const std::vector<Prediction::Ready>& all);
  bool announce(const std::vector<BucketNumbers>& buckets);
  void plan_buckets(Decision* decision);
  Status receive_sign_of_life(std::string_view bytes);
  Status receive_failure(int from, std::string_view bytes);
  void report_up();
  void send_report();
  void decide(TimePoint time);
  Decision next_decision(TimePoint time);
  std::vector<ReadyTensor> collect_ready(Decision& decision, TimePoint time);
  ReadyTensor ready_tensor(const CompleteTensor& tensor);
  bool is_absent_from(const FreshTensor& tensor) const;
  void note_joined(std::uint32_t rank);
  std::vector<Waiting> waiting() const;
  void send_down(const Decision& decision);
  bool resolve(const Decision& decision, std::vector<StartGroup>* starts);
  bool can_start(const StartGroup& start) const;
  bool apply(const Decision& decision);
  const std::vector<std::uint64_t>* numbers_of(const Group& group) const;
  bool evicts(const Decision& decision) const;
  void insert(const Decision& decision, const std::vector<Submission>& fresh);
  // Somebody of this subtree waits for something.
  bool is_open() const {
    return !readiness_.empty() || !awaiting_.empty() || !joined_.empty() || !groups_.empty() ||
           prediction_.is_open();
  }
  void look_round(TimePoint time);
  void look_for_stalls(TimePoint time);
  void look_for_group_stalls(TimePoint time);
  void look_for_end(TimePoint time);
  void tell_answered(TimePoint time);
  void mark_ready(const ControlTree::Child& child, const Report& report,
                  std::vector<std::uint64_t> numbers);
  std::string words_for_mark(const std::vector<int>& ranks) const;
  void look_at_parent(TimePoint time);

  const NegotiationConfig config_;
  const ObservationPtr observation_;
  const ControlTree tree_;
  ResponseCache cache_;
  ReadinessTable readiness_;
  Prediction prediction_;
  BucketPlanner planner_;      // root
  bool is_given_up_ = false;   // root: with the next decision
  bool has_deviated_ = false;  // from the plan that is live: so much was said
  TensorGroups groups_;        // root
  JoinedRanks joined_;         // of this subtree
  bool has_joined_ = false;    // this rank
  TimePoint joined_since_{};
  StallInspector stalls_inspector_;
  StallInspector groups_inspector_;
  ParentWatch parent_watch_;
  StallQuestions questions_;
  std::unordered_map<std::string, Awaiting> awaiting_;  // this rank's own
  std::uint64_t submissions_ = 0;
  std::uint64_t decisions_ = 0;  // applied
  Report report_;                // grows until conclude()
  std::vector<std::uint32_t> newly_joined_;
  std::vector<std::uint32_t> leaving_;   // root: who asked to
  std::string ending_;                   // root: a stall ends the job
  std::vector<std::uint32_t> launches_;  // root: to be told with the next decision
  std::string ending_stall_;             // root: this one ends the job once its answers are there
  bool has_ended_ = false;               // root: was told to
  std::vector<std::pair<int, std::string>> messages_;
  std::vector<Verdict> verdicts_;
  std::vector<Waiting> stalls_;
  std::vector<TensorGroups::Incomplete> group_stalls_;
  std::optional<Silence> silence_;
  std::optional<std::string> stall_end_;
  bool is_over_ = false;
};

}  // namespace hv::runtime
