// AgentService: a part of the agent that takes some of hvrun's messages, runs children for them and
// answers; the agent holds its services in a list.
// SPDX-License-Identifier: Apache-2.0
//
// All calls come from the event loop. A service answers from the loop, too, never out of handle().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
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

// What services use of their agent.
struct ServiceContext {
  EventLoop& loop;
  HvrunLink& link;
  const Environment& environment;   // the agent's own
  const wire::SetupRequest& setup;  // default values until Setup has come
  LocalRanks& ranks;
  std::function<void()> on_answer;  // an answer that the agent awaited has been sent
};

class AgentService {
 public:
  AgentService() = default;
  AgentService(const AgentService&) = delete;
  AgentService& operator=(const AgentService&) = delete;
  virtual ~AgentService() = default;

  virtual Handled handle(const Frame&) { return Handled::kNotMine; }
  // A child of the agent has been reaped. True: it was this service's.
  virtual bool child_ended(pid_t, const ExitStatus&) { return false; }
  // With each heartbeat.
  virtual void idle() {}
  // An answer is under way that the agent sends before it ends what ranks have left, or leaves.
  virtual bool is_awaited() const { return false; }
  // The job is being ended: such an answer is not needed any more.
  virtual void cancel() {}
};

// As hv::handle_message, for a service.
template <class Message, class Handler>
Handled handle_as(const Frame& frame, Handler&& handler) {
  if (frame.type != static_cast<std::uint8_t>(Message::kType)) return Handled::kNotMine;
  return handle_message<Message>(frame, std::forward<Handler>(handler)) ? Handled::kDone
                                                                        : Handled::kRefused;
}

}  // namespace hv::launcher
