// What all ranks must agree on about one tensor's operation, as a value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/device/accelerator.h"
#include "runtime/device/element_type.h"
#include "src/base/status.h"

namespace hv::runtime {

// The first extent of an allgather, alltoall or sparse allreduce is each rank's own affair: here it
// stands as kVaries, beside it as a number.
constexpr std::int64_t kVaries = -1;
constexpr std::size_t kMostDimensions = 64;
constexpr std::size_t kMostMembers = 1 << 20;    // of a process set
constexpr std::uint32_t kMostGrouped = 1 << 20;  // tensors of a group

// Names that begin so are the library's own.
constexpr const char* kOwnPrefix = "hvrun:";
constexpr const char* kBarrierName = "hvrun:barrier";  // of every barrier without a name
constexpr const char* kJoinName = "hvrun:hvrun_join";
constexpr const char* kChangeName = "hvrun:change of process sets";  // one at a time

// For messages: "tensor 'w'"; of the library's own what stands behind the prefix, which is words.
std::string tensor_words(const std::string& name);

constexpr std::int64_t kMostElements = std::int64_t{1} << 48;  // of a tensor, or of one row of it

// No more than kMostElements, extents of 0 and kVaries counted as 1.
bool is_countable(const std::vector<std::int64_t>& shape);

struct TensorDescription {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ElementType type = ElementType::kUint8;
  Reduction reduction = Reduction::kSum;  // kSum where nothing is reduced
  std::int32_t root = 0;                  // 0 where there is none; of a change of sets: the number
  double prescale = 1;
  double postscale = 1;
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> ranks;  // kAddSet: the members, ascending
  std::uint64_t group = 0;          // tensors that complete or fail as one; 0: none
  std::uint32_t group_size = 0;     // how many those are
  bool divides_by_present = false;  // an average leaves out the ranks that have joined
  Compression compression = Compression::kNone;
  ElementType index_type = ElementType::kInt64;  // kSparseAllreduce
  MemoryKind memory = MemoryKind::kHost;         // which of its devices is each rank's own affair
  // kAllreduce: the memory from kAllocate that it lies in, 0: none, and where there, in bytes.
  std::uint32_t window = 0;
  std::int64_t window_offset = 0;

  bool operator==(const TensorDescription&) const = default;
  // Elements of one rank's tensor; where the first extent varies, those of one row.
  std::int64_t elements() const;
  std::int64_t bytes() const;
  // False for numbers that no rank of this build sends.
  bool is_valid() const;

  void fields(auto& a) {
    a(kind, type, reduction, root, prescale, postscale, shape, ranks, group, group_size,
      divides_by_present, compression, index_type, memory, window, window_offset);
  }
};

bool is_index_type(ElementType type);
// kUnsupported, with words, for what no arithmetic gives a meaning to. Asked of the description,
// not of a backend: one rank refuses what many would.
Status check_meaning(const TensorDescription& description);

const char* collective_name(CollectiveKind kind);
// "[3,4]"; a varying extent is "*".
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace hv::runtime
