// Collective: one whole operation among the ranks, described by a request and carried out step by
// step.
// SPDX-License-Identifier: Apache-2.0
//
// Everything that all ranks must do alike is in the request, and equal on all of them. advance()
// never blocks and is called by one thread at a time (whoever holds the engine's progress lock).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/device/accelerator.h"
#include "runtime/device/element_type.h"
#include "src/base/status.h"

namespace hv::runtime {

enum class CollectiveKind : std::uint8_t {
  kAllreduce = 1,
  kAllgather = 2,
  kBroadcast = 3,
  kBarrier = 4,
  kReducescatter = 5,
  kAlltoall = 6,
  // The next three are carried out by the engine itself, as those of sets (process_sets.h): no
  // backend ever sees them, and these are no tensors to negotiate on.
  kJoin = 7,
  kSend = 8,
  kReceive = 9,
  kSparseAllreduce = 10,
  kAllocate = 11,  // memory by which reductions need no copy, where a backend has such
  kAddSet = 32,
  kRemoveSet = 33,
  kSetMade = 34,
  kSetGone = 35
};
constexpr bool is_set_change(CollectiveKind kind) { return kind >= CollectiveKind::kAddSet; }
constexpr bool is_between_two(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
}
// Ranks may differ in the first extent.
constexpr bool has_own_extents(CollectiveKind kind) {
  return kind == CollectiveKind::kAllgather || kind == CollectiveKind::kAlltoall ||
         kind == CollectiveKind::kSparseAllreduce;
}
// Folds what ranks have at the same place.
constexpr bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllreduce || kind == CollectiveKind::kReducescatter;
}
// Has a reduction and scales.
constexpr bool has_reduction(CollectiveKind kind) {
  return reduces(kind) || kind == CollectiveKind::kSparseAllreduce;
}
// Goes on without the ranks that have joined.
constexpr bool allows_absence(CollectiveKind kind) {
  return kind == CollectiveKind::kAllreduce || kind == CollectiveKind::kSparseAllreduce;
}

// A piece of memory that takes part; a fused operation has many. count is in elements of the
// request's type.
struct Segment {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;  // may equal input
  std::int64_t count = 0;
  std::size_t output_bytes = 0;  // of an alltoall: 0
  int device = kHostDevice;      // where both lie
};

struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ElementType type = ElementType::kFloat32;
  Reduction reduction = Reduction::kSum;  // average has become sum and a division by `divisor` here
  int root = 0;
  double prescale = 1;
  double postscale = 1;
  std::int64_t divisor = 1;    // average: the set's size; integers truncate towards zero
  bool deterministic = false;  // the same bits whatever the fusion and the order of arrival
  // allreduce of float32 and float64: what moves between ranks, and what the result is rounded to.
  Compression compression = Compression::kNone;
  ElementType index_type = ElementType::kInt64;  // sparse allreduce
  MemoryKind memory =
      MemoryKind::kHost;  // alike on all ranks; zeros of an absent one are the host's
  // The segments are a GPU's memory, ready, for a backend of the host's that only hands addresses
  // on; the host cannot reach them.
  bool is_out_of_reach = false;
  std::shared_ptr<Accelerator> accelerator{};  // of the segments that are not the host's
  std::vector<MomentPtr> ready{};              // when the inputs there are
  // allgather: one; output is the whole result, nullptr where nobody wants it. reducescatter:
  // output is this rank's share. alltoall: one, without output. sparse allreduce: indices, of
  // index_type, and values.
  std::vector<Segment> segments;
  // allocate: called once, where the backend has memory of its own for the segment.
  std::function<void(MemoryPtr)> give_memory{};
  // allreduce of one tensor: it lies at the same place of such memory on all ranks; of some that
  // have joined it lies nowhere.
  enum class Windows { kNone, kSome, kAll };
  Windows windows = Windows::kNone;
  // What each rank contributes: allgather: elements; sparse allreduce: rows; alltoall: rows, to
  // all together.
  std::vector<std::int64_t> counts_by_rank{};
  // reducescatter, alltoall: elements of a row, by segment; rows are never cut. sparse allreduce:
  // of a row of values.
  std::vector<std::int64_t> row_counts{};
  // alltoall: rows of this rank's input that go to each rank, one after the other.
  std::vector<std::int64_t> splits{};
  // alltoall: called once, when this rank has learnt how many rows come from each rank; returns
  // room for all of them, by rank, or nullptr: there is nothing to come, or no such memory here.
  std::function<std::byte*(const std::vector<std::int64_t>& received)> make_room{};
  // Memory of segments that is to be there as long as this: for whoever may read and write it even
  // when it is given up.
  std::vector<MemoryPtr> keeps{};
};

// Part `index` of `rows` rows that are shared out to `parts`: the first ones get one more.
struct RowRange {
  std::int64_t begin;
  std::int64_t count;
};
constexpr RowRange rows_of(std::int64_t rows, int parts, int index) {
  const std::int64_t each = rows / parts, more = rows % parts;
  return {each * index + (index < more ? index : more), each + (index < more ? 1 : 0)};
}

// kPending: nothing could be done. kAdvanced: something was. kPaused: the same, and more can be
// done at once; it is the turn of others first.
enum class Progress { kDone, kPending, kAdvanced, kPaused, kFailed };
constexpr bool has_advanced(Progress progress) {
  return progress == Progress::kAdvanced || progress == Progress::kPaused;
}

// What a collective under way needs of whoever drives it; the later ones ask for more.
enum class Attention {
  kBell,    // none before a bell rings
  kPolled,  // no bell rings for what it awaits: it is to be asked again soon
  kDriven,  // and nothing else moves it than being asked: whoever waits for it does not sleep
  kClose,   // and it moves sooner than a sleeper would be awake: nobody sleeps
};

// A collective under way. Destroying it before it is done is allowed only after a failure of the
// fabric.
class Collective {
 public:
  virtual ~Collective() = default;
  // Does what can be done without waiting.
  virtual Progress advance() = 0;
  // After kFailed.
  virtual Status status() const = 0;
  virtual Attention attention() const { return Attention::kBell; }
  // After kDone: when the results on a device are there; nullptr: they are now.
  virtual MomentPtr ended() const { return nullptr; }
  // It stands in a device's queue, or will, where work of other sets may wait behind it.
  virtual bool occupies_device() const { return false; }
  // False while those before it keep the data path from it.
  virtual bool has_begun() const { return true; }
  // A send's, before kDone: all of its bytes are on their way, so its receiver may have them.
  virtual bool has_sent_all() const { return false; }
};

}  // namespace hv::runtime
