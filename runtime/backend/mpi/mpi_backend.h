// The plugin behind libhvrun-openmpi.so and libhvrun-mpich.so: collectives on the host's memory by
// MPI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backend/mpi/mpi_abilities.h"
#include "runtime/backend/mpi/mpi_lane.h"
#include "runtime/backend/mpi/mpi_plugin.h"

namespace hv::mpi {

class MpiBackendPlugin : public runtime::MpiPlugin {
 public:
  std::string library() override { return library_text(); }
  int thread_level() override;
  runtime::MpiFacts inspect(bool is_wired) override;
  runtime::MpiFacts begin() override;
  std::unique_ptr<runtime::Backend> make(std::vector<int> world_ranks, int self, bool is_cuda_aware,
                                         std::function<void()> ring,
                                         runtime::PairCarrier** pairs) override;
  void settle() override { MpiProcess::of_process().settle(); }
  Status open_exchange(const void* communicator, const WaitLimits& limits,
                       std::function<void(const std::string&)> warn,
                       std::unique_ptr<Exchange>* made) override;
};

class MpiBackend : public runtime::Backend, public runtime::PairCarrier {
 public:
  MpiBackend(std::shared_ptr<MpiLane> lane, bool is_cuda_aware)
      : lane_(std::move(lane)), is_cuda_aware_(is_cuda_aware) {}
  ~MpiBackend() override { lane_->silence(); }
  MpiBackend(const MpiBackend&) = delete;
  MpiBackend& operator=(const MpiBackend&) = delete;

  const char* name() const override { return "mpi"; }
  bool supports(const runtime::CollectiveRequest& request) const override {
    return runtime::mpi_carries(request, is_cuda_aware_);
  }
  std::unique_ptr<runtime::Collective> prepare(const runtime::CollectiveRequest& first) override;
  std::unique_ptr<runtime::Collective> start(runtime::CollectiveRequest request) override;
  std::unique_ptr<runtime::Collective> carry(runtime::PairRequest request) override;
  std::string advice() const override;
  bool abandon() override {
    lane_->give_up();
    return true;
  }

 private:
  const std::shared_ptr<MpiLane> lane_;
  const bool is_cuda_aware_;
};

}  // namespace hv::mpi
