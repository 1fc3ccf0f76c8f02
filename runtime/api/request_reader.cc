// The checks of hvrun_request, field by field.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/request_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "runtime/api/sized_struct.h"
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

static_assert(static_cast<int>(CollectiveKind::kAllreduce) == HVRUN_ALLREDUCE);
static_assert(static_cast<int>(CollectiveKind::kAllgather) == HVRUN_ALLGATHER);
static_assert(static_cast<int>(CollectiveKind::kBroadcast) == HVRUN_BROADCAST);
static_assert(static_cast<int>(CollectiveKind::kBarrier) == HVRUN_BARRIER);

static_assert(static_cast<int>(Reduction::kSum) == HVRUN_SUM);
static_assert(static_cast<int>(Reduction::kAverage) == HVRUN_AVERAGE);
static_assert(static_cast<int>(Reduction::kMin) == HVRUN_MIN);
static_assert(static_cast<int>(Reduction::kMax) == HVRUN_MAX);
static_assert(static_cast<int>(Reduction::kProduct) == HVRUN_PRODUCT);

constexpr std::size_t kMaxNameBytes = 1023;
constexpr int kMaxDimensions = 64;
// Keeps sums over ranks and products with the element size inside an int64.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;
// Every barrier without a name is the same one.
constexpr const char* kBarrierName = "hvrun.barrier";

Status malformed(const std::string& what) { return {StatusCode::kArgument, "enqueue: " + what}; }
Status malformed(const Operation& operation, const std::string& what) {
  return {StatusCode::kArgument, "enqueue tensor '" + printable(operation.name) + "': " + what};
}

Status read_name(const hvrun_request& request, Operation* operation) {
  if (request.name == nullptr || *request.name == '\0') {
    if (request.operation != HVRUN_BARRIER) return malformed("the tensor has no name");
    operation->name = kBarrierName;
    return Status::success();
  }
  const std::size_t length = ::strnlen(request.name, kMaxNameBytes + 1);
  if (length > kMaxNameBytes) return malformed("the name is longer than 1023 bytes");
  operation->name.assign(request.name, length);
  return Status::success();
}

Status check_reserved(const hvrun_request& request, const Operation& operation) {
  if (request.flags != 0) return malformed(operation, "flags must be 0");
  const auto not_yet = [&](const char* what) {
    return Status{StatusCode::kUnsupported,
                  "enqueue tensor '" + printable(operation.name) + "': " + what};
  };
  if (request.process_set != 0)
    return not_yet("process sets other than 0 (all ranks) are not there yet");
  if (request.device != 0) return not_yet("only host memory (device 0) is supported");
  if (request.stream != nullptr)
    return not_yet("streams come with device memory, which is not supported");
  if (request.group != 0 || request.group_size != 0) return not_yet("groups are not there yet");
  return Status::success();
}

Status read_type(const hvrun_request& request, Operation* operation) {
  const int number = static_cast<int>(request.type);
  if (is_element_type(number)) {
    operation->description.type = static_cast<ElementType>(number);
    return Status::success();
  }
  if (number > HVRUN_BOOL && number <= HVRUN_FLOAT8_E5M2) {
    return {StatusCode::kUnsupported, "enqueue tensor '" + printable(operation->name) + "': type " +
                                          std::to_string(number) +
                                          " is reserved and not carried out yet"};
  }
  return malformed(*operation, "type " + std::to_string(number) + " is no hvrun_type");
}

Status read_shape(const hvrun_request& request, Operation* operation) {
  TensorDescription& description = operation->description;
  if (request.ndim < 0 || request.ndim > kMaxDimensions) {
    return malformed(*operation, "ndim is " + std::to_string(request.ndim) + ", not 0 to 64");
  }
  if (request.ndim > 0 && request.shape == nullptr) return malformed(*operation, "shape is NULL");
  std::int64_t elements = 1;
  for (int i = 0; i < request.ndim; ++i) {
    const std::int64_t extent = request.shape[i];
    if (extent < 0)
      return malformed(*operation, "extent " + std::to_string(i) + " is " + std::to_string(extent));
    if (extent > kMaxElements || (elements *= std::max<std::int64_t>(extent, 1)) > kMaxElements) {
      return malformed(*operation, "the shape has more than 2^48 elements");
    }
    description.shape.push_back(extent);
  }
  if (description.kind != CollectiveKind::kAllgather) return Status::success();
  if (description.shape.empty()) description.shape = {1};  // a scalar is a row of its own
  operation->first_extent = std::exchange(description.shape[0], kVaries);
  return Status::success();
}

Status read_scale(double given, const char* what, const Operation& operation, double* scale) {
  if (!std::isfinite(given)) return malformed(operation, std::string(what) + " is not finite");
  *scale = given == 0 ? 1 : given;
  return Status::success();
}

Status read_allreduce(const hvrun_request& request, Operation* operation) {
  const int reduction = request.reduction == 0 ? HVRUN_SUM : static_cast<int>(request.reduction);
  if (reduction < HVRUN_SUM || reduction > HVRUN_PRODUCT) {
    return malformed(*operation,
                     "reduction " + std::to_string(reduction) + " is no hvrun_reduction");
  }
  TensorDescription& description = operation->description;
  description.reduction = static_cast<Reduction>(reduction);
  if (Status s = read_scale(request.prescale, "prescale", *operation, &description.prescale);
      !s.ok())
    return s;
  return read_scale(request.postscale, "postscale", *operation, &description.postscale);
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
  operation->input = static_cast<const std::byte*>(request.input);
  operation->output = static_cast<std::byte*>(request.output);
  const TensorDescription& description = operation->description;
  const bool gathers = description.kind == CollectiveKind::kAllgather;
  const auto bytes =
      static_cast<std::size_t>(description.bytes() * (gathers ? operation->first_extent : 1));
  if (operation->output != nullptr) operation->output_bytes = request.output_bytes;
  if (bytes == 0) return Status::success();
  // A broadcast's input counts on the root only, which may be this rank: the caller of the others
  // may give none.
  if (operation->input == nullptr && description.kind != CollectiveKind::kBroadcast) {
    return malformed(*operation, "input is NULL");
  }
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

Status read_kind(const hvrun_request& request, Operation* operation) {
  const int number = static_cast<int>(request.operation);
  if (number < HVRUN_ALLREDUCE || number > HVRUN_BARRIER) {
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
  if (Status status = read_kind(request, operation.get()); !status.ok()) return status;
  if (Status status = read_name(request, operation.get()); !status.ok()) return status;
  if (Status status = check_reserved(request, *operation); !status.ok()) return status;
  const CollectiveKind kind = operation->description.kind;
  Status status;
  if (kind != CollectiveKind::kBarrier) {
    if (status = read_type(request, operation.get()); !status.ok()) return status;
    if (status = read_shape(request, operation.get()); !status.ok()) return status;
    if (kind == CollectiveKind::kAllreduce) status = read_allreduce(request, operation.get());
    if (kind == CollectiveKind::kBroadcast) status = read_root(request, size, operation.get());
    if (!status.ok()) return status;
    if (status = read_memory(request, operation.get()); !status.ok()) return status;
  }
  *result = std::move(operation);
  return Status::success();
}

}  // namespace hv::runtime
