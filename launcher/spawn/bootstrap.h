// The conversation that turns a fresh login into a running agent, over any channel. See
// start_line.h for its words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "launcher/spawn/agent_program.h"
#include "launcher/spawn/host_advice.h"
#include "launcher/spawn/spawner.h"
#include "launcher/spawn/start_deadline.h"

namespace hv::launcher {

struct BootstrapPlan {
  HostAdvice host;
  std::string build_id;
  std::shared_ptr<AgentProgram> agent;
  std::vector<std::string> agent_words{};
  std::function<void()> has_logged_in{};  // called at the host's first byte; may be empty
};

// The stream ended before an agent ran.
class EndedEarly : public Error {
 public:
  EndedEarly(const std::string& what, std::string hint, std::string words)
      : Error(ErrorKind::kStart, what, std::move(hint)), words_(std::move(words)) {}
  // The channel's last ones.
  const std::string& words() const { return words_; }

 private:
  std::string words_;
};

// channel: to a shell that start_line() has reached. Gives back a channel whose next byte is the
// agent's. Throws Error(kStart), EndedEarly among them, or kTimeout at the deadline.
boost::asio::awaitable<std::unique_ptr<AgentChannel>> bootstrap_agent(
    std::unique_ptr<AgentChannel> channel, BootstrapPlan plan, StartDeadline& deadline);

}  // namespace hv::launcher
