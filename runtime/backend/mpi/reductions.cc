// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/reductions.h"

#include <algorithm>
#include <climits>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "runtime/backend/mpi/mpi_process.h"
#include "runtime/collective/ring_collective.h"

namespace hv::mpi {

using runtime::ElementType;
using runtime::Reduction;

namespace {

constexpr int kTypes = runtime::kTypeNumbers, kReductions = 6;

template <int kNumber>
void fold(void* input, void* into, int* count, MPI_Datatype* /*type*/) {
  constexpr int kType = kNumber / kReductions, kReduction = kNumber % kReductions;
  const void* const sources[] = {into, input};
  runtime::best_kernels().reduce[kType][kReduction](into, sources, 2,
                                                    static_cast<std::size_t>(*count), {});
}

template <int... kNumbers>
constexpr auto folds_of(std::integer_sequence<int, kNumbers...> /*all*/) {
  return std::array<MPI_User_function*, sizeof...(kNumbers)>{&fold<kNumbers>...};
}
constexpr auto kFolds = folds_of(std::make_integer_sequence<int, kTypes * kReductions>());

// Not small integers, whose sums Open MPI 4.1 cuts off at the type's limits where they must wrap,
// nor the least and the greatest of floats: NaN and the two zeros.
bool folds_as_mpi(ElementType type, Reduction reduction) {
  if (type == ElementType::kInt32 || type == ElementType::kInt64) return true;
  const bool is_wide = type == ElementType::kFloat32 || type == ElementType::kFloat64;
  return is_wide && (reduction == Reduction::kSum || reduction == Reduction::kProduct);
}

MPI_Op mpi_operation(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMin:
      return MPI_MIN;
    case Reduction::kMax:
      return MPI_MAX;
    case Reduction::kProduct:
      return MPI_PROD;
    default:
      return MPI_SUM;
  }
}

}  // namespace

MPI_Datatype datatype_of(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
    case ElementType::kBool:
    case ElementType::kFloat8E4M3:
    case ElementType::kFloat8E5M2:
      return MPI_UINT8_T;
    case ElementType::kInt8:
      return MPI_INT8_T;
    case ElementType::kInt16:
      return MPI_INT16_T;
    case ElementType::kInt32:
      return MPI_INT32_T;
    case ElementType::kInt64:
      return MPI_INT64_T;
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return MPI_UINT16_T;
    case ElementType::kFloat32:
      return MPI_FLOAT;
    case ElementType::kFloat64:
      return MPI_DOUBLE;
  }
  return MPI_DATATYPE_NULL;
}

Status operation_of(ElementType type, Reduction reduction, MPI_Op* operation) {
  if (folds_as_mpi(type, reduction)) {
    *operation = mpi_operation(reduction);
    return Status::success();
  }
  static std::mutex mutex;
  static std::map<int, MPI_Op> made;  // guarded by mutex
  const int number = static_cast<int>(type) * kReductions + static_cast<int>(reduction);
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = made.try_emplace(number, MPI_OP_NULL);
  if (is_new) {
    const int result =
        MPI_Op_create(kFolds[static_cast<std::size_t>(number)], 1 /* commutes */, &place->second);
    if (Status status = check(result, "make an operation"); !status.ok()) {
      made.erase(place);
      return status;
    }
  }
  *operation = place->second;
  return Status::success();
}

using runtime::CollectiveRequest;
using runtime::Reduction;
using runtime::Segment;

namespace {

// Two cores had 102 MB by Open MPI in 29 ms and by MPICH in 34 with pieces of 1 MiB, in 39 and 45
// of 128 KiB, in 72 and 59 of 4 MiB, in 50 and 75 in one. Each member folds its part of a piece,
// which has to be worth a message.
constexpr std::size_t kLeastPieceBytes = std::size_t{1} << 20;
constexpr std::size_t kMostPieceBytes = std::size_t{64} << 20;
constexpr std::size_t kPieceBytesOfMember = std::size_t{64} << 10;
static_assert(kMostPieceBytes <= kMostAtOnce, "a piece is one call of MPI's");

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
  piece_ = std::min(elements_, std::clamp(static_cast<std::size_t>(members()) * kPieceBytesOfMember,
                                          kLeastPieceBytes, kMostPieceBytes) /
                                   wire_bytes());
  Status status;
  while (status.ok() && given_ < elements_ && begun_ < kUnderWay) status = begin_piece();
  return status;
}

void Allreduce::settle(Place* at) const {
  const auto& segments = request().segments;
  while (at->segment < segments.size() &&
         at->offset == static_cast<std::size_t>(segments[at->segment].count))
    *at = {at->segment + 1, 0};
}

template <class Part>
void Allreduce::for_each_of(std::size_t count, Place* at, Part&& part) const {
  while (count > 0) {
    settle(at);
    const Segment& segment = request().segments[at->segment];
    const std::size_t here = std::min(count, static_cast<std::size_t>(segment.count) - at->offset);
    part(segment, at->offset, here);
    at->offset += here;
    count -= here;
  }
}

const Segment* Allreduce::only_segment(std::size_t count, const Place& at) const {
  const Segment& segment = request().segments[at.segment];
  return static_cast<std::size_t>(segment.count) - at.offset >= count ? &segment : nullptr;
}

std::byte* Allreduce::room(std::byte** kept) {
  if (*kept == nullptr) *kept = take_room(piece_ * wire_bytes());
  return *kept;
}

Status Allreduce::begin_piece() {
  const std::size_t count = std::min(piece_, elements_ - given_), width = element_bytes();
  Rooms& rooms = rooms_[begun_++ % kUnderWay];
  given_ += count;
  settle(&next_);
  const Segment* const only = only_segment(count, next_);
  const std::size_t offset = next_.offset * width;
  std::byte* const to =
      only != nullptr && wire_bytes() == width ? only->output + offset : room(&rooms.folded);
  if (only != nullptr && is_plain() && only->input != only->output) {
    next_.offset += count;
    return allreduce(only->input + offset, to, count);
  }
  std::byte* packed = room(&rooms.packed);
  for_each_of(count, &next_, [&](const Segment& segment, std::size_t at, std::size_t part) {
    pack(packed, segment.input + at * width, part);
    packed += part * wire_bytes();
  });
  return allreduce(rooms.packed, to, count);
}

void Allreduce::end_piece() {
  const std::size_t count = std::min(piece_, elements_ - folded_), width = element_bytes();
  const Rooms& rooms = rooms_[ended_++ % kUnderWay];
  folded_ += count;
  settle(&back_);
  const bool is_there = only_segment(count, back_) != nullptr && wire_bytes() == width;
  std::byte* from = rooms.folded;
  for_each_of(count, &back_, [&](const Segment& segment, std::size_t at, std::size_t part) {
    std::byte* const to = segment.output + at * width;
    unpack(to, is_there ? to : from, part);
    if (!is_there) from += part * wire_bytes();
  });
}

Status Allreduce::go_on(bool* is_done) {
  if (ended_ < begun_) end_piece();
  *is_done = folded_ == elements_;
  return given_ < elements_ ? begin_piece() : Status::success();
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
