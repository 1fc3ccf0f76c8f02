// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/session.h"

#include <algorithm>
#include <cstring>

#include "runtime/engine/attempt.h"
#include "runtime/engine/negotiation/mismatch.h"
#include "runtime/transport/set_plane.h"
#include "src/base/check.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

// All ranks of the job need no list.
NegotiationConfig of_set(const SessionConfig& session, const std::vector<int>& members,
                         ObservationPtr observation) {
  NegotiationConfig config = session.negotiation;
  if (session.set != 0) config.members = members;
  config.set = session.set;
  config.observation = std::move(observation);
  return config;
}

std::uint64_t nanoseconds_of(Duration duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
}

// One for each member; equal ones where the caller gave none.
Status check_splits(Operation& operation, std::size_t members) {
  const auto refuse = [&](const std::string& why) {
    return Status{StatusCode::kArgument, tensor_words(operation.name) + ": " + why};
  };
  const auto count = static_cast<std::int64_t>(members);
  const std::string ranks =
      std::to_string(members) + " ranks of process set " + std::to_string(operation.set);
  if (operation.splits.empty()) {
    if (operation.first_extent % count != 0)
      return refuse(std::to_string(operation.first_extent) +
                    " rows cannot be cut equally for the " + ranks + "; give splits");
    operation.splits.assign(members, operation.first_extent / count);
  }
  if (operation.splits.size() == members) return Status::success();
  return refuse("there are " + std::to_string(operation.splits.size()) + " splits for the " +
                ranks);
}

Status joined_already(const Operation& operation) {
  return {StatusCode::kArgument,
          tensor_words(operation.name) + ": this rank has joined process set " +
              std::to_string(operation.set) +
              " (hvrun_join): it enqueues nothing there until every rank has joined"};
}

// Words that begin with the operation's own need not be told of which it is.
std::string ending_of(const Operation& operation, const std::string& why) {
  const std::string own = tensor_words(operation.name);
  const bool is_own =
      why.starts_with(own + " ") ||
      (!operation.tag.empty() && why.starts_with(tensor_words(operation.tag) + " "));
  return is_own ? why : own + ": " + why;
}

// What a rank that has joined gives to an allreduce of the others: zeros, and nobody wants the
// result.
OperationPtr absent_operation(const FreshTensor& tensor) {
  auto operation = std::make_shared<Operation>();
  operation->name = tensor.name;
  operation->description = tensor.description.front();
  operation->is_absent = true;
  if (has_own_extents(operation->description.kind)) return operation;  // with no rows
  const auto bytes = static_cast<std::size_t>(operation->description.bytes());
  operation->owned = std::make_shared<std::byte[]>(bytes);
  operation->input = operation->output = operation->owned.get();
  return operation;
}

}  // namespace

Session::Session(const SessionConfig& config, std::vector<int> members, const Topology& topology,
                 SetParts parts)
    : set_(config.set),
      members_(std::move(members)),
      self_(topology.rank),
      parts_(std::move(parts)),
      observation_(or_own(config.negotiation.observation)),
      stragglers_(config.straggler_period),
      negotiation_(of_set(config, members_, observation_), make_control_tree(topology)),
      execution_({{topology.rank, topology.size},
                  config.deterministic,
                  observation_,
                  config.negotiation.stall_limit,
                  config.negotiation.stall_end},
                 parts_.backends),
      queue_(observation_) {}

int Session::place_of(int rank) const {
  const auto found = std::lower_bound(members_.begin(), members_.end(), rank);
  return found == members_.end() || *found != rank ? -1
                                                   : static_cast<int>(found - members_.begin());
}

// A send and a receive of one name may be in flight at once, and with several ranks.
Status Session::check_pair(Operation& operation) const {
  const auto place = operation.description.root;
  const bool sends = operation.description.kind == CollectiveKind::kSend;
  if (place >= static_cast<std::int32_t>(members_.size()) || place == self_) {
    return {StatusCode::kArgument,
            tensor_words(operation.name) + ": rank " + std::to_string(place) + " of process set " +
                std::to_string(operation.set) +
                (place == self_ ? " is this rank itself" : ", which has no such rank") +
                (sends ? ": send it to another" : ": receive it from another")};
  }
  operation.tag = operation.name;
  operation.name = std::string(kOwnPrefix) + (sends ? "send '" : "receive '") + operation.tag +
                   (sends ? "' to rank " : "' from rank ") +
                   std::to_string(members_[static_cast<std::size_t>(place)]);
  return Status::success();
}

Status Session::enqueue(OperationPtr operation) {
  const TensorDescription& description = operation->description;
  if (description.kind == CollectiveKind::kBroadcast &&
      description.root >= static_cast<std::int32_t>(members_.size())) {
    return {StatusCode::kArgument, "tensor '" + printable(operation->name) + "': root " +
                                       std::to_string(description.root) + " is not among the " +
                                       std::to_string(members_.size()) + " ranks of process set " +
                                       std::to_string(set_) + ", which are counted from 0 there"};
  }
  if (is_between_two(description.kind)) {
    if (Status status = check_pair(*operation); !status.ok()) return status;
  }
  if (description.kind == CollectiveKind::kAlltoall) {
    if (Status status = check_splits(*operation, members_.size()); !status.ok()) return status;
  }
  if (operation->device != kHostDevice) {
    Status status = execution_.check_device(*operation);
    if (status.ok()) status = execution_.windows().describe(*operation);
    if (!status.ok()) return status;
  }
  return add(std::move(operation));
}

// What confirms a change that this rank has begun goes on beside a join.
Status Session::add(OperationPtr operation) {
  const CollectiveKind kind = operation->description.kind;
  const bool confirms = kind == CollectiveKind::kSetMade || kind == CollectiveKind::kSetGone;
  const std::lock_guard lock(enqueue_mutex_);
  if (has_joined_ && !confirms) {
    const Status end = queue_.closed(*operation);
    return end.ok() ? joined_already(*operation) : end;
  }
  Status status = queue_.add(std::move(operation));
  if (kind == CollectiveKind::kJoin && status.ok()) has_joined_ = true;
  return status;
}

bool Session::take_submissions(TimePoint time, LastEnqueued* last) {
  const auto operations = queue_.take_new();
  if (!operations.empty()) last->note(operations.back(), time);
  observation_->counters.enqueued.add(operations.size());
  for (const OperationPtr& operation : operations) {
    observation_->timeline.taken(*operation);
    if (is_between_two(operation->description.kind)) {
      const auto place = static_cast<std::size_t>(operation->description.root);
      pair_operations_.emplace_back(operation, members_[place]);
      continue;
    }
    if (operation->description.kind == CollectiveKind::kJoin) {
      join_ = operation;
      continue;
    }
    if (is_set_change(operation->description.kind)) ++changes_in_flight_;
    negotiation_.submit(
        {operation->name, operation->description, operation->first_extent, operation->phase}, time);
  }
  join_when_settled(time);
  return !operations.empty();
}

void Session::note_waits() {
  if (!is_holding()) return;
  for (const OperationPtr& operation : queue_.in_flight())
    if (operation->is_awaited) negotiation_.await(operation->name);
}

void Session::conclude(TimePoint time, const LastEnqueued& last) {
  negotiation_.conclude(time);
  if (!negotiation_.is_asked()) return;
  negotiation_.answer(is_joining_ ? "has joined (hvrun_join)" : last.words(time));
  negotiation_.conclude(time);  // the root may have asked itself
}

// What it has begun to change all ranks confirm, and so must this one.
void Session::join_when_settled(TimePoint time) {
  if (!join_ || is_joining_ || changes_in_flight_ > 0) return;
  is_joining_ = true;
  negotiation_.join(time);
}

void Session::end_join(int last) {
  is_joining_ = false;
  const OperationPtr join = std::exchange(join_, nullptr);
  join->last_joined = last;
  const std::lock_guard lock(enqueue_mutex_);
  queue_.complete(join, Status::success());
  has_joined_ = false;
}

Status Session::receive(int from, std::string_view message, TimePoint time) {
  const int place = place_of(from);
  if (place >= 0) return negotiation_.receive(place, message, time);
  return {StatusCode::kSystem, "rank " + std::to_string(from) + " spoke in process set " +
                                   std::to_string(set_) + ", which it is not in"};
}

std::vector<std::pair<int, std::string>> Session::take_messages() {
  auto messages = negotiation_.take_messages();
  for (auto& [rank, message] : messages) {
    rank = members_[static_cast<std::size_t>(rank)];
    message.insert(0, reinterpret_cast<const char*>(&set_), sizeof set_);
  }
  return messages;
}

bool take_set_number(std::string_view* message, std::uint32_t* set) {
  if (message->size() < sizeof *set) return false;
  std::memcpy(set, message->data(), sizeof *set);
  message->remove_prefix(sizeof *set);
  return true;
}

bool Session::carry_out() {
  const std::vector<Verdict> verdicts = negotiation_.take_verdicts();
  for (const Verdict& verdict : verdicts) {
    if (const auto* group = std::get_if<StartGroup>(&verdict)) {
      start(*group);
    } else if (const auto* refused = std::get_if<FailTensor>(&verdict)) {
      if (const OperationPtr operation = queue_.find(refused->name)) {
        if (is_set_change(operation->description.kind)) --changes_in_flight_;
        queue_.complete(operation, refused->status);
      }
    } else if (const auto* joined = std::get_if<AllJoined>(&verdict)) {
      end_join(joined->last);
    } else if (const auto* next = std::get_if<NextLaunch>(&verdict)) {
      turns_.push_back(next->set);
    } else if (const auto* ended = std::get_if<StallEnded>(&verdict)) {
      stall_ = {StatusCode::kStalled, ended->words};
    } else {
      leaver_ = std::get<RankLeft>(verdict).rank;  // the last verdict there is, as a stall's
    }
  }
  // Changes of sets that were decided on before it are carried out everywhere, so here, too.
  const bool closes = !is_closing_ && (leaver_ || !stall_.ok()) && changes_.empty();
  if (closes) close(!stall_.ok() ? stall_ : closing_reason(*leaver_));
  return !verdicts.empty() || closes;
}

void Session::start(const StartGroup& group) {
  std::vector<OperationPtr> operations;
  for (const FreshTensor& tensor : group.tensors) {
    OperationPtr operation = queue_.find(tensor.name);
    if (operation == nullptr && is_joining_ && !tensor.description.empty())
      operation = absent_operation(tensor);
    HV_CHECK(operation != nullptr, "what is decided on is in flight here: " + tensor.name);
    operation->is_started = true;
    operation->present = tensor.present;
    operations.push_back(std::move(operation));
  }
  if (is_set_change(operations.front()->description.kind)) {
    changes_.push_back(operations.front());  // never fused
    return;
  }
  const std::vector<std::int64_t>& extents = group.tensors.front().first_extents;
  const bool is_for_device = operations.front()->description.memory != MemoryKind::kHost;
  if (!is_for_device && gated_.empty()) return execution_.start(std::move(operations), extents);
  gated_.push_back({std::move(operations), extents});
  if (!is_for_device) return;
  if (set_ == 0) {
    turns_.push_back(0);
  } else if (negotiation_.is_root()) {
    ++wanted_turns_;
  }
}

void Session::start_gated() {
  do {
    Gated group = std::move(gated_.front());
    gated_.pop_front();
    execution_.start(std::move(group.operations), group.first_extents);
  } while (!gated_.empty() && !gated_.front().is_for_device());
}

void Session::end(const std::string& words) {
  if (std::exchange(is_ending_, true)) return;
  negotiation_.end(words);
}

void Session::leave(const std::string& why) {
  if (std::exchange(is_leaving_, true)) return;
  why_closing_ = why;
  negotiation_.leave();
}

void Session::clear_memory() {
  if (parts_.plane) clear_set(*parts_.plane);
}

Status Session::closing_reason(int leaver) const {
  if (!why_closing_.empty()) return {StatusCode::kShutdown, why_closing_};
  std::string words = "this rank has shut down";
  if (set_ != 0) {
    words = "process set " + std::to_string(set_) +
            " is being removed, or a rank of the job, whether of this set or not, has shut down";
  } else if (leaver != self_) {
    words =
        "rank " + std::to_string(members_[static_cast<std::size_t>(leaver)]) +
        " has shut down: it has called hvd.shutdown() or hvrun_shutdown, or its program has "
        "ended; try: if it has failed, see what hvrun says of it at the end; else let every rank "
        "take as many steps, or join where one has fewer (hvd.join(), hvrun_join)";
  }
  return {StatusCode::kShutdown, words};
}

void Session::close(const Status& reason) {
  is_closing_ = true;
  say_stragglers_at_end();
  queue_.close(reason);
  for (const OperationPtr& operation : queue_.in_flight()) {
    const CollectiveKind kind = operation->description.kind;
    if ((operation->is_started && !is_set_change(kind)) || is_between_two(kind)) continue;
    queue_.complete(operation, {reason.code, ending_of(*operation, reason.message)});
  }
  reason_for_pairs_ = reason;
}

// Whoever comes to know of it later can enqueue nothing that would never end.
void Session::close_unmade() {
  is_closing_ = true;
  queue_.close(closing_reason(self_));
}

bool Session::end_pairs() {
  if (!reason_for_pairs_) return false;
  const Status& reason = *reason_for_pairs_;
  bool any = false;
  for (const OperationPtr& operation : queue_.in_flight()) {
    if (!is_between_two(operation->description.kind)) continue;
    queue_.complete(operation, {reason.code, ending_of(*operation, reason.message)});
    any = true;
  }
  reason_for_pairs_.reset();
  return any;
}

bool Session::complete_ended() {
  bool any = false;
  for (auto& ended : execution_.take_ended()) {
    for (const auto& [operation, outcome] : group_outcomes_.add(std::move(ended))) {
      if (!operation->is_absent) queue_.complete(operation, outcome);
      any = true;
    }
  }
  return any;
}

// What memory is left may not be enough for words: whatever is tried by itself is left undone
// then, and the rest goes on.
void Session::begin_to_give_up(const Status& reason) {
  if (!is_closing_) attempt([&] { say_stragglers_at_end(); });
  queue_.close(reason);
  gated_.clear();
}

bool Session::has_let_go() {
  bool have_let_go = true;
  attempt([&] { have_let_go = execution_.abandon(); });
  return have_let_go;
}

void Session::give_up(const Status& reason) {
  attempt([&] {
    execution_.give_up(reason);
    complete_ended();
  });
  queue_.fail_all(reason);
}

void Session::tell_stragglers(TimePoint time) {
  if (!negotiation_.is_root()) return;
  if (stragglers_.is_due(time)) negotiation_.charge_open_waits(time);
  const WaitLedger& waits = negotiation_.waits();
  const std::string words = stragglers_.periodic(waits, members_, time);
  if (!words.empty()) say_stragglers(words);
  Counters& counters = observation_->counters;
  const auto total = nanoseconds_of(waits.total());
  if (set_ != 0 || total == counters.straggler_nanoseconds.value()) return;
  counters.straggler_nanoseconds.set(total);
  counters.worst_rank = static_cast<std::int32_t>(waits.worst_rank());
  counters.worst_rank_nanoseconds.set(
      nanoseconds_of(waits.by_rank().at(waits.worst_rank()).waited));
}

void Session::say_stragglers(const std::string& words) const {
  HV_LOG(kWarn, "engine") << (set_ == 0 ? "" : "process set " + std::to_string(set_) + ": ")
                          << words;
}

// Whoever has not come by now was waited for, too.
void Session::say_stragglers_at_end() {
  if (!negotiation_.is_root()) return;
  negotiation_.charge_open_waits(stragglers_.last_seen());
  const std::string late = stragglers_.final(negotiation_.waits(), members_);
  if (!late.empty()) say_stragglers(late);
}

// Whoever has started this rank may know where those stand that it waits for. One that has joined
// waits for the others' data by its own wish.
void Session::report_stall(const Waiting& stall, TimePoint time) const {
  if (stall.name == kJoinName) return;
  std::vector<int> missing;
  for (const std::uint32_t rank : stall.missing)
    missing.push_back(job_rank(members_, static_cast<int>(rank)));
  observation_->stall_report->note(told_stall(stall.name, time - stall.since, missing));
}

std::size_t Session::warn_of_stalls(TimePoint time) {
  std::vector<Waiting> stalls = negotiation_.take_stalls();
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const Waiting& a, const Waiting& b) { return a.since < b.since; });
  for (const Waiting& stall : stalls) report_stall(stall, time);
  if (!stalls.empty()) {
    tell_stalls(stall_lines(stalls, members_, static_cast<int>(members_.size()),
                            negotiation_.stall_end(), time));
  }
  const auto groups = negotiation_.take_group_stalls();
  for (const auto& group : groups) HV_LOG(kWarn, "engine") << stall_words(group, time);
  if (const auto silence = negotiation_.take_silence()) {
    HV_LOG(kWarn, "engine") << silence_words(*silence, members_);
    report_stall(
        {silence->name, time - silence->waited, {static_cast<std::uint32_t>(silence->rank)}, {}},
        time);
  }
  return stalls.size() + groups.size();
}

std::string LastEnqueued::words(TimePoint time) const {
  if (name_.empty()) return "has enqueued nothing yet";
  constexpr std::size_t kMostNameBytes = 128;
  const std::string what =
      name_.starts_with(kOwnPrefix)
          ? tensor_words(name_.substr(0, kMostNameBytes))
          : std::string(collective_name(kind_)) + " '" + printable(name_, kMostNameBytes) + "'";
  std::string words = "last enqueued " + what + " " + format_duration(time - time_) + " ago";
  if (set_ != 0) words += " in process set " + std::to_string(set_);
  const auto operation = operation_.lock();
  const bool is_open = operation && !operation->is_done.load(std::memory_order_acquire);
  return words + (is_open ? ", which is not complete" : ", which is complete");
}

}  // namespace hv::runtime
