// AgentService: a part of the agent that takes some of hvrun's messages, runs children for them and
// answers; the agent holds its services in a list.
// SPDX-License-Identifier: Apache-2.0
//
// All calls come from the event loop. A service answers from the loop, too, never out of handle().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/hvrun_link.h"
#include "src/base/environment.h"
#include "src/process/exit_status.h"
#include "src/wire/frame.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class LocalRanks;

// kRefused: malformed, or out of turn for this service; hvrun is given up then.
enum class Handled { kNotMine, kDone, kRefused };

// The parts of the agent that services use.
struct ServiceContext {
  EventLoop& loop;
  HvrunLink& link;
  const Environment& environment;   // the agent's own
  const wire::SetupRequest& setup;  // default values until SetupRequest has come
  LocalRanks& ranks;
  std::function<void()> on_answer;  // call when an answer for which is_awaited() held is sent
};

class AgentService {
 public:
  AgentService() = default;
  AgentService(const AgentService&) = delete;
  AgentService& operator=(const AgentService&) = delete;
  virtual ~AgentService() = default;

  virtual Handled handle(const Frame&) { return Handled::kNotMine; }
  // A child of the agent has been reaped. True: the child belonged to this service.
  virtual bool child_ended(pid_t, const ExitStatus&) { return false; }
  // Called at each heartbeat; must cost no more than reading a few small files for each rank.
  virtual void idle() {}
  // The agent waits for this service's answer before it leaves, and before it ends processes that
  // ranks have left behind.
  virtual bool is_awaited() const { return false; }
  // The job is being ended, and such an answer is no longer needed.
  virtual void cancel() {}
};

// A service that answers by one Run at a time, for which the agent waits. Run::child_ended is as in
// AgentService.
template <class Run>
class SingleRunService : public AgentService {
 public:
  explicit SingleRunService(const ServiceContext& agent) : agent_(agent) {}

  bool child_ended(pid_t pid, const ExitStatus& status) override {
    return run_ && run_->child_ended(pid, status);
  }
  bool is_awaited() const override { return run_ != nullptr; }
  void cancel() override { run_.reset(); }

 protected:
  const ServiceContext& agent_;
  std::unique_ptr<Run> run_;  // null: none is under way
};

// hv::handle_message for a service.
template <class Message, class Handler>
Handled handle_as(const Frame& frame, Handler&& handler) {
  if (frame.type != static_cast<std::uint8_t>(Message::kType)) return Handled::kNotMine;
  return handle_message<Message>(frame, std::forward<Handler>(handler)) ? Handled::kDone
                                                                        : Handled::kRefused;
}

}  // namespace hv::launcher
