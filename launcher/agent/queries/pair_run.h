// PairRun: measures the paths to other hosts: connects and authenticates as an address probe does,
// then hands each connection to a child that measures. PairService: answers hvrun.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/agent/agent_service.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/queries/address_probe.h"
#include "launcher/agent/queries/child_answer.h"
#include "src/wire/authentication.h"
#include "src/wire/check.h"

namespace hv::launcher {

class PairRun {
 public:
  using Done = std::function<void(const wire::PairReply&)>;
  // done is called once, from the loop, and may destroy this.
  PairRun(EventLoop& loop, const JobKey& key, const std::string& job_id,
          const wire::PairRequest& request, Done done);
  ~PairRun() { loop_.cancel(over_); }
  PairRun(const PairRun&) = delete;
  PairRun& operator=(const PairRun&) = delete;

  // A child of this process has been reaped. True: it was this run's.
  bool child_ended(pid_t pid, const ExitStatus& status);

 private:
  void measure(std::uint32_t host, UniqueFd socket);
  void note_unreached(const wire::ProbeReply& reply);
  void finish_if_over();

  EventLoop& loop_;
  Done done_;
  Duration time_;
  wire::PairReply reply_;
  std::vector<std::unique_ptr<ChildAnswer>> children_;
  std::size_t running_ = 0;
  bool is_connecting_ = true;
  std::unique_ptr<AddressProbe> connect_;
  EventLoop::Timer over_;
};

// Tests and measures the paths to other hosts: one address probe and one measurement at a time.
class PairService : public AgentService {
 public:
  explicit PairService(const ServiceContext& agent) : agent_(agent) {}

  Handled handle(const Frame& frame) override;
  bool child_ended(pid_t pid, const ExitStatus& status) override {
    return run_ && run_->child_ended(pid, status);
  }

 private:
  bool probe(const wire::ProbeRequest& request);
  bool measure(const wire::PairRequest& request);

  const ServiceContext& agent_;
  std::unique_ptr<AddressProbe> probe_;
  std::unique_ptr<PairRun> run_;
};

}  // namespace hv::launcher
