// From a group of operations to a backend's request, and back to their outcomes.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution.h"

#include <algorithm>
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

// Memory for the result where the caller gave none. kMemory on this rank alone when there is none.
Status make_room(Operation& operation) {
  if (operation.output != nullptr || operation.result_bytes == 0) return Status::success();
  // Not zeroed: every byte is written.
  operation.owned.reset(new (std::nothrow) std::byte[operation.result_bytes]);
  operation.output = operation.owned.get();
  if (operation.output != nullptr) return Status::success();
  return {StatusCode::kMemory, "making room for the " + std::to_string(operation.result_bytes) +
                                   " bytes of the gathered result of tensor '" +
                                   printable(operation.name) +
                                   "': out of memory; gather fewer rows at a time"};
}

std::int64_t own_elements(const Operation& operation) {
  const bool gathers = operation.description.kind == CollectiveKind::kAllgather;
  return operation.description.elements() * (gathers ? operation.first_extent : 1);
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

Status unsupported(const TensorDescription& description) {
  return {StatusCode::kUnsupported,
          std::string("no backend carries out ") + collective_name(description.kind) + " (" +
              reduction_name(description.reduction) + ") of " +
              element_type_name(description.type) +
              " with these scales; bool takes neither average nor scales"};
}

}  // namespace

void Execution::start(std::vector<OperationPtr> operations,
                      const std::vector<std::int64_t>& first_extents) {
  for (const OperationPtr& operation : operations) {
    const Status sized = size_result(*operation, first_extents);
    if (!sized.ok()) return end(operations, sized);
  }
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
  end(operations, unsupported(operations.front()->description));
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
    Status own = outcome;
    if (!own.ok()) own.message = "tensor '" + printable(operation->name) + "': " + own.message;
    ended_.emplace_back(operation, std::move(own));
  }
}

void Execution::abandon(const Status& reason) {
  for (const Running& group : std::exchange(running_, {})) end(group.operations, reason);
}

}  // namespace hv::runtime
