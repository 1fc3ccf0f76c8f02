// Host: one machine of the job, by an id that it keeps for the job's life: how to reach it, its
// link, its phase, and what its agent has answered.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/spawn/spawner.h"
#include "launcher/supervise/hosts/host_link.h"
#include "launcher/supervise/hosts/host_phase.h"
#include "src/base/clock.h"
#include "src/wire/check.h"
#include "src/wire/messages.h"
#include "src/wire/mpi_wiring.h"
#include "src/wire/stacks.h"

namespace hv::launcher {

// A question to an agent and its answer. Asking again drops the former answer.
template <class Reply>
class Question {
 public:
  // number: of the request, where the reply repeats it (Reply::number).
  void ask(std::uint32_t number = 0) {
    is_asked_ = true;
    number_ = number;
    reply_.reset();
  }
  void answer(Reply reply) { reply_ = std::move(reply); }
  bool is_asked() const { return is_asked_; }
  bool is_asked(std::uint32_t number) const { return is_asked_ && number_ == number; }
  bool is_open() const { return is_asked_ && !reply_; }
  // The reply to an earlier request may still arrive: it does not count.
  bool is_open(std::uint32_t number) const {
    return is_asked(number) && !(reply_ && reply_->number == number);
  }
  void withdraw() { *this = Question(); }
  // nullptr: not answered.
  const Reply* reply() const { return reply_ ? &*reply_ : nullptr; }
  Reply* reply() { return reply_ ? &*reply_ : nullptr; }

 private:
  bool is_asked_ = false;
  std::uint32_t number_ = 0;
  std::optional<Reply> reply_;
};

struct Greeting {
  wire::Hello hello;
  TimePoint arrived_at{};
};

struct HostAnswers {
  std::optional<Greeting> greeting;
  std::optional<wire::SetupReply> set_up;
  Question<wire::InventoryReply> inventory;
  Question<wire::ProbeReply> reachability;
  Question<wire::CheckReply> checks;
  Question<wire::PairReply> measurements;
  Question<wire::WiringReply> wiring;
  Question<wire::StackReply> stacks;
  Question<wire::SilenceNoted> heartbeat_pause;  // applied by its agent
  wire::QueryReply ranks{};                      // the latest state of its ranks
};

struct Host {
  HostId id{};
  HostTarget target;
  std::shared_ptr<HostLink> link{};  // null: not connected yet, or dropped
  HostPhase phase{};
  HostAnswers answers{};

  // Its agent can be sent messages, and answers them unless the host is lost meanwhile.
  bool has_agent() const { return link && phase.can_have_agent(); }
  const wire::Facts& facts() const { return answers.greeting->hello.facts; }
  template <class Message>
  void send(const Message& message) const {
    if (has_agent()) link->send(message);
  }
  // Ends the link from this side; frames that have arrived over it and wait are dropped.
  void drop_link() {
    if (link) link->close();
    link.reset();
  }
};

// All hosts of a job. References stay valid.
class HostTable {
 public:
  Host& add(HostTarget target) {
    Host& host = hosts_.emplace_back();
    host.id = HostId{static_cast<std::uint32_t>(hosts_.size() - 1)};
    host.target = std::move(target);
    return host;
  }
  Host& at(HostId id) { return hosts_.at(static_cast<std::size_t>(id)); }
  const Host& at(HostId id) const { return hosts_.at(static_cast<std::size_t>(id)); }
  std::size_t size() const { return hosts_.size(); }
  auto begin() { return hosts_.begin(); }
  auto end() { return hosts_.end(); }
  auto begin() const { return hosts_.begin(); }
  auto end() const { return hosts_.end(); }

 private:
  std::deque<Host> hosts_;  // by id
};

}  // namespace hv::launcher
