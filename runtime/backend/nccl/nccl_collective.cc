// SPDX-License-Identifier: Apache-2.0
//
//   kReady      ranks tell each other what they need to know, on the host
//   kTurn       those before it have not been launched yet
//   kWindow     all members make memory that their peers reach
//   kLaunching  NCCL's own threads still give it to the stream: only then may anything follow there
#include "runtime/backend/nccl/nccl_collective.h"

#include <chrono>
#include <utility>

namespace hv::nccl {

using runtime::Progress;

namespace {

// Some 100 us were seen.
constexpr std::chrono::milliseconds kSoonLaunched{1};

}  // namespace

Status check_own_device(int own, int device) {
  if (device == runtime::kHostDevice || device == own) return Status::success();
  return {
      StatusCode::kUnsupported,
      "the tensor lies on GPU " + std::to_string(device) +
          ", and this rank's tensors of the process set, which NCCL carries, have been on GPU " +
          std::to_string(own) +
          "; try: one GPU a rank (torch.cuda.set_device(hvd.local_rank())), a process set for "
          "each GPU, or HVRUN_BACKEND=native, which goes through the host's memory"};
}

NcclCollective::NcclCollective(std::shared_ptr<Lane> lane, runtime::CollectiveRequest request)
    : lane_(std::move(lane)), request_(std::move(request)), turn_(lane_->take_turn()) {
  if (Status status = check_devices(); !status.ok()) (void)fail(std::move(status));
}

Progress NcclCollective::advance() {
  if (!status_.ok()) return Progress::kFailed;
  switch (stage_) {
    case Stage::kReady: {
      const Progress ready = get_ready();
      if (ready != Progress::kDone) return ready;
      stage_ = Stage::kTurn;
      return take_turn();
    }
    case Stage::kTurn:
      return take_turn();
    case Stage::kWindow:
      return await_window();
    case Stage::kLaunching:
      return await_launch();
    case Stage::kDone:
      break;
  }
  return Progress::kDone;
}

runtime::Attention NcclCollective::attention() const {
  switch (stage_) {
    case Stage::kReady:
      return runtime::Attention::kBell;
    case Stage::kLaunching:
      if (now() < launching_since_ + kSoonLaunched) return runtime::Attention::kClose;
      break;
    default:
      break;
  }
  return runtime::Attention::kPolled;
}

Progress NcclCollective::take_turn() {
  if (!lane_->is_turn(turn_)) return Progress::kPending;
  bool has_begun = false;
  if (const Status status = begin_window(&has_begun); !status.ok()) return fail_window(status);
  if (!has_begun) return give_it();
  stage_ = Stage::kWindow;
  return await_window();
}

Status NcclCollective::begin_window(bool* has_begun) {
  *has_begun = is_in_window() && lane_->needs_window(room_bytes());
  return *has_begun ? lane_->begin_window(room_bytes()) : Status::success();
}

Progress NcclCollective::await_window() {
  Status status = lane_->communicator().poll("register a window");
  if (status.code == StatusCode::kInProgress) return Progress::kPending;
  return status.ok() ? give_it() : fail_window(status);
}

Progress NcclCollective::fail_window(const Status& why) {
  return fail({why.code, std::string("make a window for ") + what() + ": " + why.message +
                             "; try: HVRUN_NCCL_WINDOWS=0, with which there are none"});
}

Progress NcclCollective::give_it() {
  launching_since_ = now();
  launched_ = device().within([this] { return give_all_but_the_end(); });
  stage_ = Stage::kLaunching;
  return await_launch();
}

Status NcclCollective::give_all_but_the_end() {
  const std::size_t bytes = room_bytes();
  has_room_ = bytes > 0;
  const cuda::Stream first = has_room_ ? lane_->in() : lane_->work();
  if (Status status = device().wait_in(first, request_.ready); !status.ok()) return status;
  if (has_room_) {
    std::byte* room = nullptr;
    runtime::MomentPtr packed;
    Status status = is_in_window() ? lane_->take_window(&room) : lane_->take_room(bytes, &room);
    if (status.ok()) status = pack(room);
    if (status.ok()) status = device().mark(lane_->in(), &packed);
    if (status.ok()) status = device().wait_in(lane_->work(), *packed);
    if (!status.ok()) return status;
  }
  Status status = lane_->keep_order();
  return status.ok() ? lane_->communicator().within([this] { return launch(); }) : status;
}

// A call that failed may have been told of a peer's end: the communicator then leaves time for
// others to say whose.
Progress NcclCollective::await_launch() {
  Status status = lane_->communicator().poll(doing().c_str());
  if (status.code == StatusCode::kInProgress) return Progress::kPending;
  if (status.ok()) status = launched_;
  if (status.ok()) status = device().within([this] { return give_the_end(); });
  if (!status.ok()) return fail(std::move(status));
  lane_->end_turn();
  stage_ = Stage::kDone;
  return Progress::kDone;
}

Status NcclCollective::give_the_end() {
  if (Status status = device().mark(lane_->work(), &ended_); !status.ok() || !has_room_)
    return status;
  Status status = device().wait_in(lane_->out(), *ended_);
  if (status.ok()) status = unpack();
  if (status.ok()) status = device().mark(lane_->out(), &ended_);
  if (status.ok()) lane_->give_back_room(ended_);
  return status;
}

Progress NcclCollective::fail(Status why) {
  status_ = std::move(why);
  // That would be what no rank can do, which all know alike and the job survives.
  if (status_.code == StatusCode::kUnsupported) status_.code = StatusCode::kSystem;
  return Progress::kFailed;
}

// Of what was enqueued before there was a communicator: later ones are refused there.
Status NcclCollective::check_devices() const {
  Status status;
  for (const runtime::Segment& segment : request_.segments)
    if (status.ok()) status = check_own_device(lane_->device().ordinal(), segment.device);
  return status;
}

Status NcclCollective::check(int result) const {
  return lane_->communicator().library().check(result, doing());
}

Status NcclCollective::grouped(const std::function<Status()>& calls) {
  if (Status status = check(call().group_start()); !status.ok()) return status;
  Status called = calls();
  Status ended = check(call().group_end());
  return called.ok() ? ended : called;
}

}  // namespace hv::nccl
