// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/reductions.h"

#include <algorithm>
#include <cmath>

#include "runtime/backend/nccl/nccl_types.h"

namespace hv::nccl {

using runtime::CollectiveRequest;
using runtime::Segment;

namespace {

cuda::Address address_of(const void* memory) { return reinterpret_cast<cuda::Address>(memory); }

// All ranks must ask NCCL for the same sum, also those whose tensors need no packing.
Status find_reduction(Lane& lane, const CollectiveRequest& request, const Scales& scales,
                      int* reduction) {
  *reduction = *reduction_of(request.reduction);
  return scales.by_nccl == 1 ? Status::success()
                             : lane.scaled_sum(request.type, scales.by_nccl, reduction);
}

// Of what all members know: one tensor may lie where NCCL can have it, and does so or does not on
// each of them; several, and what the kernels change on their way, are packed by all. So is one
// that lies in a window, but for some of them.
bool is_packed_by_all(const CollectiveRequest& request, const Scales& scales) {
  if (request.windows == CollectiveRequest::Windows::kSome) return true;
  const auto is_tensor = [](const Segment& segment) { return segment.count > 0; };
  const auto tensors = std::count_if(request.segments.begin(), request.segments.end(), is_tensor);
  return tensors > 1 || (tensors == 1 && (scales.is_before() || scales.is_after() ||
                                          request.compression != runtime::Compression::kNone));
}

// NCCL takes a factor as one of the tensor's type: a float16 has few bits of what is smaller than
// these, and nothing larger.
bool is_given_whole(runtime::ElementType type, double factor) {
  const double size = std::abs(factor);
  return type != runtime::ElementType::kFloat16 || (size >= 0x1p-14 && size <= 65504);
}

}  // namespace

// A floating sum's addends are multiplied, so that 16-bit floats do not overflow on their way; what
// goes as another type, while it still has its own.
Scales scales_of(const CollectiveRequest& request) {
  const double all = request.prescale * request.postscale / static_cast<double>(request.divisor);
  Scales scales;
  if (request.compression != runtime::Compression::kNone) {
    scales.before.factor = all;
  } else if (request.reduction == runtime::Reduction::kSum && runtime::is_floating(request.type)) {
    (is_given_whole(request.type, all) ? scales.by_nccl : scales.before.factor) = all;
  } else {
    scales.before.factor = request.prescale;
    scales.after = {request.postscale, request.divisor};
  }
  return scales;
}

Allreduce::Allreduce(std::shared_ptr<Lane> lane, CollectiveRequest given)
    : NcclCollective(std::move(lane), std::move(given)),
      scales_(scales_of(request())),
      is_in_window_(Allreduce::lane().has_windows() && is_packed_by_all(request(), scales_)),
      packing_(plan_packing(request(), is_in_window_ || scales_.is_before(),
                            is_in_window_ || scales_.is_after())),
      wire_(runtime::wire_type(request().type, request().compression)) {}

std::size_t Allreduce::room_bytes() const {
  return packing_.input != nullptr && packing_.output != nullptr ? 0 : packing_.bytes;
}

Status Allreduce::pack(std::byte* room) {
  room_ = room;
  std::vector<cuda::Strip> strips;
  for (const Move& move : packing_.moves_in) {
    const auto count = static_cast<std::uint64_t>(move.count);
    if (move.from != nullptr) {
      strips.push_back({address_of(move.from), address_of(room_ + move.offset), count});
      continue;
    }
    Status status =
        device().clear(lane().in(), room_ + move.offset, count * runtime::element_size(wire_));
    if (!status.ok()) return status;
  }
  return lane().kernels().move(lane().in(), strips, request().type, wire_, scales_.before);
}

Status Allreduce::launch() {
  int reduction = kSum;
  if (Status status = find_reduction(lane(), request(), scales_, &reduction); !status.ok())
    return status;
  const std::byte* const from = packing_.input != nullptr ? packing_.input : room_;
  std::byte* const to = packing_.output != nullptr ? packing_.output : room_;
  return check(call().allreduce(from, to, static_cast<std::size_t>(packing_.count), *type_of(wire_),
                                reduction, comm(), stream()));
}

Status Allreduce::unpack() {
  std::vector<cuda::Strip> strips;
  for (const Move& move : packing_.moves_out)
    strips.push_back({address_of(room_ + move.offset), address_of(move.to),
                      static_cast<std::uint64_t>(move.count)});
  return lane().kernels().move(lane().out(), strips, wire_, request().type, scales_.after);
}

Reducescatter::Reducescatter(std::shared_ptr<Lane> lane, CollectiveRequest given)
    : NcclCollective(std::move(lane), std::move(given)), scales_(scales_of(request())) {
  const auto places = static_cast<std::size_t>(members()) + 1;
  for (std::size_t i = 0; i < request().segments.size(); ++i) {
    shares_.push_back(share_of(i));
    if (!shares_[i].is_even) room_bytes_ += places * place_bytes(shares_[i]);
  }
}

Reducescatter::Share Reducescatter::share_of(std::size_t segment) const {
  const std::int64_t row = request().row_counts[segment];
  const std::int64_t count = request().segments[segment].count;
  const std::int64_t rows = row == 0 ? 0 : count / row;
  const int ranks = members();
  const std::int64_t most = runtime::rows_of(rows, ranks, 0).count * row;
  const bool is_even =
      most == 0 || (most * ranks == count && !scales_.is_before() && !scales_.is_after());
  return {runtime::rows_of(rows, ranks, self()).count * row, most, is_even, nullptr};
}

std::size_t Reducescatter::place_bytes(const Share& share) const {
  return static_cast<std::size_t>(share.most) * runtime::element_size(request().type);
}

// What is behind a rank's rows in its place goes to nobody.
Status Reducescatter::pack(std::byte* room) {
  const std::size_t width = runtime::element_size(request().type);
  std::vector<cuda::Strip> strips;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    if (share.is_even) continue;
    const std::int64_t row = request().row_counts[i];
    const Segment& segment = request().segments[i];
    share.places = room;
    for (int rank = 0; rank < members(); ++rank, room += place_bytes(share)) {
      const runtime::RowRange range = runtime::rows_of(segment.count / row, members(), rank);
      const auto begin = static_cast<std::size_t>(range.begin * row) * width;
      strips.push_back({address_of(segment.input + begin), address_of(room),
                        static_cast<std::uint64_t>(range.count * row)});
    }
    room += place_bytes(share);
  }
  return lane().kernels().move(lane().in(), strips, request().type, request().type, scales_.before);
}

Status Reducescatter::launch() {
  int reduction = 0;
  if (Status status = find_reduction(lane(), request(), scales_, &reduction); !status.ok())
    return status;
  return grouped([&] {
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      const Share& share = shares_[i];
      if (share.most == 0) continue;
      const Segment& segment = request().segments[i];
      const std::byte* const from = share.is_even ? segment.input : share.places;
      std::byte* const to =
          share.is_even ? segment.output
                        : share.places + static_cast<std::size_t>(members()) * place_bytes(share);
      Status status =
          check(call().reducescatter(from, to, static_cast<std::size_t>(share.most),
                                     *type_of(request().type), reduction, comm(), stream()));
      if (!status.ok()) return status;
    }
    return Status::success();
  });
}

Status Reducescatter::unpack() {
  std::vector<cuda::Strip> strips;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const Share& share = shares_[i];
    if (share.is_even) continue;
    const std::byte* const result =
        share.places + static_cast<std::size_t>(members()) * place_bytes(share);
    strips.push_back({address_of(result), address_of(request().segments[i].output),
                      static_cast<std::uint64_t>(share.own)});
  }
  return lane().kernels().move(lane().out(), strips, request().type, request().type, scales_.after);
}

}  // namespace hv::nccl
