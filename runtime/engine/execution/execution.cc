// From a group of operations to a backend's request, and back to their outcomes.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/execution.h"

#include <algorithm>
#include <string_view>

#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

// What rings no bell is looked at: soon, what runs; once in a while, how devices are.
constexpr std::chrono::microseconds kPollPeriod{20};
constexpr std::chrono::milliseconds kWatchPeriod{100};

bool goes_by_rows(CollectiveKind kind) {
  return kind == CollectiveKind::kReducescatter || kind == CollectiveKind::kAlltoall ||
         kind == CollectiveKind::kSparseAllreduce;
}

std::int64_t row_elements(const TensorDescription& description) {
  if (description.kind != CollectiveKind::kReducescatter || description.shape[0] == 0)
    return description.elements();
  return description.elements() / description.shape[0];
}

// Of a sparse result.
std::size_t index_bytes(const Operation& operation) {
  return static_cast<std::size_t>(operation.result_shape[0]) *
         element_size(operation.description.index_type);
}

// Those that have joined have no memory that the tensor could lie in.
CollectiveRequest::Windows windows_of(const Operation& operation) {
  if (operation.description.window == 0) return CollectiveRequest::Windows::kNone;
  return operation.present > 0 ? CollectiveRequest::Windows::kSome
                               : CollectiveRequest::Windows::kAll;
}

// All but what moves.
CollectiveRequest request_without_segments(const Operation& operation,
                                           const ExecutionConfig& config) {
  const TensorDescription& description = operation.description;
  CollectiveRequest request;
  request.kind = description.kind;
  request.type = description.type;
  const bool averages = description.reduction == Reduction::kAverage;
  request.reduction = averages ? Reduction::kSum : description.reduction;
  const bool leaves_out = description.divides_by_present && operation.present > 0;
  request.divisor = !averages ? 1 : leaves_out ? operation.present : config.place.size;
  request.root = description.root;
  request.prescale = description.prescale;
  request.postscale = description.postscale;
  request.deterministic = config.deterministic;
  request.compression = description.compression;
  request.index_type = description.index_type;
  request.memory = description.memory;
  request.windows = windows_of(operation);
  return request;
}

CollectiveRequest request_for(const std::vector<OperationPtr>& operations,
                              const std::vector<std::int64_t>& first_extents,
                              const ExecutionConfig& config) {
  const TensorDescription& description = operations.front()->description;
  CollectiveRequest request = request_without_segments(*operations.front(), config);
  for (const OperationPtr& operation : operations) {
    for (const MemoryPtr& memory : {operation->owned, operation->owned_indices})
      if (memory != nullptr && operation->device == kHostDevice) request.keeps.push_back(memory);
    if (description.kind == CollectiveKind::kSparseAllreduce)
      request.segments.push_back({operation->indices, operation->owned_indices.get(),
                                  operation->first_extent, index_bytes(*operation),
                                  operation->device});
    request.segments.push_back({operation->input, destination(*operation), own_elements(*operation),
                                operation->result_bytes, operation->device});
    if (operation->accelerator != nullptr) {
      request.accelerator = operation->accelerator;
      request.ready.push_back(operation->ready);
    }
    if (goes_by_rows(description.kind))
      request.row_counts.push_back(row_elements(operation->description));
  }
  const bool gathers = description.kind == CollectiveKind::kAllgather;
  for (const std::int64_t extent : first_extents) {
    request.counts_by_rank.push_back(gathers ? extent * description.elements() : extent);
  }
  if (description.kind != CollectiveKind::kAlltoall) return request;
  request.splits = operations.front()->splits;
  request.make_room = [operation = operations.front()](const std::vector<std::int64_t>& received) {
    return make_room_for(*operation, received);
  };
  return request;
}

std::string describe_operations(const std::vector<OperationPtr>& operations) {
  const Operation& first = *operations.front();
  const std::size_t more = operations.size() - 1;
  return std::string("the ") + collective_name(first.description.kind) + " of " +
         tensor_words(first.name) + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

Status unsupported(const TensorDescription& description, const ExecutionConfig& config,
                   const std::vector<Backend*>& backends) {
  const bool has_native = std::any_of(backends.begin(), backends.end(), [](const Backend* one) {
    return std::string_view(one->name()) == "native";
  });
  const std::string reduction =
      has_reduction(description.kind)
          ? std::string(" (") + reduction_name(description.reduction) + ")"
          : std::string();
  const bool scales = description.prescale != 1 || description.postscale != 1;
  return {
      StatusCode::kUnsupported,
      std::string("no backend that HVRUN_BACKEND names carries out ") +
          collective_name(description.kind) + reduction + " of " +
          element_type_name(description.type) +
          (description.memory == MemoryKind::kHost ? " in the host's memory"
                                                   : " in a GPU's memory") +
          (scales ? ", scaled" : "") +
          (config.deterministic ? ", with the same bits in every run (HVRUN_DETERMINISTIC)" : "") +
          (has_native ? "" : "; try: name native there, too")};
}

}  // namespace

Status Execution::check_device(const Operation& operation) const {
  CollectiveRequest request = request_without_segments(operation, config_);
  // What moves by addresses depends on how many tensors there are, and that alone is known yet.
  const std::size_t tensors = request.kind == CollectiveKind::kSparseAllreduce ? 2 : 1;
  request.segments.assign(tensors, {operation.input, operation.output, 0, 0, operation.device});
  Status status;
  for (const Backend* const backend : backends_)
    if (status.ok()) status = backend->check_device(request, operation.device);
  if (!status.ok()) status.message = tensor_words(operation.name) + ": " + status.message;
  return status;
}

void Execution::start(std::vector<OperationPtr> operations,
                      const std::vector<std::int64_t>& first_extents) {
  tell_decided(operations);
  for (const OperationPtr& operation : operations) {
    const Status sized = size_result(*operation, first_extents, config_.place);
    if (!sized.ok()) return end(operations, sized);
  }
  const Status meant = check_meaning(operations.front()->description);
  if (!meant.ok()) return end(operations, meant);
  for (const OperationPtr& operation : operations) {
    // The peers begin without this rank and would wait: only the end of all frees them.
    if (failure_.ok()) failure_ = make_room(*operation);
  }
  if (!failure_.ok()) return end(operations, failure_);
  // All ranks know the sizes, so all of them skip the same. A barrier is done once all ranks have
  // asked for it.
  if (std::all_of(operations.begin(), operations.end(), [&](const OperationPtr& operation) {
        return moves_nothing(*operation, first_extents);
      }))
    return end_empty(operations);
  CollectiveRequest request = request_for(operations, first_extents, config_);
  if (request.kind == CollectiveKind::kAllocate)
    request.give_memory = taker_of_memory(operations.front());
  begin(std::move(operations), std::move(request));
}

std::function<void(MemoryPtr)> Execution::taker_of_memory(const OperationPtr& operation) {
  return [this, operation, number = ++allocations_](MemoryPtr memory) {
    windows_.add(memory.get(), operation->result_bytes, number);
    take_given(*operation, std::move(memory));
  };
}

void Execution::begin(std::vector<OperationPtr> operations, CollectiveRequest request) {
  if (request.accelerator != nullptr) accelerator_ = request.accelerator;
  if (preparation_ != nullptr) {
    waiting_.push_back({std::move(operations), std::move(request)});
    return;
  }
  for (Backend* backend : backends_) {
    if (!backend->supports(request)) continue;
    preparation_ = backend->prepare(request);
    if (preparation_ != nullptr) {
      long_work_.begin_preparation("getting ready for " + describe_operations(operations));
      next_watch_ = std::min(next_watch_, last_look_ + kWatchPeriod);
      waiting_.push_back({std::move(operations), std::move(request)});
      return;
    }
    HV_LOG(kTrace, "engine") << backend->name() << " starts " << operations.size() << " x "
                             << collective_name(request.kind) << ", the first '"
                             << printable(operations.front()->name) << "'";
    running_.push_back({std::move(operations), backend->start(std::move(request))});
    if (running_.back().collective->occupies_device())
      next_watch_ = std::min(next_watch_, last_look_ + kWatchPeriod);
    return;
  }
  end(operations, unsupported(operations.front()->description, config_, backends_));
}

// What comes after it begins in the order of the decisions, until a backend has to be prepared
// again.
bool Execution::advance_preparation() {
  if (preparation_ == nullptr || !failure_.ok()) return false;
  const Progress progress = preparation_->advance();
  if (progress == Progress::kPending || has_advanced(progress)) return has_advanced(progress);
  if (progress == Progress::kFailed) {
    failure_ = preparation_->status();
    return true;
  }
  preparation_ = nullptr;
  long_work_.end_preparation();
  for (Waiting& one : std::exchange(waiting_, {}))
    begin(std::move(one.operations), std::move(one.request));
  return true;
}

void Execution::tell_decided(const std::vector<OperationPtr>& operations) {
  Counters& counters = observation_->counters;
  ++buckets_;
  ++counters.buckets;
  if (operations.size() > 1) {
    ++counters.fused_buckets;
    counters.fused_tensors.add(operations.size());
  }
  for (const OperationPtr& operation : operations) operation->bucket = buckets_;
  Timeline& timeline = observation_->timeline;
  if (!timeline.is_on()) return;
  std::int64_t bytes = 0;
  for (const OperationPtr& operation : operations) {
    bytes += operation->description.bytes();
    if (!operation->is_absent) timeline.decided(*operation, operations.size());
  }
  if (operations.size() > 1) timeline.bucket_begun(*operations.front(), operations.size(), bytes);
}

void Execution::tell_begun(Running& group) {
  if (group.has_begun || !observation_->timeline.is_on()) return;
  group.has_begun = group.collective->has_begun();
  if (!group.has_begun) return;
  for (const OperationPtr& operation : group.operations)
    if (!operation->is_absent) observation_->timeline.begun(*operation);
}

bool Execution::advance(TimePoint time) {
  last_look_ = time;
  if (time >= next_watch_) watch(time);
  if (accelerator_ != nullptr && accelerator_->keeps_any())
    next_watch_ = std::min(next_watch_, time + kWatchPeriod);
  bool has_moved = advance_preparation();
  const std::size_t before = running_.size();
  std::erase_if(running_, [&](Running& group) {
    if (!failure_.ok()) return false;
    tell_begun(group);
    const Progress progress = group.collective->advance();
    has_moved |= has_advanced(progress);
    if (progress == Progress::kPending || has_advanced(progress)) return false;
    const Status outcome =
        progress == Progress::kDone ? Status::success() : group.collective->status();
    // What no rank can do all of them know alike; anything else leaves them apart.
    if (progress == Progress::kFailed && outcome.code != StatusCode::kUnsupported)
      failure_ = outcome;
    note_device(group);
    end(group.operations, outcome, group.collective->ended());
    return true;
  });
  return has_moved || running_.size() != before;
}

void Execution::note_device(const Running& group) {
  const MomentPtr ended = group.collective->ended();
  if (ended == nullptr) return;
  const auto there =
      std::find_if(group.operations.begin(), group.operations.end(),
                   [](const OperationPtr& operation) { return operation->accelerator != nullptr; });
  if (there == group.operations.end()) return;  // a rank that has joined asks nobody's results
  long_work_.give("what the GPU does for " + describe_operations(group.operations),
                  (*there)->accelerator, ended);
  next_watch_ = std::min(next_watch_, last_look_ + kWatchPeriod);
}

// The first that its device is being given: those behind it wait for that.
void Execution::note_launch() {
  const auto first = std::find_if(running_.begin(), running_.end(), [](const Running& group) {
    return group.collective->occupies_device() && group.collective->attention() != Attention::kBell;
  });
  if (first == running_.end()) return long_work_.note_no_launch();
  long_work_.note_launch(first->operations.front()->bucket,
                         "launching " + describe_operations(first->operations));
}

void Execution::watch(TimePoint time) {
  next_watch_ = TimePoint::max();
  if (accelerator_ != nullptr) accelerator_->release_passed();
  note_launch();
  Status status;
  for (Backend* const backend : backends_)
    if (status.ok()) status = backend->watch();
  if (status.ok()) status = long_work_.look(advice(), time);
  if (status.code == StatusCode::kInProgress) {
    next_watch_ = time + kWatchPeriod;
  } else if (!status.ok() && failure_.ok()) {
    failure_ = status;
  }
}

std::string Execution::advice() const {
  for (const Backend* const backend : backends_)
    if (const std::string words = backend->advice(); !words.empty()) return words;
  return "the log of each rank (HVRUN_LOG_LEVEL=debug)";
}

Attention Execution::attention() const {
  Attention most = preparation_ != nullptr ? preparation_->attention() : Attention::kBell;
  for (const Running& group : running_) most = std::max(most, group.collective->attention());
  return most;
}

TimePoint Execution::next_look() const {
  return attention() >= Attention::kPolled ? last_look_ + kPollPeriod : next_watch_;
}

bool Execution::is_launching() const {
  return std::any_of(running_.begin(), running_.end(),
                     [](const Running& group) { return group.collective->occupies_device(); }) ||
         std::any_of(waiting_.begin(), waiting_.end(), [](const Waiting& group) {
           return group.operations.front()->description.memory != MemoryKind::kHost;
         });
}

void Execution::end_empty(const std::vector<OperationPtr>& operations) {
  for (const OperationPtr& operation : operations) {
    if (operation->description.kind == CollectiveKind::kAlltoall)
      operation->received.assign(static_cast<std::size_t>(config_.place.size), 0);
  }
  end(operations, Status::success());
}

void Execution::end(const std::vector<OperationPtr>& operations, const Status& outcome,
                    const MomentPtr& ended) {
  if (operations.size() > 1) observation_->timeline.bucket_ended(*operations.front());
  for (const OperationPtr& operation : operations) {
    Status own = outcome.ok() ? hand_over(*operation, ended) : outcome;
    // Of one that failed, too: a device may still write what it was given.
    if (!outcome.ok() && operation->accelerator != nullptr) operation->ended = ended;
    // The peers have theirs, and would wait for this rank's tensors there.
    if (own.code == StatusCode::kMemory && failure_.ok()) failure_ = own;
    if (!own.ok()) own.message = tensor_words(operation->name) + ": " + own.message;
    ended_.emplace_back(operation, std::move(own));
  }
}

bool Execution::abandon() {
  next_watch_ = TimePoint::max();
  bool have_let_go = true;
  for (Backend* const backend : backends_) have_let_go &= backend->abandon();
  return have_let_go;
}

void Execution::give_up(const Status& reason) {
  preparation_ = nullptr;
  for (const Waiting& one : std::exchange(waiting_, {})) end(one.operations, reason);
  for (const Running& group : std::exchange(running_, {}))
    end(group.operations, reason, group.collective->ended());
}

}  // namespace hv::runtime
