// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/reductions.h"

#include <algorithm>

#include "runtime/backend/nccl/nccl_types.h"

namespace hv::nccl {

using runtime::CollectiveRequest;
using runtime::Segment;

namespace {

// What a sum's addends are multiplied by, so that 16-bit floats do not overflow on their way.
double factor_of(const CollectiveRequest& request) {
  return request.prescale * request.postscale / static_cast<double>(request.divisor);
}

Status find_reduction(Lane& lane, const CollectiveRequest& request, int* reduction) {
  *reduction = *reduction_of(request.reduction);
  const double factor = factor_of(request);
  return factor == 1 ? Status::success() : lane.scaled_sum(request.type, factor, reduction);
}

}  // namespace

Allreduce::Allreduce(std::shared_ptr<Lane> lane, CollectiveRequest given)
    : NcclCollective(std::move(lane), std::move(given)), packing_(plan_packing(request())) {}

Status Allreduce::before() {
  if (packing_.input != nullptr && packing_.output != nullptr) return Status::success();
  if (Status status = lane().room(packing_.bytes, &room_); !status.ok()) return status;
  for (const Move& move : packing_.moves_in) {
    Status status = move.from != nullptr ? copy(room_ + move.offset, move.from, move.bytes)
                                         : clear(room_ + move.offset, move.bytes);
    if (!status.ok()) return status;
  }
  return Status::success();
}

Status Allreduce::launch() {
  int reduction = 0;
  if (Status status = find_reduction(lane(), request(), &reduction); !status.ok()) return status;
  const std::byte* const from = packing_.input != nullptr ? packing_.input : room_;
  std::byte* const to = packing_.output != nullptr ? packing_.output : room_;
  return check(call().allreduce(from, to, static_cast<std::size_t>(packing_.count),
                                *type_of(request().type), reduction, comm(), stream()));
}

Status Allreduce::after() {
  for (const Move& move : packing_.moves_out) {
    if (Status status = copy(move.to, room_ + move.offset, move.bytes); !status.ok()) return status;
  }
  return Status::success();
}

Reducescatter::Share Reducescatter::share_of(std::size_t segment) const {
  const std::int64_t row = request().row_counts[segment];
  const std::int64_t rows = row == 0 ? 0 : request().segments[segment].count / row;
  const int ranks = members();
  return {runtime::rows_of(rows, ranks, self()).count * row,
          runtime::rows_of(rows, ranks, 0).count * row, nullptr};
}

Status Reducescatter::before() {
  const std::size_t width = runtime::element_size(request().type);
  const auto ranks = static_cast<std::size_t>(members());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < request().segments.size(); ++i) {
    shares_.push_back(share_of(i));
    const bool is_even = shares_[i].most * members() == request().segments[i].count;
    if (!is_even) bytes += (ranks + 1) * static_cast<std::size_t>(shares_[i].most) * width;
  }
  if (bytes == 0) return Status::success();
  std::byte* room = nullptr;
  if (Status status = lane().room(bytes, &room); !status.ok()) return status;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    if (share.most * members() == request().segments[i].count) continue;
    share.places = room;
    room += (ranks + 1) * static_cast<std::size_t>(share.most) * width;
    if (Status status = fill_places(i, share); !status.ok()) return status;
  }
  return Status::success();
}

// The last place is for the result. What is behind a rank's rows in its place goes to nobody.
Status Reducescatter::fill_places(std::size_t segment, const Share& share) {
  const std::size_t width = runtime::element_size(request().type);
  const std::int64_t row = request().row_counts[segment];
  const Segment& one = request().segments[segment];
  for (int rank = 0; rank < members(); ++rank) {
    const runtime::RowRange range = runtime::rows_of(one.count / row, members(), rank);
    std::byte* const place = share.places + static_cast<std::size_t>(rank * share.most) * width;
    const std::byte* const from = one.input + static_cast<std::size_t>(range.begin * row) * width;
    Status status = copy(place, from, static_cast<std::size_t>(range.count * row) * width);
    if (!status.ok()) return status;
  }
  return Status::success();
}

Status Reducescatter::launch() {
  int reduction = 0;
  if (Status status = find_reduction(lane(), request(), &reduction); !status.ok()) return status;
  return grouped([&] {
    const std::size_t width = runtime::element_size(request().type);
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      const Share& share = shares_[i];
      if (share.most == 0) continue;
      const bool is_even = share.places == nullptr;
      const std::byte* const from = is_even ? request().segments[i].input : share.places;
      std::byte* const to =
          is_even ? request().segments[i].output
                  : share.places + static_cast<std::size_t>(members() * share.most) * width;
      Status status =
          check(call().reducescatter(from, to, static_cast<std::size_t>(share.most),
                                     *type_of(request().type), reduction, comm(), stream()));
      if (!status.ok()) return status;
    }
    return Status::success();
  });
}

Status Reducescatter::after() {
  const std::size_t width = runtime::element_size(request().type);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const Share& share = shares_[i];
    if (share.places == nullptr || share.own == 0) continue;
    const std::byte* const result =
        share.places + static_cast<std::size_t>(members() * share.most) * width;
    Status status =
        copy(request().segments[i].output, result, static_cast<std::size_t>(share.own) * width);
    if (!status.ok()) return status;
  }
  return Status::success();
}

}  // namespace hv::nccl
