// NcclCollective: from a request to calls of NCCL on the lane's streams.
// SPDX-License-Identifier: Apache-2.0
//
// It is done for the host when all of it has been given to the streams, and never waits for the
// GPU: ended() is when the results are there. What needs no room has nothing to do but its launch.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/backend/nccl/lane.h"
#include "runtime/collective/collective.h"
#include "src/base/clock.h"

namespace hv::nccl {

// A communicator is of one GPU of this rank's, `own`.
Status check_own_device(int own, int device);

class NcclCollective : public runtime::Collective {
 public:
  NcclCollective(std::shared_ptr<Lane> lane, runtime::CollectiveRequest request);

  runtime::Progress advance() final;
  Status status() const final { return status_; }
  // A launch is over soon, unless it is a first one, which also connects.
  runtime::Attention attention() const final;
  runtime::MomentPtr ended() const final { return ended_; }
  bool occupies_device() const final { return true; }

 protected:
  virtual const char* what() const = 0;  // "allreduce"
  // Before its turn: what ranks tell each other on the host. kDone: nothing more.
  virtual runtime::Progress get_ready() { return runtime::Progress::kDone; }
  // What it needs of the lane's memory; and whether that is a window, on all members alike.
  virtual std::size_t room_bytes() const { return 0; }
  virtual bool is_in_window() const { return false; }
  // When it has its turn: begins to make a window where one is to be made, as on all members.
  virtual Status begin_window(bool* has_begun);
  // Each on a stream of the lane's, which comes there when the one before is over; pack() when the
  // inputs are ready. room: nullptr where none is needed, and then there is only the launch.
  virtual Status pack(std::byte* /*room*/) { return Status::success(); }
  virtual Status launch() = 0;
  virtual Status unpack() { return Status::success(); }

  const runtime::CollectiveRequest& request() const { return request_; }
  Lane& lane() { return *lane_; }
  int members() const { return lane_->communicator().members(); }
  int self() const { return lane_->communicator().self(); }
  cuda::Device& device() { return lane_->device(); }
  cuda::Stream stream() const { return lane_->work(); }
  Comm comm() { return lane_->communicator().get(); }
  const LibraryFunctions& call() const { return lane_->call(); }
  // What one call of NCCL has answered.
  Status check(int result) const;
  // Calls that NCCL takes as one. A failure inside ends the group all the same.
  Status grouped(const std::function<Status()>& calls);
  // This rank's own: peers may have launched theirs, and the turn is never over.
  runtime::Progress fail(Status why);

 private:
  enum class Stage { kReady, kTurn, kWindow, kLaunching, kDone };

  runtime::Progress take_turn();
  runtime::Progress await_window();
  runtime::Progress fail_window(const Status& why);
  runtime::Progress give_it();
  Status give_all_but_the_end();
  runtime::Progress await_launch();
  Status give_the_end();
  Status check_devices() const;
  std::string doing() const { return std::string("carry out ") + what(); }

  const std::shared_ptr<Lane> lane_;
  const runtime::CollectiveRequest request_;
  const std::uint64_t turn_;
  Stage stage_ = Stage::kReady;
  bool has_room_ = false;
  TimePoint launching_since_{};
  Status launched_;  // what came of its launch
  Status status_;
  runtime::MomentPtr ended_;
};

}  // namespace hv::nccl
