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
// (f) What would be too much for one message goes in several: rank 0's order holds within each.
//
// Cost of a cached tensor: 8 bytes per edge up, 8 down, and twice the depth of the tree in hops.
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

#include "runtime/engine/control_messages.h"
#include "runtime/engine/control_tree.h"
#include "runtime/engine/readiness.h"
#include "runtime/engine/response_cache.h"
#include "runtime/engine/stall_inspector.h"
#include "src/base/status.h"

namespace hv::runtime {

struct NegotiationConfig {
  std::uint32_t epoch = 0;
  std::int64_t fusion_threshold_bytes = 64 << 20;
  std::size_t cache_capacity = 1024;
  Duration stall_limit = std::chrono::seconds(60);
  std::size_t message_bytes = 1 << 20;  // reports and decisions are cut near this
};

// One tensor that this rank has ready.
struct Submission {
  std::string name;
  TensorDescription description;
  std::int64_t first_extent = 0;  // allgather: this rank's own
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
using Verdict = std::variant<StartGroup, FailTensor, RankLeft>;

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
  // This rank wants to shut down.
  void leave();
  // This rank has failed: tells its neighbours in the tree, who do the same.
  void tell_failure(const std::string& words);
  // Gathers what follows from the inputs so far. Call after them, then take the outputs.
  void conclude(TimePoint time);

  std::vector<std::pair<int, std::string>> take_messages() { return std::exchange(messages_, {}); }
  std::vector<Verdict> take_verdicts() { return std::exchange(verdicts_, {}); }
  // At the root: stalls to warn of.
  std::vector<Waiting> take_stalls() { return std::exchange(stalls_, {}); }
  // Below the root: the parent, when it is silent.
  std::optional<Silence> take_silence() { return std::exchange(silence_, std::nullopt); }
  // When conclude() has something to do although nothing came in.
  TimePoint next_look() const;
  // After a rank has left nothing is decided any more.
  bool is_over() const { return is_over_; }

 private:
  struct Awaiting {
    Submission submission;
    std::uint64_t order;  // of submission here
    TimePoint since;
  };
  struct Ready;

  Status receive_report(const ControlTree::Child& child, std::string_view bytes, TimePoint time);
  Status receive_decision(std::string_view bytes);
  Status receive_sign_of_life(std::string_view bytes);
  Status receive_failure(int from, std::string_view bytes);
  void report_up();
  void send_report();
  void decide();
  Decision next_decision();
  std::vector<Ready> collect_ready(Decision& decision);
  void send_down(const Decision& decision);
  bool resolve(const Decision& decision, std::vector<StartGroup>* starts);
  bool can_start(const StartGroup& start) const;
  bool apply(const Decision& decision);
  void insert(const Decision& decision, const std::vector<Submission>& fresh);
  // Somebody of this subtree waits for something.
  bool is_open() const { return !readiness_.empty() || !awaiting_.empty(); }
  void look_round(TimePoint time);
  void look_for_stalls(TimePoint time);
  void look_at_parent(TimePoint time);

  const NegotiationConfig config_;
  const ControlTree tree_;
  ResponseCache cache_;
  ReadinessTable readiness_;
  StallInspector stalls_inspector_;
  ParentWatch parent_watch_;
  std::unordered_map<std::string, Awaiting> awaiting_;  // this rank's own
  std::uint64_t submissions_ = 0;
  std::uint64_t decisions_ = 0;         // applied
  Report report_;                       // grows until conclude()
  std::vector<std::uint32_t> leaving_;  // root: who asked to
  std::vector<std::pair<int, std::string>> messages_;
  std::vector<Verdict> verdicts_;
  std::vector<Waiting> stalls_;
  std::optional<Silence> silence_;
  bool is_over_ = false;
};

}  // namespace hv::runtime
