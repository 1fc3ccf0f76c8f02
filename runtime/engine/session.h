// Session: what one process set has of the engine: its negotiation, what its members' callers have
// enqueued, and what of that runs.
// SPDX-License-Identifier: Apache-2.0
//
// Inside a session its members are numbered from 0; the outside speaks of the job's ranks. Sessions
// know nothing of each other, so a set that waits holds up no other. enqueue() and has_work() from
// any thread; the rest belongs to whoever holds the engine's progress right.
//
//   open ──(a member leaves: the last thing that is decided)──► closing
//        ──(what runs has ended)──► closed
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/engine/execution/execution.h"
#include "runtime/engine/negotiation/negotiation.h"
#include "runtime/engine/negotiation/tensor_groups.h"
#include "runtime/engine/operation.h"
#include "runtime/engine/tensor_queue.h"
#include "runtime/transport/transport.h"
#include "src/base/clock.h"

namespace hv::runtime {

// What this rank's caller enqueued last, in any process set: the message of a stall says it of
// ranks that others wait for. Belongs to the driving thread.
class LastEnqueued {
 public:
  void note(const OperationPtr& operation, TimePoint time) {
    operation_ = operation;
    name_ = operation->name;
    kind_ = operation->description.kind;
    set_ = operation->set;
    time_ = time;
  }
  // "last enqueued allreduce 'w' 61 s ago, which is complete"; to stand behind "rank 3 ".
  std::string words(TimePoint time) const;

 private:
  std::weak_ptr<Operation> operation_;
  std::string name_;
  CollectiveKind kind_ = CollectiveKind::kBarrier;
  std::uint32_t set_ = 0;
  TimePoint time_{};
};

struct SessionConfig {
  std::uint32_t set = 0;  // its number, the same on every rank
  NegotiationConfig negotiation;
  bool deterministic = false;
  Duration straggler_period{};  // so often it is told whom the others wait for; zero: at the end
};

// What a session works with.
struct SetParts {
  std::vector<Backend*> backends;      // in order of preference
  std::shared_ptr<DataPlane> plane{};  // of a set other than 0: what those move data over
  std::shared_ptr<void> keeps{};       // what backends point to
  PairCarrier* pairs = nullptr;        // of set 0: of all sends and receives; else the fabric
};

class Session {
 public:
  // members: ranks of the job, ascending; topology: of the members, numbered by their place there.
  Session(const SessionConfig& config, std::vector<int> members, const Topology& topology,
          SetParts parts);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::uint32_t set() const { return set_; }
  // kArgument for a root that is no member; else as TensorQueue::add.
  Status enqueue(OperationPtr operation);
  bool has_work() const { return !queue_.empty(); }
  Attention attention() const { return execution_.attention(); }
  TimePoint next_look() const {
    const TimePoint next = std::min(execution_.next_look(), negotiation_.next_look());
    return negotiation_.has_open_waits() ? std::min(next, stragglers_.next_look()) : next;
  }

  // Each true when something moved.
  bool take_submissions(TimePoint time, LastEnqueued* last);
  // Callers have begun to wait: what they wait for is not held back.
  void note_waits();
  bool is_holding() const { return negotiation_.is_holding(); }
  bool carry_out();
  bool complete_ended();
  // from: a rank of the job. As Negotiation::receive; also not kOk when that is no member.
  Status receive(int from, std::string_view message, TimePoint time);
  // last: what this rank has to say when others wait for it.
  void conclude(TimePoint time, const LastEnqueued& last);
  bool advance(TimePoint time) { return execution_.advance(time); }
  // (rank of the job, bytes), the set's number in front.
  std::vector<std::pair<int, std::string>> take_messages();
  // How many it has warned of.
  std::size_t warn_of_stalls(TimePoint time);
  // When this rank is the root: whom the others waited for, if it is time to say that.
  void tell_stragglers(TimePoint time);
  // This rank has found a stall that ends the job: the words.
  std::optional<std::string> take_stall_end() { return negotiation_.take_stall_end(); }
  // A stall ends the set, in these words, which every member learns; the first call counts.
  void end(const std::string& words);

  // Sends and receives that were enqueued since the last call, each with the job's rank it is with:
  // whoever takes them completes them with complete_pair(), or drops them when the session closes.
  std::vector<std::pair<OperationPtr, int>> take_pair_operations() {
    return std::exchange(pair_operations_, {});
  }
  void complete_pair(const OperationPtr& operation, Status outcome) {
    queue_.complete(operation, std::move(outcome));
  }
  // The session closes, and nobody touches the memory of sends and receives any more: completes
  // those. True: there were some.
  bool end_pairs();
  PairCarrier* pair_carrier() const { return parts_.pairs; }
  bool has_member(int rank) const { return place_of(rank) >= 0; }

  // Changes of sets that were started since the last call, in order: whoever takes them completes
  // them.
  std::vector<OperationPtr> take_changes() { return std::exchange(changes_, {}); }
  void complete(const OperationPtr& operation, Status outcome) {
    --changes_in_flight_;
    queue_.complete(operation, std::move(outcome));
  }

  // ---- what goes to devices, one set after the other: launch_order.h ----
  // Of set 0: whose turns come, as far as it knows now and in this order, since the last call.
  std::vector<std::uint32_t> take_turns() { return std::exchange(turns_, {}); }
  // Of others, at their root: so many turns that are to be asked for, since the last call.
  std::size_t take_wanted_turns() { return std::exchange(wanted_turns_, 0); }
  void ask_launch(std::uint32_t set) { negotiation_.ask_launch(set); }
  bool has_gated() const { return !gated_.empty(); }
  void start_gated();  // the first one, and the host's that were decided on between it and the next
  // One that was started has not been given to its device yet.
  bool is_launching() const { return execution_.is_launching(); }

  // This rank leaves; the first call counts. why: what callers are told whose operations have not
  // started by the end; "": who has shut down.
  void leave(const std::string& why = {});
  // Instead, for a set that not all members have made: nobody has spoken in it.
  void close_unmade();
  // A member has left: nothing is decided any more.
  bool is_closing() const { return is_closing_; }
  // Why, where that is because one has; "" before.
  std::string closing_words() const {
    return is_closing_ && leaver_ ? closing_reason(*leaver_).message : "";
  }
  // When that is because of a stall; else kOk.
  const Status& stall() const { return stall_; }
  // And what was started has ended.
  bool is_closed() const { return is_closing_ && execution_.is_idle() && gated_.empty(); }
  // Closed by every member: leaves this rank's part of the memory as it was.
  void clear_memory();
  // Not kOk: the ranks no longer agree on what has been done.
  const Status& failure() const { return execution_.failure(); }
  void tell_failure(const std::string& words) { negotiation_.tell_failure(words); }
  // Nothing is taken any more. Throws nothing.
  void begin_to_give_up(const Status& reason);
  // After that devices are to let go of what callers have lent: true once they have; asked until
  // then. Throws nothing.
  bool has_let_go();
  // Completes everything with this reason. Throws nothing.
  void give_up(const Status& reason);

 private:
  int place_of(int rank) const;  // -1: no member
  Status check_pair(Operation& operation) const;
  Status add(OperationPtr operation);
  void start(const StartGroup& group);
  void join_when_settled(TimePoint time);
  void end_join(int last);
  Status closing_reason(int leaver) const;
  void say_stragglers(const std::string& words) const;
  void say_stragglers_at_end();
  void report_stall(const Waiting& stall, TimePoint time) const;
  void close(const Status& reason);

  const std::uint32_t set_;
  const std::vector<int> members_;
  const int self_;  // this rank's place
  const SetParts parts_;
  const ObservationPtr observation_;
  StragglerReport stragglers_;
  Negotiation negotiation_;
  Execution execution_;
  TensorQueue queue_;
  GroupOutcomes group_outcomes_;
  struct Gated {
    std::vector<OperationPtr> operations;
    std::vector<std::int64_t> first_extents;
    bool is_for_device() const {
      return operations.front()->description.memory != MemoryKind::kHost;
    }
  };
  std::deque<Gated> gated_;  // the first one's turn has not come
  std::vector<std::uint32_t> turns_;
  std::size_t wanted_turns_ = 0;
  std::vector<std::pair<OperationPtr, int>> pair_operations_;
  std::vector<OperationPtr> changes_;
  int changes_in_flight_ = 0;  // of this rank; it joins between two
  std::mutex
      enqueue_mutex_;  // guards has_joined_, and keeps what is enqueued before a join before it
  bool has_joined_ = false;  // by its caller, who enqueues nothing until all have
  OperationPtr join_;
  bool is_joining_ = false;    // the negotiation knows
  std::optional<int> leaver_;  // a member has left, and this session closes next
  std::string why_closing_;
  Status stall_;
  std::optional<Status> reason_for_pairs_;  // they are still to be completed, with this
  bool is_leaving_ = false;
  bool is_ending_ = false;
  bool is_closing_ = false;
};

// The set's number in front of a message, which loses it; false when the message is too short.
bool take_set_number(std::string_view* message, std::uint32_t* set);

}  // namespace hv::runtime
