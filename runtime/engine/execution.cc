// From a group of operations to a backend's request, and back to their outcomes.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution.h"

#include <algorithm>
#include <numeric>

#include "src/base/text.h"

namespace hv::runtime {
namespace {

// The shape of the result, and memory for it where the caller gave none.
void prepare_result(Operation& operation, const std::vector<std::int64_t>& first_extents) {
  const TensorDescription& description = operation.description;
  operation.result_shape = description.shape;
  std::int64_t bytes = description.bytes();
  if (description.kind == CollectiveKind::kAllgather) {
    operation.result_shape[0] =
        std::accumulate(first_extents.begin(), first_extents.end(), std::int64_t{0});
    bytes *= operation.result_shape[0];
  }
  operation.result_bytes = static_cast<std::size_t>(bytes);
  if (operation.output != nullptr || bytes == 0) return;
  operation.owned.reset(
      new std::byte[operation.result_bytes]);  // not zeroed: every byte is written
  operation.output = operation.owned.get();
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
  for (const OperationPtr& operation : operations) prepare_result(*operation, first_extents);
  // All ranks know the sizes, so all of them skip the same. A barrier is done once all ranks have
  // asked for it.
  if (moves_nothing(operations)) return end(operations, Status::success());
  CollectiveRequest request = request_for(operations, first_extents, config_);
  for (Backend* backend : backends_) {
    if (!backend->supports(request)) continue;
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
