// The engine's step.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include "runtime/engine/attempt.h"
#include "src/base/check.h"
#include "src/base/clock.h"
#include "src/base/log.h"

namespace hv::runtime {
namespace {

// What GPUs do for a job that has failed: less than the time in which all ranks are to hear of it.
constexpr std::chrono::seconds kLetGoWithin{2};
constexpr std::chrono::milliseconds kBetweenLooks{1};

EngineConfig with(EngineConfig config, const ObservationPtr& observation) {
  config.negotiation.observation = observation;
  return config;
}

}  // namespace

Engine::Engine(const EngineConfig& config, Fabric& fabric, SetParts all, SetMaker make)
    : fabric_(fabric),
      rank_(fabric.topology().rank),
      observation_(or_own(config.negotiation.observation)),
      sets_(with(config, observation_), fabric.topology(), std::move(all), std::move(make)),
      pairs_(fabric.data_plane(), config.negotiation.stall_limit, config.negotiation.stall_end,
             sets_.all().pair_carrier()) {}

Status Engine::enqueue(OperationPtr operation) {
  operation->phase = waits_;
  return sets_.enqueue(std::move(operation));
}

// A waiter writes waits_ before it reads is_holding_, a step the other way round: one of them sees
// the other.
bool Engine::await(const Operation& operation) {
  operation.is_awaited = true;
  ++waits_;
  return is_holding_;
}

TimePoint Engine::next_look() const {
  if (is_finished()) return TimePoint::max();
  if (state_ == State::kFailing) return std::min(let_go_by_, now() + kBetweenLooks);
  if (is_holding_ && waits_ != seen_waits_) return TimePoint{};
  return running_time_.clock_time(std::min(sets_.next_look(), pairs_.next_look()));
}

Engine::Step Engine::step(TimePoint time) {
  if (is_finished()) {
    flush();
    return {};
  }
  if (state_ == State::kFailing) return go_on_failing();
  try {
    return take_step(time);
  } catch (const std::bad_alloc&) {
    fail_by_exception(StatusCode::kMemory, "out of memory");
  } catch (const std::exception& error) {
    fail_by_exception(StatusCode::kSystem, error.what());
  }
  return {true, true};
}

Engine::Step Engine::take_step(TimePoint clock_time) {
  const TimePoint time = running_time_.at(clock_time);
  Step result;
  fabric_.progress();
  if (is_ended_from_outside()) return {true, true};
  const std::uint64_t waits = waits_;  // before what those callers had enqueued is taken
  take_submissions(time, &result);
  if (std::exchange(seen_waits_, waits) != waits)
    sets_.for_each([](Session& set) { set.note_waits(); });
  result.has_progressed |= take_messages(time);
  sets_.for_each([&](Session& set) { set.conclude(time, last_enqueued_); });
  result.has_progressed |= send_messages();
  sets_.for_each([&](Session& set) { result.has_completed |= set.carry_out(); });
  result.has_progressed |= launches_.advance(sets_);
  Status trouble;
  sets_.for_each([&](Session& set) {
    result.has_progressed |= set.advance(time);
    if (set.failure().ok()) result.has_completed |= set.complete_ended();  // else in fail()
    if (trouble.ok()) trouble = set.failure();
    observation_->counters.stalls.add(set.warn_of_stalls(time));
    set.tell_stragglers(time);
    if (const auto words = set.take_stall_end()) result.has_progressed |= end_by_stall(*words);
  });
  bool is_holding = false;
  sets_.for_each([&](Session& set) { is_holding |= set.is_holding(); });
  if (is_holding != is_holding_) is_holding_ = is_holding;
  if (Status status = advance_pairs(time, &result); trouble.ok()) trouble = status;
  if (trouble.ok()) trouble = sets_.apply_changes();
  result.has_progressed |= result.has_completed;
  if (result.has_progressed) ++observation_->counters.steps;
  if (!trouble.ok()) fail(trouble);
  if (sets_.all().is_closing()) sets_.leave(sets_.all().stall());
  if (state_ == State::kOpen && sets_.are_closed()) {
    fabric_.messenger().say_goodbye();  // now: a program may take long, or an exception, to its end
    end_as(State::kClosed);
  }
  return result;
}

// The root of set 0 tells every rank, in the course of its decisions.
bool Engine::end_by_stall(const std::string& words) {
  HV_LOG(kError, "engine") << words;
  sets_.all().end(words);
  return true;
}

void Engine::take_submissions(TimePoint time, Step* result) {
  sets_.for_each([&](Session& set) {
    result->has_progressed |= set.take_submissions(time, &last_enqueued_);
    for (const auto& [operation, peer] : set.take_pair_operations())
      pairs_.submit(operation, peer, time);
  });
}

Status Engine::advance_pairs(TimePoint time, Step* result) {
  sets_.for_each([&](Session& set) {
    if (!set.is_closing()) return;
    pairs_.drop(set.set());
    complete_pairs(result);
    result->has_completed |= set.end_pairs();
  });
  int culprit = 0;
  const Status status = pairs_.advance(time, &culprit, &result->has_progressed);
  const bool is_own = culprit < 0;
  if (!status.ok() && !is_own) fabric_.mark_lost(culprit, {StatusCode::kPeerLost, status.message});
  complete_pairs(result);
  warn_of_pairs(time);
  if (const auto words = pairs_.take_stall_end()) result->has_progressed |= end_by_stall(*words);
  return is_own ? status : Status::success();
}

void Engine::warn_of_pairs(TimePoint time) {
  std::vector<std::string> words;
  for (PairWarning& warning : pairs_.take_stalls(time)) {
    const PairStall& stall = warning.stall;
    words.push_back(std::move(warning.words));
    if (!stall.is_on_gpu)  // else nobody else is waited for
      observation_->stall_report->note(told_stall(stall.name, time - stall.since, {stall.peer}));
  }
  observation_->counters.stalls.add(words.size());
  tell_stalls(words);
}

void Engine::complete_pairs(Step* result) {
  for (auto& [operation, outcome] : pairs_.take_ended()) {
    sets_.find(operation->set)->complete_pair(operation, std::move(outcome));
    result->has_completed = true;
  }
}

bool Engine::is_ended_from_outside() {
  if (is_leave_requested_) sets_.leave();
  Status health = fabric_.health();
  if (health.ok()) health = end_reason_;
  if (health.ok() && is_abort_requested_)
    health = {StatusCode::kShutdown, "this rank has shut down"};
  if (health.ok()) return false;
  fail(health);
  return true;
}

bool Engine::take_messages(TimePoint time) {
  bool any = false;
  int from = 0;
  std::string message;
  while (fabric_.messenger().receive(&from, &message)) {
    any = true;
    const Status status = deliver(from, message, time);
    if (status.code == StatusCode::kPeerLost) {
      end_reason_ = status;
    } else if (!status.ok()) {
      // Whoever speaks another language cannot be worked with: it is as good as lost.
      fabric_.mark_lost(from, {StatusCode::kPeerLost, status.message});
    }
  }
  return any;
}

Status Engine::deliver(int from, std::string_view message, TimePoint time) {
  std::uint32_t set = 0;
  const bool is_whole = take_set_number(&message, &set);
  if (is_whole && set == kPairMessages) return deliver_pair(from, message);
  if (Session* const session = is_whole ? sets_.find(set) : nullptr)
    return session->receive(from, message, time);
  if (is_whole && sets_.is_past(set)) return Status::success();  // removed meanwhile
  return {StatusCode::kSystem, "rank " + std::to_string(from) +
                                   " sent a message of a process set that is unknown here; do all "
                                   "ranks run the same libhvrun?"};
}

// What comes for a set that is closing or gone came late.
Status Engine::deliver_pair(int from, std::string_view message) {
  std::uint32_t set = 0;
  const bool is_whole = PairTransfers::read_set(message, &set);
  const Session* const session = is_whole ? sets_.find(set) : nullptr;
  if (session == nullptr && is_whole && sets_.is_past(set)) return Status::success();
  if (session == nullptr || !session->has_member(from)) {
    return {StatusCode::kSystem, "rank " + std::to_string(from) +
                                     " sends to a process set that it or this rank is not in"};
  }
  return session->is_closing() ? Status::success() : pairs_.receive(from, message);
}

bool Engine::send_messages() {
  std::vector<std::pair<int, std::string>> messages;
  sets_.for_each([&](Session& set) {
    for (auto& message : set.take_messages()) messages.push_back(std::move(message));
  });
  for (auto& message : pairs_.take_messages()) messages.push_back(std::move(message));
  for (const auto& [rank, message] : messages) {
    const Status sent = fabric_.messenger().send(rank, message.data(), message.size());
    if (sent.ok()) continue;
    if (sent.code != StatusCode::kPeerLost) {
      end_reason_ = sent;  // the peer would wait for it
    } else {
      HV_LOG(kDebug, "engine") << sent.message;  // the fabric's health tells at the next step
    }
  }
  return !messages.empty();
}

void Engine::end_as(State state) {
  is_flushing_ = true;
  state_ = state;
}

// The end of an operation's bytes, a decision, the goodbye or the words of a failure: the program
// may do other things for minutes before it shuts down, and its peers wait for them.
void Engine::flush() {
  if (!is_flushing_) return;
  is_flushing_ = false;  // where there is no memory for it, too
  attempt([&] {
    fabric_.progress();
    is_flushing_ = fabric_.messenger().has_unsent();
  });
}

void Engine::fail(const Status& reason) {
  // Collectives may be given up only once the fabric knows that it is broken.
  attempt([&] { tell_peers(reason); });
  end_as(State::kFailing);
  pairs_.abandon();
  failure_ = in_words_if_possible(reason.code, [&] { return reason; });
  let_go_by_ = now() + kLetGoWithin;
  sets_.for_each([&](Session& set) { set.begin_to_give_up(failure_); });
  (void)go_on_failing();
}

// Callers may free their tensors when they hear of it.
Engine::Step Engine::go_on_failing() {
  is_flushing_ = true;  // peers look for signs of life meanwhile
  flush();
  bool have_let_go = true;
  sets_.for_each([&](Session& set) { have_let_go &= set.has_let_go(); });
  if (!have_let_go && now() < let_go_by_) return {};
  state_ = State::kFailed;
  sets_.for_each([&](Session& set) { set.give_up(failure_); });
  return {true, true};
}

void Engine::fail_by_exception(StatusCode code, const char* what) {
  Status reason{code, {}};
  attempt([&] {
    reason.message = std::string("carrying out what was enqueued: ") + what;
    if (code == StatusCode::kMemory) reason.message += "; give the ranks more, or fewer a host";
  });
  fail(reason);
}

void Engine::tell_peers(const Status& reason) {
  if (fabric_.health().ok()) {
    const bool is_theirs = reason.code == StatusCode::kPeerLost;
    const std::string words = is_theirs
                                  ? reason.message
                                  : "rank " + std::to_string(rank_) + " gave up: " + reason.message;
    fabric_.mark_lost(rank_, {StatusCode::kPeerLost, words});
  }
  // Along each set's tree: those of another may have shut down, and pass nothing on.
  const std::string words = fabric_.health().message;
  sets_.for_each([&](Session& set) { set.tell_failure(words); });
  send_messages();
  fabric_.progress();
}

}  // namespace hv::runtime
