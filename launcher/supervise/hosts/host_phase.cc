// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/host_phase.h"

#include <utility>

namespace hv::launcher {
namespace {

template <class Value>
const Value* pointer_to(const std::optional<Value>& value) {
  return value ? &*value : nullptr;
}

}  // namespace

// A report that moves a host one step forward. Once the host has left that path, by a failure or an
// end, such a report was on its way at that time and changes nothing.
template <class From, class To>
bool HostPhase::step() {
  if (is<From>()) {
    value_ = To{};
    return true;
  }
  return is<HostFailed>() || is<HostEnding>() || is<HostLost>();
}

bool HostPhase::greet() { return step<HostConnecting, HostGreeted>(); }
bool HostPhase::set_up() { return step<HostGreeted, HostSetUp>(); }
bool HostPhase::make_ready() { return step<HostSetUp, HostReady>(); }
bool HostPhase::start_ranks() { return step<HostReady, HostRunning>(); }

void HostPhase::become_empty(bool may_processes_remain) {
  if (is<HostEmpty>()) return;
  if (HostLost* const lost = std::get_if<HostLost>(&value_)) {
    if (lost->sweep != HostLost::Sweep::kRunning) return;
    lost->sweep = HostLost::Sweep::kSwept;
    lost->may_processes_remain = may_processes_remain;
    return;
  }
  HostEmpty empty;
  if (const UnrequestedEnd* const unrequested = unrequested_end()) empty.unrequested = *unrequested;
  if (const Error* const error = failure()) empty.failure = *error;
  empty.may_processes_remain = may_processes_remain;
  value_ = std::move(empty);
}

bool HostPhase::fail(Error error) {
  if (!is<HostConnecting>() && !is<HostGreeted>() && !is<HostSetUp>() && !is<HostReady>())
    return false;
  value_ = HostFailed{std::move(error)};
  return true;
}

bool HostPhase::end(std::optional<UnrequestedEnd> unrequested) {
  if (is<HostFailed>() || is<HostEnding>() || !can_have_agent()) return false;
  value_ = HostEnding{std::move(unrequested)};
  return true;
}

bool HostPhase::lose(std::string reason) {
  if (!can_have_agent()) return false;
  HostLost lost;
  lost.reason = std::move(reason);
  if (const UnrequestedEnd* const unrequested = unrequested_end()) lost.unrequested = *unrequested;
  if (const Error* const error = failure()) lost.failure = *error;
  value_ = std::move(lost);
  return true;
}

bool HostPhase::explain_loss(Error error) {
  HostLost* const lost = std::get_if<HostLost>(&value_);
  if (!lost || lost->failure) return false;
  lost->failure = std::move(error);
  return true;
}

bool HostPhase::begin_sweep() {
  HostLost* const lost = std::get_if<HostLost>(&value_);
  if (!lost || lost->sweep != HostLost::Sweep::kNotBegun) return false;
  lost->sweep = HostLost::Sweep::kRunning;
  return true;
}

bool HostPhase::finish_sweep(std::optional<Error> error) {
  if (!is_sweeping()) return false;
  HostLost& lost = std::get<HostLost>(value_);
  lost.sweep = HostLost::Sweep::kUnconfirmed;
  lost.sweep_error = std::move(error);
  return true;
}

bool HostPhase::may_processes_remain() const {
  if (const HostEmpty* const empty = std::get_if<HostEmpty>(&value_))
    return empty->may_processes_remain;
  return lost() && lost()->may_processes_remain;
}

bool HostPhase::is_sweeping() const {
  const HostLost* const loss = lost();
  return loss && loss->sweep == HostLost::Sweep::kRunning;
}

const Error* HostPhase::failure() const {
  if (const auto* failed = std::get_if<HostFailed>(&value_)) return &failed->error;
  if (const auto* empty = std::get_if<HostEmpty>(&value_)) return pointer_to(empty->failure);
  return is_lost() ? pointer_to(lost()->failure) : nullptr;
}

const UnrequestedEnd* HostPhase::unrequested_end() const {
  if (const auto* ending = std::get_if<HostEnding>(&value_)) return pointer_to(ending->unrequested);
  if (const auto* empty = std::get_if<HostEmpty>(&value_)) return pointer_to(empty->unrequested);
  return is_lost() ? pointer_to(lost()->unrequested) : nullptr;
}

}  // namespace hv::launcher
