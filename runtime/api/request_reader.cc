// The checks of hvrun_request, field by field.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/request_reader.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "runtime/api/sized_struct.h"
#include "runtime/engine/tensor_description.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

// The casts below rest on these: a number means the same on both sides.
static_assert(static_cast<int>(ElementType::kUint8) == HVRUN_UINT8);
static_assert(static_cast<int>(ElementType::kInt8) == HVRUN_INT8);
static_assert(static_cast<int>(ElementType::kInt16) == HVRUN_INT16);
static_assert(static_cast<int>(ElementType::kInt32) == HVRUN_INT32);
static_assert(static_cast<int>(ElementType::kInt64) == HVRUN_INT64);
static_assert(static_cast<int>(ElementType::kFloat16) == HVRUN_FLOAT16);
static_assert(static_cast<int>(ElementType::kBfloat16) == HVRUN_BFLOAT16);
static_assert(static_cast<int>(ElementType::kFloat32) == HVRUN_FLOAT32);
static_assert(static_cast<int>(ElementType::kFloat64) == HVRUN_FLOAT64);
static_assert(static_cast<int>(ElementType::kBool) == HVRUN_BOOL);
static_assert(static_cast<int>(ElementType::kFloat8E4M3) == HVRUN_FLOAT8_E4M3);
static_assert(static_cast<int>(ElementType::kFloat8E5M2) == HVRUN_FLOAT8_E5M2);

static_assert(static_cast<int>(CollectiveKind::kAllreduce) == HVRUN_ALLREDUCE);
static_assert(static_cast<int>(CollectiveKind::kAllgather) == HVRUN_ALLGATHER);
static_assert(static_cast<int>(CollectiveKind::kBroadcast) == HVRUN_BROADCAST);
static_assert(static_cast<int>(CollectiveKind::kBarrier) == HVRUN_BARRIER);
static_assert(static_cast<int>(CollectiveKind::kReducescatter) == HVRUN_REDUCESCATTER);
static_assert(static_cast<int>(CollectiveKind::kAlltoall) == HVRUN_ALLTOALL);
static_assert(static_cast<int>(CollectiveKind::kJoin) == HVRUN_JOIN);
static_assert(static_cast<int>(CollectiveKind::kSend) == HVRUN_SEND);
static_assert(static_cast<int>(CollectiveKind::kReceive) == HVRUN_RECEIVE);
static_assert(static_cast<int>(CollectiveKind::kSparseAllreduce) == HVRUN_SPARSE_ALLREDUCE);
static_assert(static_cast<int>(CollectiveKind::kAllocate) == HVRUN_ALLOCATE);
static_assert(static_cast<int>(Compression::kNone) == HVRUN_COMPRESSION_NONE);
static_assert(static_cast<int>(Compression::kFloat16) == HVRUN_COMPRESSION_FP16);
static_assert(static_cast<int>(Compression::kBfloat16) == HVRUN_COMPRESSION_BF16);

static_assert(static_cast<int>(Reduction::kSum) == HVRUN_SUM);
static_assert(static_cast<int>(Reduction::kAverage) == HVRUN_AVERAGE);
static_assert(static_cast<int>(Reduction::kMin) == HVRUN_MIN);
static_assert(static_cast<int>(Reduction::kMax) == HVRUN_MAX);
static_assert(static_cast<int>(Reduction::kProduct) == HVRUN_PRODUCT);
static_assert(static_cast<int>(Reduction::kAdasum) == HVRUN_ADASUM);

constexpr std::size_t kMaxNameBytes = 1023;
constexpr int kMaxDimensions = 64;
// Those behind HVRUN_BOOL, in the order of hvrun_type.
constexpr const char* kReservedTypes[] = {"uint16", "uint32", "uint64"};
static_assert(HVRUN_BOOL + std::size(kReservedTypes) == HVRUN_UINT64);

// A program in C may have left any number there, of which C++ would let an enum hold some only.
template <class Enum>
int number_of(const Enum& field) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &field, sizeof number);
  return number;
}

Status malformed(const std::string& what) { return {StatusCode::kArgument, "enqueue: " + what}; }
Status refused(const Operation& operation, StatusCode code, const std::string& what) {
  return {code, "enqueue tensor '" + printable(operation.name) + "': " + what};
}
Status malformed(const Operation& operation, const std::string& what) {
  return refused(operation, StatusCode::kArgument, what);
}

Status read_name(const hvrun_request& request, Operation* operation) {
  if (request.operation == HVRUN_JOIN) {
    operation->name = kJoinName;
    return Status::success();
  }
  if (request.name == nullptr || *request.name == '\0') {
    if (request.operation != HVRUN_BARRIER) return malformed("the tensor has no name");
    operation->name = kBarrierName;
    return Status::success();
  }
  const std::size_t length = ::strnlen(request.name, kMaxNameBytes + 1);
  if (length > kMaxNameBytes) return malformed("the name is longer than 1023 bytes");
  operation->name.assign(request.name, length);
  if (operation->name.starts_with(kOwnPrefix))
    return malformed("the name '" + printable(operation->name) +
                     "' begins with hvrun:, as only the library's own do");
  return Status::success();
}

Status check_reserved(const hvrun_request& request, const Operation& operation) {
  const bool averages =
      allows_absence(operation.description.kind) && number_of(request.reduction) == HVRUN_AVERAGE;
  if ((request.flags & ~static_cast<std::uint32_t>(HVRUN_AVERAGE_PRESENT)) != 0)
    return malformed(operation, "flags has bits that mean nothing");
  if (request.flags != 0 && !averages)
    return malformed(operation, "HVRUN_AVERAGE_PRESENT is for an allreduce's average");
  if (request.split_count != 0 && operation.description.kind != CollectiveKind::kAlltoall)
    return malformed(operation, "only an alltoall has splits");
  const bool is_sparse = operation.description.kind == CollectiveKind::kSparseAllreduce;
  if (!is_sparse && (request.indices != nullptr || number_of(request.index_type) != 0))
    return malformed(operation, "only a sparse allreduce has indices");
  if (number_of(request.compression) != 0 && !has_reduction(operation.description.kind))
    return malformed(operation, "compression is for allreduce");
  return Status::success();
}

Status read_device(const hvrun_request& request, Operation* operation) {
  if (request.device < 0)
    return malformed(*operation, "device is " + std::to_string(request.device) +
                                     ", neither 0 (the host) nor 1 + a GPU's number");
  if (request.device == 0 && request.stream != nullptr)
    return malformed(*operation, "stream is not NULL, and device is 0: the host has no streams");
  const CollectiveKind kind = operation->description.kind;
  if (request.device == 0 && kind == CollectiveKind::kAllocate)
    return malformed(*operation,
                     "device is 0; try: hvrun_alloc, for memory of the host that ranks share");
  if (request.device == 0) return Status::success();
  if (kind == CollectiveKind::kBarrier || kind == CollectiveKind::kJoin)
    return malformed(*operation,
                     std::string(collective_name(kind)) + " has no tensor: device is 0");
  operation->description.memory = MemoryKind::kCuda;
  operation->device = request.device - 1;
  operation->stream = request.stream;
  return Status::success();
}

Status read_group(const hvrun_request& request, Operation* operation) {
  TensorDescription& description = operation->description;
  if ((request.group == 0) != (request.group_size == 0))
    return malformed(*operation, "group and group_size are both 0, or neither");
  if (request.group_size > kMostGrouped)
    return malformed(*operation, "a group has at most 1,048,576 tensors");
  if (request.group != 0 &&
      (description.kind == CollectiveKind::kBarrier ||
       (description.kind >= CollectiveKind::kJoin && description.kind <= CollectiveKind::kReceive)))
    return malformed(*operation,
                     std::string(collective_name(description.kind)) + " is in no group");
  description.group = request.group;
  description.group_size = request.group_size;
  return Status::success();
}

Status read_type(const hvrun_request& request, Operation* operation) {
  const int number = number_of(request.type);
  if (is_element_type(number)) {
    operation->description.type = static_cast<ElementType>(number);
    return Status::success();
  }
  if (number > HVRUN_BOOL && number <= HVRUN_UINT64) {
    const char* const name = kReservedTypes[number - HVRUN_BOOL - 1];
    return refused(
        *operation, StatusCode::kUnsupported,
        "type " + std::to_string(number) + " (" + name + ") is reserved and not carried out yet");
  }
  return malformed(*operation, "type " + std::to_string(number) + " is no hvrun_type");
}

Status read_shape(const hvrun_request& request, Operation* operation) {
  TensorDescription& description = operation->description;
  if (request.ndim < 0 || request.ndim > kMaxDimensions) {
    return malformed(*operation, "ndim is " + std::to_string(request.ndim) + ", not 0 to 64");
  }
  if (request.ndim > 0 && request.shape == nullptr) return malformed(*operation, "shape is NULL");
  for (int i = 0; i < request.ndim; ++i) {
    const std::int64_t extent = request.shape[i];
    if (extent < 0)
      return malformed(*operation, "extent " + std::to_string(i) + " is " + std::to_string(extent));
    description.shape.push_back(extent);
  }
  if (!is_countable(description.shape))
    return malformed(*operation, "the shape has more than 2^48 elements");
  const bool varies = has_own_extents(description.kind);
  if (!varies && description.kind != CollectiveKind::kReducescatter) return Status::success();
  if (description.shape.empty()) description.shape = {1};  // a scalar is a row of its own
  if (varies) operation->first_extent = std::exchange(description.shape[0], kVaries);
  return Status::success();
}

Status read_scale(double given, const char* what, const Operation& operation, double* scale) {
  if (!std::isfinite(given)) return malformed(operation, std::string(what) + " is not finite");
  *scale = given == 0 ? 1 : given;
  return Status::success();
}

// How many there must be, the set tells.
Status read_splits(const hvrun_request& request, Operation* operation) {
  if (request.split_count == 0) return Status::success();
  if (request.splits == nullptr)
    return malformed(*operation, "splits is NULL, split_count is not 0");
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < request.split_count; ++i) {
    const std::int64_t split = request.splits[i];
    if (split < 0)
      return malformed(*operation, "split " + std::to_string(i) + " is " + std::to_string(split));
    if (split > std::numeric_limits<std::int64_t>::max() - rows)
      return malformed(*operation, "the splits have more rows than can be counted");
    rows += split;
    operation->splits.push_back(split);
  }
  if (rows == operation->first_extent) return Status::success();
  return malformed(*operation, "the splits have " + std::to_string(rows) + " rows, the input " +
                                   std::to_string(operation->first_extent));
}

Status read_reduction(const hvrun_request& request, Operation* operation) {
  const int given = number_of(request.reduction), reduction = given == 0 ? HVRUN_SUM : given;
  if (reduction < HVRUN_SUM || reduction > HVRUN_ADASUM) {
    return malformed(*operation,
                     "reduction " + std::to_string(reduction) + " is no hvrun_reduction");
  }
  TensorDescription& description = operation->description;
  description.reduction = static_cast<Reduction>(reduction);
  description.divides_by_present = (request.flags & HVRUN_AVERAGE_PRESENT) != 0;
  const int compression = number_of(request.compression);
  if (!is_compression(compression)) {
    return malformed(*operation,
                     "compression " + std::to_string(compression) + " is no hvrun_compression");
  }
  description.compression = static_cast<Compression>(compression);
  if (Status s = read_scale(request.prescale, "prescale", *operation, &description.prescale);
      !s.ok())
    return s;
  return read_scale(request.postscale, "postscale", *operation, &description.postscale);
}

Status read_indices(const hvrun_request& request, Operation* operation) {
  const int number = number_of(request.index_type);
  const auto type = static_cast<ElementType>(number);
  if (!is_element_type(number) || !is_index_type(type))
    return malformed(*operation, "index_type is " + std::to_string(number) +
                                     ", neither HVRUN_INT32 nor HVRUN_INT64");
  if (request.indices == nullptr && operation->first_extent > 0)
    return malformed(*operation, "indices is NULL");
  if (request.output != nullptr)
    return malformed(*operation,
                     "output is not NULL: the library owns the result of a sparse allreduce");
  operation->description.index_type = type;
  operation->indices = static_cast<const std::byte*>(request.indices);
  return Status::success();
}

Status read_root(const hvrun_request& request, int size, Operation* operation) {
  if (request.root < 0 || request.root >= size) {
    return malformed(*operation, "root " + std::to_string(request.root) + " is not among the " +
                                     std::to_string(size) + " ranks");
  }
  operation->description.root = request.root;
  return Status::success();
}

bool overlap_partly(const std::byte* a, const std::byte* b, std::size_t bytes) {
  if (a == nullptr || b == nullptr || a == b) return false;
  const std::less<const std::byte*> before;
  return before(a, b + bytes) && before(b, a + bytes);
}

Status read_memory(const hvrun_request& request, Operation* operation) {
  if (operation->description.kind == CollectiveKind::kAllocate) {
    if (request.input == nullptr && request.output == nullptr) return Status::success();
    return malformed(*operation, "input and output are to be NULL: the result is the memory");
  }
  operation->input = static_cast<const std::byte*>(request.input);
  operation->output = static_cast<std::byte*>(request.output);
  const TensorDescription& description = operation->description;
  const bool gathers = description.kind == CollectiveKind::kAllgather;
  const bool varies = has_own_extents(description.kind);
  const auto bytes =
      static_cast<std::size_t>(description.bytes() * (varies ? operation->first_extent : 1));
  if (operation->output != nullptr) operation->output_bytes = request.output_bytes;
  if (bytes == 0) return Status::success();
  // A broadcast's input counts on the root only, which may be this rank: the caller of the others
  // may give none.
  if (operation->input == nullptr && description.kind != CollectiveKind::kBroadcast &&
      description.kind != CollectiveKind::kReceive) {
    return malformed(*operation, "input is NULL");
  }
  // The result of these has its own size: where it would be in the way, it waits aside.
  if (description.kind == CollectiveKind::kAlltoall ||
      description.kind == CollectiveKind::kReducescatter)
    return Status::success();
  if (!gathers && overlap_partly(operation->input, operation->output, bytes)) {
    return malformed(*operation, "input and output overlap without being equal");
  }
  if (operation->output_bytes != 0 && operation->output_bytes < bytes) {
    return malformed(*operation, "output_bytes is " + std::to_string(operation->output_bytes) +
                                     ", too small for " + (gathers ? "this rank's own " : "") +
                                     std::to_string(bytes) + " bytes");
  }
  return Status::success();
}

Status read_meaning(const Operation& operation) {
  const Status status = check_meaning(operation.description);
  return status.ok() ? status : refused(operation, status.code, status.message);
}

Status read_kind(const hvrun_request& request, Operation* operation) {
  const int number = number_of(request.operation);
  if (number < HVRUN_ALLREDUCE || number > HVRUN_ALLOCATE) {
    return malformed("operation " + std::to_string(number) + " is no hvrun_operation");
  }
  operation->description.kind = static_cast<CollectiveKind>(number);
  return Status::success();
}

}  // namespace

Status read_request(const hvrun_request* given, int size, OperationPtr* result) {
  if (given == nullptr) return malformed("the request is NULL");
  hvrun_request request;
  if (Status status =
          copy_sized({"enqueue", "HVRUN_REQUEST_INIT"}, given, sizeof request, &request);
      !status.ok())
    return status;
  auto operation = std::make_shared<Operation>();
  operation->set = request.process_set;
  if (Status status = read_kind(request, operation.get()); !status.ok()) return status;
  if (Status status = read_name(request, operation.get()); !status.ok()) return status;
  if (Status status = check_reserved(request, *operation); !status.ok()) return status;
  if (Status status = read_device(request, operation.get()); !status.ok()) return status;
  if (Status status = read_group(request, operation.get()); !status.ok()) return status;
  const CollectiveKind kind = operation->description.kind;
  Status status;
  if (kind != CollectiveKind::kBarrier && kind != CollectiveKind::kJoin) {
    if (status = read_type(request, operation.get()); !status.ok()) return status;
    if (status = read_shape(request, operation.get()); !status.ok()) return status;
    if (has_reduction(kind)) status = read_reduction(request, operation.get());
    if (!status.ok()) return status;
    if (kind == CollectiveKind::kSparseAllreduce) status = read_indices(request, operation.get());
    if (kind == CollectiveKind::kAlltoall) status = read_splits(request, operation.get());
    const bool names_rank = kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kSend ||
                            kind == CollectiveKind::kReceive;
    if (names_rank) status = read_root(request, size, operation.get());
    if (!status.ok()) return status;
    if (status = read_memory(request, operation.get()); !status.ok()) return status;
    if (status = read_meaning(*operation); !status.ok()) return status;
  }
  *result = std::move(operation);
  return Status::success();
}

}  // namespace hv::runtime
