// Programs of random operations: what each rank of a job does, and what must come of it.
// SPDX-License-Identifier: Apache-2.0
//
// Everything follows from a seed, so every rank plans the same program by itself; only the order in
// which it asks for a window's operations is its own. Values are small whole numbers: sums are
// exact in every type and every wire type, in any order.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runtime/collective/collective.h"
#include "tests/ranks/reference.h"

namespace hv::runtime {

struct Members {
  std::uint32_t set = 0;
  std::vector<int> ranks{};  // ascending

  int size() const { return static_cast<int>(ranks.size()); }
  // -1: no member.
  int place_of(int rank) const;
};

constexpr std::int64_t kSparseColumns = 3;

// One operation; the same on every rank.
struct Planned {
  Members members{};
  std::string name{};
  CollectiveKind kind{};  // kSend: a send to one rank, with what receives it
  ElementType type{};
  Reduction reduction = Reduction::kSum;
  Compression compression = Compression::kNone;
  double prescale = 1, postscale = 1;
  bool is_scalar = false;               // has no dimensions, and so one element
  int root = 0;                         // of a broadcast; the sender
  int receiver = 0;                     // of a send
  bool has_long_indices = false;        // of a sparse allreduce
  std::uint64_t group = 0;              // 0: none
  std::uint32_t group_size = 0;         // operations of that group
  std::vector<std::int64_t> extents{};  // elements, or rows if sparse, by member
  std::uint64_t seed = 0;
  bool stays_on_host = false;  // where a program's tensors go to GPUs

  bool takes_part(int place) const;
  bool is_sparse() const { return kind == CollectiveKind::kSparseAllreduce; }
};

// Names come again from one window to the next, so that the cache is hit, missed and evicted; in
// the same window they stand in several sets. What is planned at once may be under way at once.
std::vector<Planned> plan_window(std::mt19937_64& random, const std::vector<Members>& sets,
                                 int window);

Bytes input_of(const Planned& planned, int place);
// Of a sparse allreduce, one for each row of a member.
std::vector<std::int64_t> indices_of(const Planned& planned, int place);
// How many of a member's elements go to each member in an alltoall.
std::vector<std::int64_t> splits_of(const Planned& planned, int place);
// Of the result at the member of that place, unless it is gathered.
std::size_t result_bytes(const Planned& planned, int place);
// That result.
Bytes expected_of(const Planned& planned, int place);
std::vector<std::int64_t> expected_indices(const Planned& planned);
// Empty, or how the result there differs from what it must be.
std::string first_mistake(const Planned& planned, int place, const Bytes& actual);

}  // namespace hv::runtime
