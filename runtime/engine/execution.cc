// From a group of operations to a backend's request, and back to their outcomes.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <optional>

#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

// The sum of the extents; none when it, or the bytes of so many rows, is beyond any memory. All
// ranks know these numbers, so all of them find the same.
std::optional<std::int64_t> gathered_extent(const std::vector<std::int64_t>& first_extents,
                                            std::int64_t row_bytes) {
  std::int64_t sum = 0, bytes = 0;
  for (const std::int64_t extent : first_extents) {
    if (__builtin_add_overflow(sum, extent, &sum)) return std::nullopt;
  }
  if (__builtin_mul_overflow(sum, row_bytes, &bytes)) return std::nullopt;
  return sum;
}

Status too_large() {
  return {StatusCode::kArgument,
          "the gathered result would be over 8 EiB; gather fewer rows at a time"};
}

// The shape of the result. kArgument on every rank alike when it is too large to be counted.
Status size_result(Operation& operation, const std::vector<std::int64_t>& first_extents) {
  const TensorDescription& description = operation.description;
  operation.result_shape = description.shape;
  std::int64_t bytes = description.bytes();
  if (description.kind == CollectiveKind::kAllgather) {
    const auto rows = gathered_extent(first_extents, bytes);
    if (!rows) return too_large();
    operation.result_shape[0] = *rows;
    bytes *= *rows;
  }
  operation.result_bytes = static_cast<std::size_t>(bytes);
  return Status::success();
}

std::int64_t own_elements(const Operation& operation) {
  const bool gathers = operation.description.kind == CollectiveKind::kAllgather;
  return operation.description.elements() * (gathers ? operation.first_extent : 1);
}

// Enqueue has refused all but an allgather whose other rows do not fit.
bool is_output_too_small(const Operation& operation) {
  return operation.output_bytes != 0 && operation.result_bytes > operation.output_bytes;
}

Status too_small(const Operation& operation) {
  return {StatusCode::kArgument,
          "the gathered result has " + std::to_string(operation.result_bytes) +
              " bytes, and output_bytes is " + std::to_string(operation.output_bytes) +
              "; give it more room, or none and take the library's"};
}

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  const std::less<const std::byte*> before;
  return before(a, b + b_bytes) && before(b, a + a_bytes);
}

// Not zeroed: every byte is written. kMemory on this rank alone when there is no such memory.
Status own_bytes(Operation& operation, std::size_t bytes, const char* purpose) {
  operation.owned.reset(new (std::nothrow) std::byte[bytes]);
  if (operation.owned != nullptr) return Status::success();
  return {StatusCode::kMemory, std::string("making room for the ") + std::to_string(bytes) +
                                   " bytes of " + purpose + " of tensor '" +
                                   printable(operation.name) +
                                   "': out of memory; gather fewer rows at a time"};
}

// Memory for the result where the caller gave none, or too little: this rank has to take part,
// whose peers know nothing of its output. And an allgather writes the ranks' rows in no order, so
// an input that lies among them is copied aside.
Status make_room(Operation& operation) {
  if (operation.result_bytes == 0) return Status::success();
  if (is_output_too_small(operation)) operation.output = nullptr;
  if (operation.output == nullptr) {
    Status status = own_bytes(operation, operation.result_bytes, "the gathered result");
    operation.output = operation.owned.get();
    return status;
  }
  const std::size_t bytes =
      static_cast<std::size_t>(own_elements(operation)) * element_size(operation.description.type);
  if (operation.description.kind != CollectiveKind::kAllgather || bytes == 0 ||
      !overlap(operation.input, bytes, operation.output, operation.result_bytes))
    return Status::success();
  if (Status status = own_bytes(operation, bytes, "the input"); !status.ok()) return status;
  std::memcpy(operation.owned.get(), operation.input, bytes);
  operation.input = operation.owned.get();
  return Status::success();
}

CollectiveRequest request_for(const std::vector<OperationPtr>& operations,
                              const std::vector<std::int64_t>& first_extents,
                              const ExecutionConfig& config) {
  const TensorDescription& description = operations.front()->description;
  CollectiveRequest request;
  request.kind = description.kind;
  request.type = description.type;
  const bool averages = description.reduction == Reduction::kAverage;
  request.reduction = averages ? Reduction::kSum : description.reduction;
  request.divisor = averages ? config.size : 1;
  request.root = description.root;
  request.prescale = description.prescale;
  request.postscale = description.postscale;
  request.deterministic = config.deterministic;
  for (const OperationPtr& operation : operations) {
    request.segments.push_back({operation->input, operation->output, own_elements(*operation)});
  }
  for (const std::int64_t extent : first_extents) {
    request.counts_by_rank.push_back(extent * description.elements());
  }
  return request;
}

bool moves_nothing(const std::vector<OperationPtr>& operations) {
  return std::all_of(operations.begin(), operations.end(),
                     [](const OperationPtr& operation) { return operation->result_bytes == 0; });
}

// Asked of the request, not of a backend: one rank refuses what many would.
bool is_meaningless(const TensorDescription& description) {
  return description.type == ElementType::kBool &&
         (description.reduction == Reduction::kAverage || description.prescale != 1 ||
          description.postscale != 1);
}

Status meaningless() {
  return {StatusCode::kUnsupported,
          "bool takes neither average nor scales; reduce it as uint8, or by sum, min or max"};
}

Status unsupported(const TensorDescription& description) {
  return {StatusCode::kUnsupported, std::string("no backend carries out ") +
                                        collective_name(description.kind) + " (" +
                                        reduction_name(description.reduction) + ") of " +
                                        element_type_name(description.type) + " with these scales"};
}

}  // namespace

void Execution::start(std::vector<OperationPtr> operations,
                      const std::vector<std::int64_t>& first_extents) {
  for (const OperationPtr& operation : operations) {
    const Status sized = size_result(*operation, first_extents);
    if (!sized.ok()) return end(operations, sized);
  }
  const TensorDescription& description = operations.front()->description;
  if (is_meaningless(description)) return end(operations, meaningless());
  for (const OperationPtr& operation : operations) {
    // The peers begin without this rank and would wait: only the end of all frees them.
    if (failure_.ok()) failure_ = make_room(*operation);
  }
  if (!failure_.ok()) return end(operations, failure_);
  // All ranks know the sizes, so all of them skip the same. A barrier is done once all ranks have
  // asked for it.
  if (moves_nothing(operations)) return end(operations, Status::success());
  CollectiveRequest request = request_for(operations, first_extents, config_);
  for (Backend* backend : backends_) {
    if (!backend->supports(request)) continue;
    HV_LOG(kTrace, "engine") << backend->name() << " starts " << operations.size() << " x "
                             << collective_name(request.kind) << ", the first '"
                             << printable(operations.front()->name) << "'";
    running_.push_back({std::move(operations), backend->start(std::move(request))});
    return;
  }
  end(operations, unsupported(description));
}

bool Execution::advance() {
  const std::size_t before = running_.size();
  std::erase_if(running_, [this](Running& group) {
    if (!failure_.ok()) return false;
    const Progress progress = group.collective->advance();
    if (progress == Progress::kPending) return false;
    const Status outcome =
        progress == Progress::kDone ? Status::success() : group.collective->status();
    if (progress == Progress::kFailed) failure_ = outcome;
    end(group.operations, outcome);
    return true;
  });
  return running_.size() != before;
}

void Execution::end(const std::vector<OperationPtr>& operations, const Status& outcome) {
  for (const OperationPtr& operation : operations) {
    Status own = outcome.ok() && is_output_too_small(*operation) ? too_small(*operation) : outcome;
    if (!own.ok()) own.message = "tensor '" + printable(operation->name) + "': " + own.message;
    ended_.emplace_back(operation, std::move(own));
  }
}

void Execution::abandon(const Status& reason) {
  for (const Running& group : std::exchange(running_, {})) end(group.operations, reason);
}

}  // namespace hv::runtime
