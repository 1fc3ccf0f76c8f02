// HostPhase: where one host is in the life of a job, and the transitions between its phases.
// SPDX-License-Identifier: Apache-2.0
//
//   connecting -> greeted -> set up -> ready -> running -> ending -> empty
//
//   connecting to ready                 -> failed   -> empty or lost
//   connecting to running               -> ending   -> empty or lost
//   every phase but empty and lost      -> lost
//
//   greeted   its agent has sent Hello
//   set up    its agent holds the rank socket, the ports and the cgroup
//   ready     program and directory exist there
//   running   its ranks have been started
//   ending    hvrun has sent End, or the agent ends the job on its own ("unrequested")
//   empty     no process of the job runs there
//   lost      the connection broke before it was empty; a second agent may sweep the host
//   failed    no agent could be started, or the agent could not do what it was asked
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "src/base/error.h"

namespace hv::launcher {

// The agent ends the job on its host although hvrun did not ask for it.
struct UnrequestedEnd {
  std::string advice;         // may be empty
  bool leaves_grace = false;  // ranks have all of --grace, on every host
};

struct HostConnecting {};
struct HostGreeted {};
struct HostSetUp {};
struct HostReady {};
struct HostRunning {};
struct HostFailed {
  Error error;
};
struct HostEnding {
  std::optional<UnrequestedEnd> unrequested;
};
struct HostEmpty {
  std::optional<UnrequestedEnd> unrequested;
  std::optional<Error> failure;       // it had failed before
  bool may_processes_remain = false;  // but for some that were named
};
struct HostLost {
  // kSwept: the second agent has reported that nothing is left. kUnconfirmed: it has not reported
  // in time, or could not be started.
  enum class Sweep { kNotBegun, kRunning, kSwept, kUnconfirmed };
  std::string reason;
  std::optional<UnrequestedEnd> unrequested;
  std::optional<Error> failure;  // it had failed before
  Sweep sweep = Sweep::kNotBegun;
  std::optional<Error> sweep_error;   // no second agent could be started there
  bool may_processes_remain = false;  // kSwept: but for some that were named
};

class HostPhase {
 public:
  using Value = std::variant<HostConnecting, HostGreeted, HostSetUp, HostReady, HostRunning,
                             HostFailed, HostEnding, HostEmpty, HostLost>;

  // Reports of the agent. False, without effect: impossible in this phase, so the agent broke the
  // protocol. Reports that were on their way when the host failed, ended or was lost are accepted
  // and ignored.
  [[nodiscard]] bool greet();
  [[nodiscard]] bool set_up();
  [[nodiscard]] bool make_ready();
  [[nodiscard]] bool start_ranks();
  // The host has no processes of the job any more, but for those that were named: stuck in the
  // kernel, or perhaps another job's. Completes the sweep of a lost host.
  void become_empty(bool may_processes_remain = false);

  // Events of the host. Each returns whether it changed the phase.
  bool fail(Error error);  // before its ranks run
  // none: hvrun has sent End. The first end counts.
  bool end(std::optional<UnrequestedEnd> unrequested = std::nullopt);
  bool lose(std::string reason);
  bool explain_loss(Error error);  // a lost host that had not failed before: its error for people
  bool begin_sweep();
  bool finish_sweep(std::optional<Error> error = std::nullopt);

  const Value& value() const { return value_; }
  template <class Phase>
  bool is() const {
    return std::holds_alternative<Phase>(value_);
  }
  bool is_lost() const { return is<HostLost>(); }
  bool is_empty() const { return is<HostEmpty>(); }
  bool is_sweeping() const;
  // True for a host that is empty or swept and whose agent has named processes that may remain.
  bool may_processes_remain() const;
  // The first agent may still report.
  bool can_have_agent() const { return !is_lost() && !is_empty(); }
  // nullptr where there is none.
  const Error* failure() const;
  const HostLost* lost() const { return std::get_if<HostLost>(&value_); }
  const UnrequestedEnd* unrequested_end() const;

 private:
  template <class From, class To>
  bool step();

  Value value_ = HostConnecting{};
};

}  // namespace hv::launcher
