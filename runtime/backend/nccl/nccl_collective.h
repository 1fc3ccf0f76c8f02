// NcclCollective: from a request to calls of NCCL on the GPU's work stream.
// SPDX-License-Identifier: Apache-2.0
//
// It is done for the host when all of it has been given to the stream, and never waits for the GPU:
// ended() is when the results are there.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/backend/nccl/lane.h"
#include "runtime/collective/collective.h"

namespace hv::nccl {

class NcclCollective : public runtime::Collective {
 public:
  NcclCollective(std::shared_ptr<Lane> lane, runtime::CollectiveRequest request);

  runtime::Progress advance() final;
  Status status() const final { return status_; }
  bool is_polled() const final { return stage_ != Stage::kReady; }
  runtime::MomentPtr ended() const final { return ended_; }

 protected:
  virtual const char* what() const = 0;  // "allreduce"
  // Before its turn: what ranks tell each other on the host. kDone: nothing more.
  virtual runtime::Progress get_ready() { return runtime::Progress::kDone; }
  // On the work stream, in this order. The stream comes to all of it after the inputs are ready.
  virtual Status before() { return Status::success(); }
  virtual Status launch() = 0;
  virtual Status after() { return Status::success(); }

  const runtime::CollectiveRequest& request() const { return request_; }
  Lane& lane() { return *lane_; }
  int members() const { return lane_->communicator().members(); }
  int self() const { return lane_->communicator().self(); }
  cuda::Device& device() { return lane_->device(); }
  cuda::Stream stream() const { return lane_->stream(); }
  Comm comm() { return lane_->communicator().get(); }
  const LibraryFunctions& call() const { return lane_->call(); }
  // What one call of NCCL has answered.
  Status check(int result) const;
  // Calls that NCCL takes as one. A failure inside ends the group all the same.
  Status grouped(const std::function<Status()>& calls);
  runtime::Progress fail(Status why);
  Status copy(std::byte* to, const std::byte* from, std::size_t bytes);
  Status clear(std::byte* memory, std::size_t bytes);

 private:
  enum class Stage { kReady, kTurn, kLaunching, kDone };

  runtime::Progress take_turn();
  Status await_inputs();
  runtime::Progress await_launch();
  Status check_devices() const;
  std::string doing() const { return std::string("carry out ") + what(); }

  const std::shared_ptr<Lane> lane_;
  const runtime::CollectiveRequest request_;
  const std::uint64_t turn_;
  Stage stage_ = Stage::kReady;
  Status status_;
  runtime::MomentPtr ended_;
};

}  // namespace hv::nccl
