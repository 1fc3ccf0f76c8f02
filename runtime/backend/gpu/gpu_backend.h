// Tensors in GPUs' memory: by the plugin (NCCL) where all members of the set can, by the GPUs'
// addresses, or through the host's memory, in the order that HVRUN_BACKEND has given.
// SPDX-License-Identifier: Apache-2.0
//
// The members tell each other what they have before the first tensor that is the plugin's, and
// choose alike.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "runtime/backend/carrier_order.h"
#include "runtime/backend/gpu/gpu_choice.h"
#include "runtime/backend/staged/staged_backend.h"
#include "runtime/transport/fabric.h"

namespace hv::runtime {

class GpuBackend : public Backend {
 public:
  // host: for the host's memory, as staging, which carries out what goes through it; nullptr:
  // nothing does. They outlive this. rank: this one's in the job. ways: alike on all members.
  GpuBackend(Backend& host, Backend* staging, const Topology& members, int rank,
             std::vector<GpuWay> ways, std::shared_ptr<GpuJob> job);
  ~GpuBackend() override;

  const char* name() const override { return "gpus"; }
  bool supports(const CollectiveRequest& request) const override;
  std::unique_ptr<Collective> prepare(const CollectiveRequest& first) override;
  Status check_device(const CollectiveRequest& request, int device) const override;
  std::unique_ptr<Collective> start(CollectiveRequest request) override;
  Status watch() override { return plugged_ ? plugged_->watch() : Status::success(); }
  std::string advice() const override { return plugged_ ? plugged_->advice() : std::string(); }
  bool abandon() override;

 private:
  class Preparation;

  Backend* behind(GpuWay way) const;  // nullptr: nobody
  bool comes_before_plugin(const CollectiveRequest& request) const;

  Backend& host_;
  std::unique_ptr<StagedBackend> direct_, staged_;  // without the host's memory, and through it
  const Topology& members_;
  const int rank_;
  const std::vector<GpuWay> ways_;
  const std::shared_ptr<GpuJob> job_;
  std::map<int, GpuFacts> looked_;  // until the members choose: what was seen, by device
  bool is_chosen_;
  bool goes_unprepared_ = false;      // the next one, for which the members have met just now
  std::string refusal_;               // not empty: what is the plugin's nobody carries out
  std::unique_ptr<Backend> plugged_;  // nullptr: through the host
  std::atomic<const Backend*> known_plugged_{nullptr};  // the same, for callers' threads
};

}  // namespace hv::runtime
