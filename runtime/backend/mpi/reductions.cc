// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/reductions.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/backend/mpi/mpi_types.h"
#include "runtime/collective/finish.h"

namespace hv::mpi {

using runtime::CollectiveRequest;
using runtime::Reduction;
using runtime::Segment;

namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 20;

std::size_t elements_of(const CollectiveRequest& request) {
  std::size_t elements = 0;
  for (const Segment& segment : request.segments)
    elements += static_cast<std::size_t>(segment.count);
  return elements;
}

}  // namespace

Reducing::Reducing(std::shared_ptr<MpiLane> lane, CollectiveRequest given)
    : MpiCollective(std::move(lane), std::move(given)),
      kernels_(runtime::best_kernels()),
      wire_(runtime::wire_type(request().type, request().compression)),
      finish_(runtime::finish_of(request())) {}

MPI_Datatype Reducing::datatype() const { return datatype_of(wire_); }

Status Reducing::prepare() { return operation_of(wire_, request().reduction, &operation_); }

void Reducing::pack(std::byte* to, const std::byte* from, std::size_t count) const {
  const auto type = static_cast<std::size_t>(request().type);
  if (wire_ != request().type) {
    const auto compression = static_cast<std::size_t>(request().compression);
    kernels_.pack[type][compression](to, from, count, request().prescale);
  } else if (request().prescale != 1) {
    kernels_.scale[type](to, from, count, request().prescale);
  } else {
    kernels_.copy(to, from, count * element_bytes());
  }
}

void Reducing::unpack(std::byte* to, std::byte* from, std::size_t count) const {
  const auto type = static_cast<std::size_t>(request().type);
  const bool is_compressed = wire_ != request().type;
  const bool has_work = finish_.factor != 1 || finish_.divisor != 1;
  std::byte* const finished = is_compressed ? from : to;
  if (has_work || finished != from) {
    const void* const source = from;
    kernels_.reduce_for(wire_, Reduction::kSum)(finished, &source, 1, count, finish_);
  }
  if (is_compressed)
    kernels_.unpack[type][static_cast<std::size_t>(request().compression)](to, from, count);
}

Status Reducing::allreduce(const std::byte* from, std::byte* to, std::size_t count) {
  return for_each_part(count, [&](std::size_t at, std::size_t part) {
    return ask("allreduce", [&](MPI_Request* asked) {
      return MPI_Iallreduce(from + at * wire_bytes(), to + at * wire_bytes(),
                            static_cast<int>(part), datatype(), operation_, comm(), asked);
    });
  });
}

Status Allreduce::begin() {
  if (Status status = prepare(); !status.ok()) return status;
  elements_ = elements_of(request());
  return request().segments.size() > 1 ? begin_packed() : begin_piece();
}

Status Allreduce::begin_packed() {
  piece_ = elements_;
  copied_ = take_room(elements_ * wire_bytes());
  folded_ = take_room(elements_ * wire_bytes());
  std::byte* to = copied_;
  for (const Segment& segment : request().segments) {
    pack(to, segment.input, static_cast<std::size_t>(segment.count));
    to += static_cast<std::size_t>(segment.count) * wire_bytes();
  }
  return allreduce(copied_, folded_, elements_);
}

Status Allreduce::begin_piece() {
  const Segment& segment = request().segments.front();
  const bool is_copied = !is_plain() || segment.input == segment.output;
  const bool is_compressed = wire_bytes() != element_bytes();
  piece_ = std::min(elements_ - at_, kPieceBytes / wire_bytes());
  if (is_copied && copied_ == nullptr) copied_ = take_room(piece_ * wire_bytes());
  if (is_compressed && folded_ == nullptr) folded_ = take_room(piece_ * wire_bytes());
  const std::size_t offset = at_ * element_bytes();
  if (is_copied) pack(copied_, segment.input + offset, piece_);
  return allreduce(is_copied ? copied_ : segment.input,
                   is_compressed ? folded_ : segment.output + offset, piece_);
}

Status Allreduce::go_on(bool* is_done) {
  const auto& segments = request().segments;
  if (segments.size() > 1) {
    std::byte* from = folded_;
    for (const Segment& segment : segments) {
      const auto count = static_cast<std::size_t>(segment.count);
      unpack(segment.output, from, count);
      from += count * wire_bytes();
    }
    return Status::success();
  }
  std::byte* const to = segments.front().output + at_ * element_bytes();
  unpack(to, folded_ != nullptr ? folded_ : to, piece_);
  at_ += piece_;
  piece_ = 0;
  if (at_ == elements_) return Status::success();
  *is_done = false;
  return begin_piece();
}

Reducescatter::Share Reducescatter::share_of(std::size_t segment, int rank) const {
  const std::int64_t row = request().row_counts[segment];
  if (row == 0) return {};
  const std::int64_t rows = request().segments[segment].count / row;
  const runtime::RowRange own = runtime::rows_of(rows, members(), rank);
  return {static_cast<std::size_t>(own.begin * row), static_cast<std::size_t>(own.count * row)};
}

// By rank, of each the shares of all segments, one after the other.
Status Reducescatter::begin() {
  if (Status status = prepare(); !status.ok()) return status;
  const auto& segments = request().segments;
  std::vector<std::size_t> counts(static_cast<std::size_t>(members()));
  for (int rank = 0; rank < members(); ++rank)
    for (std::size_t i = 0; i < segments.size(); ++i)
      counts[static_cast<std::size_t>(rank)] += share_of(i, rank).count;
  share_ = take_room(counts[static_cast<std::size_t>(self())] * wire_bytes());
  if (segments.size() == 1 && is_plain()) return fold(segments.front().input, counts);
  std::byte* const packed = take_room(elements_of(request()) * wire_bytes());
  std::byte* to = packed;
  for (int rank = 0; rank < members(); ++rank) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const Share share = share_of(i, rank);
      pack(to, segments[i].input + share.begin * element_bytes(), share.count);
      to += share.count * wire_bytes();
    }
  }
  return fold(packed, counts);
}

// What is larger than MPI can count goes to one rank after the other.
Status Reducescatter::fold(const std::byte* from, const std::vector<std::size_t>& counts) {
  if (std::accumulate(counts.begin(), counts.end(), std::size_t{0}) <= INT_MAX) {
    auto* const ints = reinterpret_cast<int*>(take_room(counts.size() * sizeof(int)));
    std::transform(counts.begin(), counts.end(), ints,
                   [](std::size_t count) { return static_cast<int>(count); });
    return ask("reducescatter", [&](MPI_Request* asked) {
      return MPI_Ireduce_scatter(from, share_, ints, datatype(), operation_, comm(), asked);
    });
  }
  for (int rank = 0; rank < members(); ++rank) {
    const std::size_t count = counts[static_cast<std::size_t>(rank)];
    const Status status = for_each_part(count, [&](std::size_t at, std::size_t part) {
      return ask("reducescatter", [&](MPI_Request* asked) {
        return MPI_Ireduce(from + at * wire_bytes(), share_ + at * wire_bytes(),
                           static_cast<int>(part), datatype(), operation_, rank, comm(), asked);
      });
    });
    if (!status.ok()) return status;
    from += count * wire_bytes();
  }
  return Status::success();
}

Status Reducescatter::go_on(bool* /*is_done*/) {
  std::byte* from = share_;
  for (std::size_t i = 0; i < request().segments.size(); ++i) {
    const std::size_t count = share_of(i, self()).count;
    unpack(request().segments[i].output, from, count);
    from += count * wire_bytes();
  }
  return Status::success();
}

}  // namespace hv::mpi
