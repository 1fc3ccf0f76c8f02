// InventoryRun: hvrun-inventory as a child of the agent; InventoryService: answers hvrun with it.
// SPDX-License-Identifier: Apache-2.0
//
// Every outcome is an answer: a program that is missing, hangs, dies or prints garbage is reported
// as a problem and never ends the job.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launcher/agent/agent_service.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/queries/child_answer.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class InventoryRun {
 public:
  using Done = std::function<void(wire::InventoryReply)>;
  // directory: may hold the program. done is called once, from the loop, and may destroy this.
  InventoryRun(EventLoop& loop, const Environment& environment, const std::string& directory,
               const wire::InventoryRequest& request, Done done);
  ~InventoryRun() { loop_.cancel(no_child_); }
  InventoryRun(const InventoryRun&) = delete;
  InventoryRun& operator=(const InventoryRun&) = delete;

  // A child of this process has been reaped. True: it was this run's.
  bool child_ended(pid_t pid, const ExitStatus& status) {
    return child_ && child_->child_ended(pid, status);
  }

 private:
  void start(const std::string& program, const Environment& environment, Duration time,
             const std::string& whose_time);
  void answer_without_child(wire::InventoryReply reply);

  EventLoop& loop_;
  Done done_;
  UniqueFd file_;  // the program, if hvrun has sent it
  std::unique_ptr<ChildAnswer> child_;
  EventLoop::Timer no_child_;
};

// Runs one inventory at a time.
class InventoryService : public SingleRunService<InventoryRun> {
 public:
  using SingleRunService::SingleRunService;

  Handled handle(const Frame& frame) override;

 private:
  bool begin(const wire::InventoryRequest& request);
};

}  // namespace hv::launcher
