// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_collective.h"

#include "runtime/backend/mpi/reductions.h"
#include "runtime/backend/mpi/row_operations.h"

namespace hv::mpi {

using runtime::CollectiveKind;
using runtime::Progress;

std::byte* MpiCollective::take_room(std::size_t bytes) {
  MpiLane::Room room = lane_->take_room(bytes);
  std::byte* const begin = room.get();
  keep(std::move(room));
  return begin;
}

// Given up while MPI has some of it still: what that reads and writes for ever is never freed.
MpiCollective::~MpiCollective() {
  if (asked_.empty()) return;
  (void)new auto(std::move(kept_));
  (void)new auto(std::move(request_));
}

// In the order in which they were asked for: a look at one moves all of them.
void MpiCollective::test() {
  for (int is_done = 1; status_.ok() && !asked_.empty(); asked_.pop_front()) {
    status_ = check(MPI_Test(&asked_.front(), &is_done, MPI_STATUS_IGNORE), "move data");
    if (is_done == 0) return;
  }
}

void MpiCollective::begin_or_go_on(bool* is_done) {
  if (!has_begun_) {
    has_begun_ = true;
    status_ = begin();
    end_turn();
  }
  test();
  if (!status_.ok() || asked_.size() > overlap()) return;
  status_ = go_on(is_done);
  end_turn();
}

void MpiCollective::end_turn() {
  if (!turn_ || !has_asked_all()) return;
  turn_.reset();
  lane_->end_turn();
}

// MPI is called no more. Of its errors any may be a peer's end.
Progress MpiCollective::in_trouble() {
  const bool is_held_back = status_.code == StatusCode::kSystem && peers_end_.may_yet_be_told();
  return is_held_back ? Progress::kPending : Progress::kFailed;
}

Progress MpiCollective::advance() {
  if (!status_.ok()) return in_trouble();
  if (!has_begun_ && turn_ && !lane_->is_turn(*turn_)) return Progress::kPending;
  const Status there = lane_->ready();
  if (there.code == StatusCode::kInProgress || MpiProcess::of_process().has_to_wait())
    return Progress::kPending;
  if (status_.ok()) status_ = there;
  bool is_done = true;
  if (status_.ok()) MpiProcess::of_process().within([&] { begin_or_go_on(&is_done); });
  if (!status_.ok()) return in_trouble();
  if (!asked_.empty()) return is_done ? Progress::kPending : Progress::kAdvanced;
  return is_done ? Progress::kDone : Progress::kAdvanced;
}

std::unique_ptr<runtime::Collective> start_operation(std::shared_ptr<MpiLane> lane,
                                                     runtime::CollectiveRequest request) {
  std::unique_ptr<MpiCollective> made;
  switch (request.kind) {
    case CollectiveKind::kAllreduce:
      made = std::make_unique<Allreduce>(std::move(lane), std::move(request));
      break;
    case CollectiveKind::kReducescatter:
      made = std::make_unique<Reducescatter>(std::move(lane), std::move(request));
      break;
    case CollectiveKind::kAllgather:
      made = std::make_unique<Allgather>(std::move(lane), std::move(request));
      break;
    case CollectiveKind::kBroadcast:
      made = std::make_unique<Broadcast>(std::move(lane), std::move(request));
      break;
    case CollectiveKind::kAlltoall:
      made = std::make_unique<Alltoall>(std::move(lane), std::move(request));
      break;
    default:
      made = std::make_unique<Barrier>(std::move(lane), std::move(request));
      break;
  }
  return made;
}

}  // namespace hv::mpi
