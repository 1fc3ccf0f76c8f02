// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/row_operations.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/collective/alltoall_room.h"

namespace hv::nccl {

using runtime::CollectiveKind;
using runtime::CollectiveRequest;
using runtime::Progress;
using runtime::Segment;

namespace {

std::size_t bytes_of(const CollectiveRequest& request, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * runtime::element_size(request.type);
}

}  // namespace

// Where nobody wants the result, it has to go somewhere all the same.
std::size_t Allgather::room_bytes() const {
  const auto& counts = request().counts_by_rank;
  return output_ != nullptr
             ? 0
             : bytes_of(request(), std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
}

Status Allgather::launch() {
  const auto& counts = request().counts_by_rank;
  const std::byte* const input = request().segments.front().input;
  const bool is_even = std::all_of(counts.begin(), counts.end(),
                                   [&](std::int64_t count) { return count == counts.front(); });
  if (is_even) {
    return check(call().allgather(input, output_, bytes_of(request(), counts.front()), kUint8,
                                  comm(), stream()));
  }
  // Newer ones make one operation of a group's broadcasts. 2.32.3 gave wrong rows by it, where
  // ranks shared a GPU.
  const bool has_broadcasts = lane().communicator().library().version() < kFusesBroadcastsFrom;
  const std::size_t own = bytes_of(request(), counts[static_cast<std::size_t>(self())]);
  return grouped([&] {
    std::byte* to = output_;
    for (int rank = 0; rank < members(); ++rank) {
      const std::size_t bytes = bytes_of(request(), counts[static_cast<std::size_t>(rank)]);
      Status status = has_broadcasts ? broadcast_rows(rank == self() ? input : to, to, bytes, rank)
                                     : exchange_rows(input, own, to, bytes, rank);
      if (!status.ok()) return status;
      to += bytes;
    }
    return Status::success();
  });
}

Status Allgather::broadcast_rows(const std::byte* from, std::byte* to, std::size_t bytes,
                                 int root) {
  return bytes == 0 ? Status::success()
                    : check(call().broadcast(from, to, bytes, kUint8, root, comm(), stream()));
}

Status Allgather::exchange_rows(const std::byte* own, std::size_t own_bytes, std::byte* to,
                                std::size_t bytes, int peer) {
  Status status;
  if (own_bytes > 0) status = check(call().send(own, own_bytes, kUint8, peer, comm(), stream()));
  if (status.ok() && bytes > 0)
    status = check(call().receive(to, bytes, kUint8, peer, comm(), stream()));
  return status;
}

Broadcast::Broadcast(std::shared_ptr<Lane> lane, CollectiveRequest given)
    : NcclCollective(std::move(lane), std::move(given)) {
  for (const Segment& segment : request().segments) outputs_.push_back(segment.output);
}

std::size_t Broadcast::room_bytes() const {
  std::size_t bytes = 0;
  for (const Segment& segment : request().segments)
    if (segment.output == nullptr) bytes += bytes_of(request(), segment.count);
  return bytes;
}

Status Broadcast::pack(std::byte* room) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i] != nullptr) continue;
    outputs_[i] = room;
    room += bytes_of(request(), request().segments[i].count);
  }
  return Status::success();
}

Status Broadcast::launch() {
  return grouped([&] {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Segment& segment = request().segments[i];
      const std::size_t bytes = bytes_of(request(), segment.count);
      if (bytes == 0) continue;
      const void* const from = self() == request().root ? segment.input : outputs_[i];
      Status status = check(
          call().broadcast(from, outputs_[i], bytes, kUint8, request().root, comm(), stream()));
      if (!status.ok()) return status;
    }
    return Status::success();
  });
}

Alltoall::Alltoall(std::shared_ptr<Lane> lane, CollectiveRequest given, runtime::Backend& host)
    : NcclCollective(std::move(lane), std::move(given)) {
  const auto ranks = static_cast<std::size_t>(members());
  all_splits_.resize(ranks * ranks);
  CollectiveRequest splits;
  splits.kind = CollectiveKind::kAllgather;
  splits.type = runtime::ElementType::kInt64;
  splits.counts_by_rank.assign(ranks, static_cast<std::int64_t>(ranks));
  splits.segments.push_back({reinterpret_cast<const std::byte*>(request().splits.data()),
                             reinterpret_cast<std::byte*>(all_splits_.data()),
                             static_cast<std::int64_t>(ranks),
                             all_splits_.size() * sizeof(std::int64_t)});
  tell_ = host.start(std::move(splits));
}

std::size_t Alltoall::row_bytes() const {
  return bytes_of(request(), request().row_counts.front());
}

Progress Alltoall::get_ready() {
  const Progress told = tell_->advance();
  if (told == Progress::kFailed) return fail(tell_->status());
  if (told != Progress::kDone) return told;
  const auto ranks = static_cast<std::size_t>(members());
  for (std::size_t from = 0; from < ranks; ++from)
    received_.push_back(all_splits_[from * ranks + static_cast<std::size_t>(self())]);
  if (Status status = runtime::check_received(request(), received_); !status.ok())
    return fail(std::move(status));
  const std::int64_t rows = std::accumulate(received_.begin(), received_.end(), std::int64_t{0});
  output_ = request().make_room(received_);
  if (output_ != nullptr || rows == 0 || row_bytes() == 0) return Progress::kDone;
  return fail({StatusCode::kMemory, "making room for the " + std::to_string(rows) +
                                        " rows of the result: out of memory; give fewer rows at a "
                                        "time"});
}

Status Alltoall::launch() {
  return grouped([&] {
    const std::byte* from = request().segments.front().input;
    std::byte* to = output_;
    for (int rank = 0; rank < members(); ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      const std::size_t sent = static_cast<std::size_t>(request().splits[index]) * row_bytes();
      const std::size_t received = static_cast<std::size_t>(received_[index]) * row_bytes();
      Status status;
      if (sent > 0) status = check(call().send(from, sent, kUint8, rank, comm(), stream()));
      if (status.ok() && received > 0)
        status = check(call().receive(to, received, kUint8, rank, comm(), stream()));
      if (!status.ok()) return status;
      from += sent;
      to += received;
    }
    return Status::success();
  });
}

}  // namespace hv::nccl
