// Tensors in GPUs' memory: by the plugin (NCCL) where all members of the set can, else by a backend
// of the host's: by the GPU's addresses where that can be, else through the host's memory.
// SPDX-License-Identifier: Apache-2.0
//
// The members tell each other what they have before the first such tensor, and choose alike.
#pragma once

#include <memory>
#include <optional>

#include "runtime/backend/gpu/gpu_choice.h"
#include "runtime/backend/staged/staged_backend.h"
#include "runtime/transport/fabric.h"

namespace hv::runtime {

class GpuBackend : public Backend {
 public:
  // host: for the host's memory, as staging, which carries out what goes through it; nullptr:
  // nothing does. They outlive this. uses_plugin: false: nothing but that. Alike on all members.
  GpuBackend(Backend& host, Backend* staging, const Topology& members, bool uses_plugin);
  ~GpuBackend() override;

  const char* name() const override { return plugged_ ? plugged_->name() : "staged"; }
  bool supports(const CollectiveRequest& request) const override;
  std::unique_ptr<Collective> prepare(const CollectiveRequest& first) override;
  std::unique_ptr<Collective> start(CollectiveRequest request) override;
  Status watch() override { return plugged_ ? plugged_->watch() : Status::success(); }
  std::string advice() const override { return plugged_ ? plugged_->advice() : std::string(); }
  void abandon() override;

 private:
  class Preparation;

  Backend& host_;
  std::optional<StagedBackend> direct_, staged_;  // without the host's memory, and through it
  const Topology& members_;
  bool is_chosen_;
  bool goes_unprepared_ = false;      // the next one, for which the members have met just now
  std::string refusal_;               // not empty: nobody carries anything out
  std::unique_ptr<Backend> plugged_;  // nullptr: through the host
};

}  // namespace hv::runtime
