// CheckRun: runs the probes of a check in a child of the agent, all at once, with a deadline.
// CheckService: answers hvrun.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/agent/agent_service.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/queries/child_answer.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"
#include "src/wire/check.h"

namespace hv::launcher {

class CheckRun {
 public:
  using Done = std::function<void(const wire::CheckReply&)>;
  // own: the agent's environment. done is called once, from the loop, and may destroy this.
  CheckRun(EventLoop& loop, const Environment& own, const wire::CheckRequest& request, Done done);
  CheckRun(const CheckRun&) = delete;
  CheckRun& operator=(const CheckRun&) = delete;
  ~CheckRun() { loop_.cancel(over_); }

  // A child of this process has been reaped. True: it was this run's.
  bool child_ended(pid_t pid, const ExitStatus& status) {
    return child_ && child_->child_ended(pid, status);
  }

 private:
  void start(const wire::CheckRequest& request, const Environment& own);
  // No program can be started with the ranks' environment, so no probe either.
  void refuse_environment(const wire::CheckRequest& request, const wire::Problem& problem);
  // problem: why the other probes have not answered.
  void finish(const std::string& problem, const std::string& answers);
  void send_reply();

  EventLoop& loop_;
  Done done_;
  wire::CheckReply reply_;
  const std::vector<std::string> probes_;  // requested; empty: all
  UniqueFd request_;
  std::unique_ptr<ChildAnswer> child_;
  EventLoop::Timer over_;
};

// Runs one check at a time.
class CheckService : public SingleRunService<CheckRun> {
 public:
  using SingleRunService::SingleRunService;

  Handled handle(const Frame& frame) override;

 private:
  bool begin(const wire::CheckRequest& request);
};

}  // namespace hv::launcher
