// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_pair.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/device/kernels.h"

namespace hv::mpi {
namespace {

constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);
constexpr std::size_t kLine = 64;  // of the cache, with which a piece begins
// With the number it fits into a room of 1 MiB.
constexpr std::size_t kMostPairBytes = (std::size_t{1} << 20) - kLine;

// As few pieces as may be, and of one size, but for the last: 1 MiB goes in two halves.
std::size_t piece_bytes(std::size_t all) {
  const std::size_t pieces = (all + kMostPairBytes - 1) / kMostPairBytes;
  const std::size_t even = pieces == 0 ? 0 : (all + pieces - 1) / pieces;
  return (even + kLine - 1) / kLine * kLine;
}

}  // namespace

// Without a request: MpiCollective would keep it for ever where MPI has a room still.
MpiPair::MpiPair(std::shared_ptr<MpiLane> lane, runtime::PairRequest request)
    : MpiCollective(std::move(lane), {}, Order::kNone),
      pair_(std::move(request)),
      piece_bytes_(piece_bytes(all())) {}

std::size_t MpiPair::piece_at(std::size_t offset) const {
  return std::min(piece_bytes_, all() - offset);
}

Status MpiPair::begin() {
  for (std::byte*& room : rooms_) {
    if (&room != rooms_.data() && all() <= piece_bytes_) break;
    room = take_room(piece_at(0) + kNumberBytes);
  }
  Status status;
  while (status.ok() && given_ < all() && begun_ < kUnderWay) status = begin_piece();
  return status;
}

// The pieces have one tag: messages between two ranks stay in order. A receive that is given up
// stays with MPI, and its room: what comes for it is of that transfer, for no other of this
// process's life has its number, and a tag comes again very late.
Status MpiPair::begin_piece() {
  const std::size_t bytes = piece_at(given_);
  std::byte* const room = rooms_[begun_++ % kUnderWay];
  const int length = static_cast<int>(bytes + kNumberBytes), tag = lane().tag_of(pair_.number);
  const std::size_t from = std::exchange(given_, given_ + bytes);
  if (!pair_.sends)
    return ask("receive", [&](MPI_Request* asked) {
      return MPI_Irecv(room, length, MPI_BYTE, pair_.peer, tag, comm(), asked);
    });
  runtime::best_kernels().copy(room, pair_.bytes.input + from, bytes);
  std::memcpy(room + bytes, &pair_.number, kNumberBytes);
  return ask("send", [&](MPI_Request* asked) {
    return MPI_Isend(room, length, MPI_BYTE, pair_.peer, tag, comm(), asked);
  });
}

Status MpiPair::end_piece() {
  const std::size_t bytes = piece_at(moved_);
  const std::byte* const room = rooms_[ended_++ % kUnderWay];
  const std::size_t to = std::exchange(moved_, moved_ + bytes);
  if (pair_.sends) return Status::success();
  std::uint64_t number = 0;
  std::memcpy(&number, room + bytes, kNumberBytes);
  if (number != pair_.number)
    return {StatusCode::kSystem, "receive: from rank " + std::to_string(pair_.peer) +
                                     " came transfer " + std::to_string(number) + " instead of " +
                                     std::to_string(pair_.number) +
                                     ": MPI has too few tags; try: HVRUN_BACKEND=native"};
  runtime::best_kernels().copy(pair_.bytes.output + to, room, bytes);
  return Status::success();
}

Status MpiPair::go_on(bool* is_done) {
  if (ended_ < begun_)
    if (Status status = end_piece(); !status.ok()) return status;
  *is_done = moved_ == all();
  return given_ < all() ? begin_piece() : Status::success();
}

}  // namespace hv::mpi
