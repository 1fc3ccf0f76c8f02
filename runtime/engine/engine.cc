// The engine's step.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/engine.h"

#include <exception>
#include <new>

#include "src/base/check.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

template <class Action>
void attempt(Action action) {
  try {
    action();
  } catch (const std::exception&) {
    // On the way out of an engine that has failed: nobody is left to be told of this as well.
  }
}

}  // namespace

Engine::Engine(const EngineConfig& config, Fabric& fabric, std::vector<Backend*> backends)
    : fabric_(fabric),
      rank_(fabric.topology().rank),
      size_(fabric.topology().size),
      negotiation_(config.negotiation, make_control_tree(fabric.topology())),
      execution_({size_, config.deterministic}, std::move(backends)) {}

Engine::Step Engine::step(TimePoint time) {
  if (is_finished()) return {};
  try {
    return take_step(time);
  } catch (const std::bad_alloc&) {
    fail_by_exception(StatusCode::kMemory, "out of memory");
  } catch (const std::exception& error) {
    fail_by_exception(StatusCode::kSystem, error.what());
  }
  return {true, true};
}

Engine::Step Engine::take_step(TimePoint time) {
  Step result;
  fabric_.progress();
  if (is_ended_from_outside()) return {true, true};
  result.has_progressed = take_submissions(time);
  result.has_progressed |= take_messages(time);
  negotiation_.conclude(time);
  result.has_progressed |= send_messages();
  result.has_completed = carry_out(negotiation_.take_verdicts());
  execution_.advance();
  result.has_completed |= complete_ended();
  result.has_progressed |= result.has_completed;
  if (!execution_.failure().ok()) fail(execution_.failure());
  warn_of_stalls(time);
  if (state_ == State::kClosing && execution_.is_idle()) state_ = State::kClosed;
  return result;
}

bool Engine::is_ended_from_outside() {
  if (is_leave_requested_ && !is_leaving_ && state_ == State::kOpen) {
    is_leaving_ = true;
    negotiation_.leave();
  }
  Status health = fabric_.health();
  if (health.ok()) health = end_reason_;
  if (health.ok() && is_abort_requested_)
    health = {StatusCode::kShutdown, "this rank has shut down"};
  if (health.ok()) return false;
  fail(health);
  return true;
}

bool Engine::take_submissions(TimePoint time) {
  const auto operations = queue_.take_new();
  for (const OperationPtr& operation : operations) {
    negotiation_.submit({operation->name, operation->description, operation->first_extent}, time);
  }
  return !operations.empty();
}

bool Engine::take_messages(TimePoint time) {
  bool any = false;
  int from = 0;
  std::string message;
  while (fabric_.messenger().receive(&from, &message)) {
    any = true;
    const Status status = negotiation_.receive(from, message, time);
    if (status.code == StatusCode::kPeerLost) {
      end_reason_ = status;
    } else if (!status.ok()) {
      // Whoever speaks another language cannot be worked with: it is as good as lost.
      fabric_.mark_lost(from, {StatusCode::kPeerLost, status.message});
    }
  }
  return any;
}

bool Engine::send_messages() {
  const auto messages = negotiation_.take_messages();
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

bool Engine::carry_out(std::vector<Verdict> verdicts) {
  for (const Verdict& verdict : verdicts) {
    if (const auto* group = std::get_if<StartGroup>(&verdict)) {
      start(*group);
    } else if (const auto* refused = std::get_if<FailTensor>(&verdict)) {
      if (const OperationPtr operation = queue_.find(refused->name))
        queue_.complete(operation, refused->status);
    } else {
      close(std::get<RankLeft>(verdict).rank);
    }
  }
  return !verdicts.empty();
}

void Engine::start(const StartGroup& group) {
  std::vector<OperationPtr> operations;
  for (const FreshTensor& tensor : group.tensors) {
    operations.push_back(queue_.find(tensor.name));
    HV_CHECK(operations.back() != nullptr, "what is decided on is in flight here: " + tensor.name);
    operations.back()->is_started = true;
  }
  execution_.start(std::move(operations), group.tensors.front().first_extents);
}

void Engine::close(int leaver) {
  state_ = State::kClosing;
  const std::string who =
      leaver == rank_ ? "this rank has shut down"
                      : "rank " + std::to_string(leaver) + " has shut down (hvrun_shutdown)";
  const Status reason{StatusCode::kShutdown, who};
  queue_.close(reason);
  for (const OperationPtr& operation : queue_.in_flight()) {
    if (operation->is_started) continue;
    queue_.complete(operation,
                    {reason.code, "tensor '" + printable(operation->name) + "': " + who});
  }
}

bool Engine::complete_ended() {
  const auto ended = execution_.take_ended();
  for (const auto& [operation, outcome] : ended) queue_.complete(operation, outcome);
  return !ended.empty();
}

// What memory is left may not be enough for words: whatever is tried by itself is left undone
// then, and the rest goes on.
void Engine::fail(const Status& reason) {
  // Collectives may be given up only once the fabric knows that it is broken.
  attempt([&] { tell_peers(reason); });
  state_ = State::kFailed;
  queue_.close(reason);
  attempt([&] {
    execution_.abandon(reason);
    complete_ended();
  });
  queue_.fail_all(reason);
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
  negotiation_.tell_failure(fabric_.health().message);
  send_messages();
  fabric_.progress();
}

void Engine::warn_of_stalls(TimePoint time) {
  for (const Waiting& stall : negotiation_.take_stalls()) {
    HV_LOG(kWarn, "engine") << stall_words(stall, size_, time);
  }
  if (const auto silence = negotiation_.take_silence()) {
    HV_LOG(kWarn, "engine") << silence_words(*silence);
  }
}

}  // namespace hv::runtime
