// hvrun-inventory as a child of the agent: started, read and, where it takes too long, killed,
// while the loop goes on.
// SPDX-License-Identifier: Apache-2.0
//
// Whatever becomes of it is an answer: a program that is missing, hangs, dies or says nonsense is a
// problem in words, never the job's end.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"
#include "src/process/exit_status.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class InventoryRun {
 public:
  using Done = std::function<void(wire::InventoryReply)>;
  // folder: where the program may lie. done is called once, from the loop, and may destroy this.
  InventoryRun(EventLoop& loop, const Environment& environment, const std::string& folder,
               const wire::InventoryRequest& request, Done done);
  // Kills what still runs.
  ~InventoryRun();
  InventoryRun(const InventoryRun&) = delete;
  InventoryRun& operator=(const InventoryRun&) = delete;

  // A child of this process has ended: perhaps this one, which is then reaped.
  void look_for_end();

 private:
  void start(const std::string& program, const Environment& environment);
  void run_from_memory(const std::string& bytes, const Environment& environment);
  void watch(UniqueFd& stream, std::string* text, std::size_t most);
  void receive(UniqueFd& stream, std::string* text, std::size_t most);
  void close(UniqueFd& stream);
  void finish_if_over();
  void finish(wire::InventoryReply reply);
  void fail(const std::string& problem);
  void kill();

  EventLoop& loop_;
  Done done_;
  Duration time_;
  pid_t pid_ = -1;  // -1: not running, or reaped
  std::optional<ExitStatus> status_;
  UniqueFd out_, err_;
  std::string output_, complaints_;
  EventLoop::Timer deadline_;
};

}  // namespace hv::launcher
