// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/row_operations.h"

#include <climits>
#include <cstring>
#include <numeric>

#include "runtime/collective/alltoall_room.h"

namespace hv::mpi {

using runtime::Segment;

// ---- allgather ----

// The input may lie anywhere in the output, which is its caller's.
Status Allgather::begin() {
  const Segment& segment = request().segments.front();
  const auto& counts = request().counts_by_rank;
  const auto total =
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) *
                               static_cast<std::int64_t>(element_bytes()));
  const std::size_t own =
      static_cast<std::size_t>(counts[static_cast<std::size_t>(self())]) * element_bytes();
  std::byte* const output = segment.output != nullptr ? segment.output : take_room(total);
  const std::byte* input = segment.input;
  if (total > INT_MAX) return gather_parts(input, output);
  if (own > 0 && input < output + total && output < input + own) {
    std::byte* const copy = take_room(own);
    std::memcpy(copy, input, own);
    input = copy;
  }
  auto* const ints = reinterpret_cast<int*>(take_room(2 * counts.size() * sizeof(int)));
  int* const starts = ints + counts.size();
  int start = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    ints[rank] = static_cast<int>(counts[rank]) * static_cast<int>(element_bytes());
    starts[rank] = start;
    start += ints[rank];
  }
  return ask("allgather", [&](MPI_Request* asked) {
    return MPI_Iallgatherv(input, static_cast<int>(own), MPI_BYTE, output, ints, starts, MPI_BYTE,
                           comm(), asked);
  });
}

// Of more bytes than MPI can count. The input goes to its place before others come to theirs.
Status Allgather::gather_parts(const std::byte* input, std::byte* output) {
  const auto own = request().counts_by_rank.begin() + self();
  const auto before = std::accumulate(request().counts_by_rank.begin(), own, std::int64_t{0});
  if (*own > 0)
    std::memmove(output + static_cast<std::size_t>(before) * element_bytes(), input,
                 static_cast<std::size_t>(*own) * element_bytes());
  for (int rank = 0; rank < members(); ++rank) {
    const std::size_t bytes =
        static_cast<std::size_t>(request().counts_by_rank[static_cast<std::size_t>(rank)]) *
        element_bytes();
    const Status status = for_each_part(bytes, [&](std::size_t at, std::size_t part) {
      return ask("allgather", [&](MPI_Request* asked) {
        return MPI_Ibcast(output + at, static_cast<int>(part), MPI_BYTE, rank, comm(), asked);
      });
    });
    if (!status.ok()) return status;
    output += bytes;
  }
  return Status::success();
}

// ---- broadcast ----

Status Broadcast::begin() {
  const auto& segments = request().segments;
  const bool is_root = request().root == self();
  std::size_t bytes = 0;
  for (const Segment& segment : segments)
    bytes += static_cast<std::size_t>(segment.count) * element_bytes();
  if (segments.size() > 1 || segments.front().output == nullptr) packed_ = take_room(bytes);
  std::byte* to = packed_ != nullptr ? packed_ : segments.front().output;
  std::byte* const begin = to;
  if (is_root) {
    for (const Segment& segment : segments) {
      const std::size_t own = static_cast<std::size_t>(segment.count) * element_bytes();
      if (own > 0 && segment.input != to) std::memmove(to, segment.input, own);
      to += own;
    }
  }
  return for_each_part(bytes, [&](std::size_t at, std::size_t part) {
    return ask("broadcast", [&](MPI_Request* asked) {
      return MPI_Ibcast(begin + at, static_cast<int>(part), MPI_BYTE, request().root, comm(),
                        asked);
    });
  });
}

Status Broadcast::go_on(bool* /*is_done*/) {
  const std::byte* from = packed_;
  for (const Segment& segment : request().segments) {
    if (packed_ == nullptr) break;
    const std::size_t own = static_cast<std::size_t>(segment.count) * element_bytes();
    if (own > 0 && segment.output != nullptr) std::memcpy(segment.output, from, own);
    from += own;
  }
  return Status::success();
}

// ---- alltoall ----

Status Alltoall::begin() {
  tag_ = lane().next_tag();
  received_ = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(members()));
  keep(received_);
  return ask("alltoall", [&](MPI_Request* asked) {
    return MPI_Ialltoall(request().splits.data(), 1, MPI_INT64_T, received_->data(), 1, MPI_INT64_T,
                         comm(), asked);
  });
}

Status Alltoall::go_on(bool* is_done) {
  if (is_told_) return Status::success();
  is_told_ = true;
  std::byte* room = nullptr;
  if (Status status = runtime::make_alltoall_room(request(), *received_, &room); !status.ok())
    return status;
  *is_done = false;
  return send_rows(room);
}

Status Alltoall::send_rows(std::byte* room) {
  const std::size_t row = static_cast<std::size_t>(request().row_counts.front()) * element_bytes();
  const std::byte* from = request().segments.front().input;
  const std::byte* own = nullptr;
  for (int rank = 0; rank < members(); ++rank) {
    const std::size_t bytes =
        static_cast<std::size_t>(request().splits[static_cast<std::size_t>(rank)]) * row;
    const std::byte* const at_rank = from;
    from += bytes;
    if (rank == self() && !request().is_out_of_reach) {
      own = at_rank;
      continue;
    }
    const Status status = for_each_part(bytes, [&](std::size_t at, std::size_t part) {
      return ask("alltoall", [&](MPI_Request* asked) {
        return MPI_Isend(at_rank + at, static_cast<int>(part), MPI_BYTE, rank, tag_, comm(), asked);
      });
    });
    if (!status.ok()) return status;
  }
  for (int rank = 0; rank < members(); ++rank) {
    const std::size_t bytes =
        static_cast<std::size_t>((*received_)[static_cast<std::size_t>(rank)]) * row;
    std::byte* const to = room;
    room += bytes;
    if (own != nullptr && rank == self()) {
      if (bytes > 0) std::memcpy(to, own, bytes);
      continue;
    }
    const Status status = for_each_part(bytes, [&](std::size_t at, std::size_t part) {
      return ask("alltoall", [&](MPI_Request* asked) {
        return MPI_Irecv(to + at, static_cast<int>(part), MPI_BYTE, rank, tag_, comm(), asked);
      });
    });
    if (!status.ok()) return status;
  }
  return Status::success();
}

// ---- barrier ----

Status Barrier::begin() {
  return ask("barrier", [&](MPI_Request* asked) { return MPI_Ibarrier(comm(), asked); });
}

}  // namespace hv::mpi
