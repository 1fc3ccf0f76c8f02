// ChildAnswer: a child of the agent that answers on its standard output. It is killed if it takes
// too long or prints too much; the loop goes on meanwhile.
// SPDX-License-Identifier: Apache-2.0
//
// Every outcome is an answer: a program that is missing, hangs or dies is reported as a problem and
// never ends the job. A child that hangs in the kernel is left behind.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "src/base/unique_fd.h"
#include "src/process/command.h"
#include "src/process/exit_status.h"

namespace hv::launcher {

struct ChildQuestion {
  std::string name;  // for messages: "hvrun-inventory"
  Command command;
  int stdin_fd = -1;  // -1: /dev/null
  Duration time{};
  std::string whose_time{};    // appended to the time: " (HVRUN_INVENTORY_TIMEOUT)"
  std::size_t most_bytes = 0;  // limit of the answer
};

class ChildAnswer {
 public:
  // problem: why there is no answer; empty: there is one. Called once, from the loop, never by the
  // constructor; may destroy this.
  using Done = std::function<void(const std::string& problem, const std::string& answer)>;
  ChildAnswer(EventLoop& loop, const ChildQuestion& question, Done done);
  // Kills what still runs.
  ~ChildAnswer();
  ChildAnswer(const ChildAnswer&) = delete;
  ChildAnswer& operator=(const ChildAnswer&) = delete;

  // A child of this process has been reaped. True: it was this one.
  bool child_ended(pid_t pid, const ExitStatus& status);

 private:
  void start(const ChildQuestion& question);
  void watch(UniqueFd& stream, std::string* text, std::size_t most);
  void receive(UniqueFd& stream, std::string* text, std::size_t most);
  void close(UniqueFd& stream);
  void finish_if_over();
  void finish(const std::string& problem);
  void kill();

  EventLoop& loop_;
  Done done_;
  const std::string name_;
  pid_t pid_ = -1;  // -1: not running, or reaped
  std::optional<ExitStatus> status_;
  UniqueFd out_, err_;
  std::string output_, complaints_;
  EventLoop::Timer deadline_;
};

}  // namespace hv::launcher
