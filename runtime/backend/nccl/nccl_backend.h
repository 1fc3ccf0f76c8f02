// The plugin behind libhvrun-nccl.so: collectives on GPUs' memory by NCCL.
// SPDX-License-Identifier: Apache-2.0
//
// One communicator for each process set, made before its first collective.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "runtime/backend/gpu/gpu_plugin.h"
#include "runtime/backend/nccl/lane.h"

namespace hv::nccl {

class NcclPlugin : public runtime::GpuPlugin {
 public:
  Status version(std::int32_t* number) override;
  bool carries(const runtime::CollectiveRequest& request) const override;
  runtime::GpuFacts look(const std::shared_ptr<runtime::Accelerator>& accelerator, int device,
                         bool is_first) override;
  std::unique_ptr<runtime::Backend> make(const std::shared_ptr<runtime::Accelerator>& accelerator,
                                         const runtime::GpuMembers& members,
                                         runtime::Backend& host) override;
  bool await_ends(TimePoint deadline) override;

 private:
  // Contexts of several threads may call at once.
  Status open();
  Status load_kernels(cuda::Device& device, std::shared_ptr<const cuda::Kernels>* kernels);

  std::once_flag once_;
  Status opened_;
  std::shared_ptr<const Library> library_;
  bool asks_to_share_ = false, shares_gpus_ = false, registers_windows_ = false;
  std::mutex mutex_;                                             // guards all below
  std::map<int, std::shared_ptr<const cuda::Kernels>> kernels_;  // by device
};

class NcclBackend : public runtime::Backend {
 public:
  // Its communicator's id is in the first member's facts.
  NcclBackend(std::shared_ptr<const Library> library, std::shared_ptr<const cuda::Kernels> kernels,
              std::shared_ptr<runtime::Accelerator> accelerator, const runtime::GpuMembers& members,
              runtime::Backend& host);
  ~NcclBackend() override;

  const char* name() const override { return "nccl"; }
  bool supports(const runtime::CollectiveRequest& request) const override;
  std::unique_ptr<runtime::Collective> prepare(const runtime::CollectiveRequest& first) override;
  Status check_device(const runtime::CollectiveRequest& request, int device) const override;
  std::unique_ptr<runtime::Collective> start(runtime::CollectiveRequest request) override;
  Status watch() override;
  std::string advice() const override;
  bool abandon() override;

 private:
  class Preparation;

  const std::shared_ptr<const Library> library_;
  const std::shared_ptr<const cuda::Kernels> kernels_;
  const std::shared_ptr<runtime::Accelerator> accelerator_;
  const int device_, members_, self_;
  const bool reduces_float8_, has_windows_;
  const UniqueId id_;
  const std::shared_ptr<runtime::GpuJob> job_;
  runtime::Backend& host_;
  std::shared_ptr<Lane> lane_;  // nullptr: before its preparation
};

}  // namespace hv::nccl
