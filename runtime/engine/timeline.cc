// Stages to bars.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/timeline.h"

#include <new>
#include <utility>

namespace hv::runtime {
namespace {

struct Labels {
  const char* negotiate;
  const char* whole;
  const char* moving;
};

Labels labels_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllreduce:
      return {"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "REDUCE"};
    case CollectiveKind::kAllgather:
      return {"NEGOTIATE_ALLGATHER", "ALLGATHER", "EXCHANGE"};
    case CollectiveKind::kBroadcast:
      return {"NEGOTIATE_BROADCAST", "BROADCAST", "EXCHANGE"};
    case CollectiveKind::kBarrier:
      return {"NEGOTIATE_BARRIER", "BARRIER", "EXCHANGE"};
    case CollectiveKind::kReducescatter:
      return {"NEGOTIATE_REDUCESCATTER", "REDUCESCATTER", "REDUCE"};
    case CollectiveKind::kAlltoall:
      return {"NEGOTIATE_ALLTOALL", "ALLTOALL", "EXCHANGE"};
    case CollectiveKind::kSparseAllreduce:
      return {"NEGOTIATE_SPARSE_ALLREDUCE", "SPARSE_ALLREDUCE", "EXCHANGE"};
    case CollectiveKind::kAllocate:
      return {"NEGOTIATE_ALLOCATION", "ALLOCATION", "ALLOCATE"};
    case CollectiveKind::kJoin:
      return {"JOIN", "JOIN", "JOIN"};
    case CollectiveKind::kSend:
      return {"SEND", "SEND", "SEND"};
    case CollectiveKind::kReceive:
      return {"RECEIVE", "RECEIVE", "RECEIVE"};
    default:
      return {"NEGOTIATE_PROCESS_SET", "PROCESS_SET", "PROCESS_SET"};
  }
}

}  // namespace

std::optional<std::string> timeline_path(const std::string& pattern, int rank) {
  if (pattern.empty()) return std::nullopt;
  const std::string place = "%r";
  if (pattern.find(place) == std::string::npos)
    return rank == 0 ? std::optional(pattern) : std::nullopt;
  std::string path = pattern;
  const std::string number = std::to_string(rank);
  for (std::size_t at = path.find(place); at != std::string::npos; at = path.find(place, at))
    path.replace(at, place.size(), number);
  return path;
}

// Opening may take its time (a pipe, a share of a network), and the lock is everybody's.
Status Timeline::start(const std::string& path, int rank) {
  {
    const std::lock_guard lock(mutex_);
    if (file_ != nullptr || is_starting_) {
      return {StatusCode::kArgument,
              "start a timeline: this rank writes one already; stop that first "
              "(hvrun_timeline_stop)"};
    }
    is_starting_ = true;
  }
  std::unique_ptr<TimelineFile> file;
  Status status;
  try {
    status = TimelineFile::open(path, rank, &file);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    is_starting_ = false;
    throw;
  }
  const std::lock_guard lock(mutex_);
  is_starting_ = false;
  if (!status.ok()) return status;
  tracks_.clear();
  file_ = std::move(file);
  is_on_ = true;
  return status;
}

Status Timeline::stop() {
  std::unique_ptr<TimelineFile> file;
  {
    const std::lock_guard lock(mutex_);
    is_on_ = false;
    file = std::move(file_);
  }
  if (file == nullptr) return Status::success();
  Status status = file->close();
  const std::lock_guard lock(mutex_);
  dropped_before_ += file->dropped();
  return status;
}

std::uint64_t Timeline::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_before_ + unrecorded_ + (file_ ? file_->dropped() : 0);
}

bool Timeline::push(TimelineEvent event, bool is_end) {
  return file_ != nullptr && file_->push(std::move(event), is_end);
}

Timeline::Track* Timeline::track(std::uint32_t set, const std::string& name) {
  const std::string key = set == 0 ? name : name + " (process set " + std::to_string(set) + ")";
  const auto known = tracks_.find(key);
  if (known != tracks_.end()) return &known->second;
  const auto number = static_cast<std::uint32_t>(tracks_.size() + 1);
  if (tracks_.size() >= kMostTracks) {
    ++unrecorded_;
    return nullptr;
  }
  const auto added = tracks_.emplace(key, Track{number}).first;
  if (push({now(), number, 'M', "", 0, key})) return &added->second;
  tracks_.erase(added);  // a row without its name would tell nobody anything
  return nullptr;
}

void Timeline::open_bar(Track* track, const char* label, std::string arguments) {
  if (track == nullptr) return;
  const bool is_recorded = push({now(), track->number, 'B', label, 0, std::move(arguments)});
  track->recorded = track->recorded << 1 | (is_recorded ? 1u : 0u);
  ++track->depth;
}

// A bar that began before the timeline, or that was dropped, has no end either.
void Timeline::close_bar(Track* track) {
  if (track == nullptr || track->depth == 0) return;
  if ((track->recorded & 1u) != 0) push({now(), track->number, 'E'}, true);
  track->recorded >>= 1;
  --track->depth;
}

// Where memory is short the job needs it more.
template <class Action>
void Timeline::record(Action action) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  try {
    action();
  } catch (const std::bad_alloc&) {
    ++unrecorded_;
  }
}

void Timeline::taken(const Operation& operation) {
  record([&] {
    open_bar(track(operation.set, operation.name), labels_of(operation.description.kind).negotiate);
  });
}

void Timeline::heard_of(std::uint32_t set, const std::string& name, const std::string& ranks) {
  record([&] {
    if (Track* const row = track(set, name)) push({now(), row->number, 'i', "ready: ", 0, ranks});
  });
}

void Timeline::decided(const Operation& operation, std::size_t fused) {
  record([&] {
    Track* const row = track(operation.set, operation.name);
    close_bar(row);
    const TensorDescription& description = operation.description;
    std::string arguments = "{\"type\":" + json_text(element_type_name(description.type)) +
                            ",\"shape\":" + json_text(shape_text(description.shape));
    if (fused > 1)
      arguments +=
          ",\"bucket\":" + std::to_string(operation.bucket) + ",\"fused\":" + std::to_string(fused);
    open_bar(row, labels_of(description.kind).whole, arguments + "}");
    open_bar(row, "QUEUE");
  });
}

void Timeline::begun(const Operation& operation) {
  record([&] {
    Track* const row = track(operation.set, operation.name);
    if (row == nullptr || row->depth < 2) return;  // decided before the timeline began
    close_bar(row);
    open_bar(row, labels_of(operation.description.kind).moving);
  });
}

void Timeline::completed(const Operation& operation) {
  record([&] {
    Track* const row = track(operation.set, operation.name);
    while (row != nullptr && row->depth > 0) close_bar(row);
  });
}

void Timeline::bucket_begun(const Operation& first, std::size_t tensors, std::int64_t bytes) {
  record([&] {
    push({now(), first.set, 'b', labels_of(first.description.kind).whole, first.bucket,
          "{\"tensors\":" + std::to_string(tensors) + ",\"bytes\":" + std::to_string(bytes) + "}"});
  });
}

void Timeline::bucket_ended(const Operation& first) {
  record([&] {
    push({now(), first.set, 'e', labels_of(first.description.kind).whole, first.bucket}, true);
  });
}

}  // namespace hv::runtime
