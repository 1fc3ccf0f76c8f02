// Streams and events.
// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <utility>

#include "tests/fakes/cuda/world.h"

namespace hv::cuda {

using namespace fake;

int cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
  HV_ENTER_UNSAFE(Needs::kContext);
  if (flags > kStreamNonBlocking || priority < kHighestPriority || priority > 0)
    return kInvalidValue;
  *stream = new StreamState{FakeStream::start(current_contexts.back()->device)};
  if (priority == kHighestPriority) ++world().urgent_streams;
  const std::lock_guard lock(world().mutex);
  world().streams.insert(*stream);
  return kSuccess;
}

int cuStreamDestroy_v2(Stream stream) {
  HV_ENTER(Needs::kContext);
  const std::lock_guard lock(world().mutex);
  if (world().streams.erase(stream) == 0) return kInvalidHandle;
  auto& ending = world().ending;
  std::erase_if(ending, [](const auto& one) { return one.expired(); });
  ending.push_back(stream->stream);
  stream->stream->end();
  delete stream;
  return kSuccess;
}

int cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  HV_ENTER(Needs::kContext);
  if (flags != 0) return kInvalidValue;
  stream_of(stream)->wait_for(event->event);
  return kSuccess;
}

int cuStreamGetId(Stream stream, unsigned long long* id) {
  HV_ENTER(Needs::kContext);
  *id = stream_of(stream)->id();
  return kSuccess;
}

int cuStreamQuery(Stream stream) {
  HV_ENTER_UNSAFE(Needs::kContext);
  FakeStream* const one = stream_of(stream);
  if (one->failure() != 0) return one->failure();
  return one->is_idle() ? kSuccess : kNotReady;
}

int cuStreamSynchronize(Stream stream) {
  HV_ENTER_UNSAFE(Needs::kContext);
  stream_of(stream)->await_idle();
  return stream_of(stream)->failure();
}

int cuStreamIsCapturing(Stream stream, int* status) {
  HV_ENTER(Needs::kContext);
  const std::lock_guard lock(world().mutex);
  *status = stream_of(stream)->is_captured ? 1 : kCapturesNone;
  return kSuccess;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  HV_ENTER(Needs::kNothing);
  if (*mode < 0 || *mode > kCaptureRelaxed) return kInvalidValue;
  std::swap(*mode, capture_mode);
  return kSuccess;
}

int cuEventCreate(Event* event, unsigned flags) {
  HV_ENTER_UNSAFE(Needs::kContext);
  if (flags > 7) return kInvalidValue;
  *event = new EventState;
  const std::lock_guard lock(world().mutex);
  world().events.insert(*event);
  return kSuccess;
}

int cuEventDestroy_v2(Event event) {
  HV_ENTER(Needs::kContext);
  const std::lock_guard lock(world().mutex);
  if (world().events.erase(event) == 0) return kInvalidHandle;
  delete event;
  return kSuccess;
}

int cuEventRecord(Event event, Stream stream) {
  HV_ENTER(Needs::kContext);
  if (stream_of(stream)->forbidden_records > 0) return kInvalidValue;
  stream_of(stream)->record(event->event);
  return kSuccess;
}

int cuEventQuery(Event event) {
  HV_ENTER_UNSAFE(Needs::kContext);
  return event->event->has_passed(event->event->latest()) ? kSuccess : kNotReady;
}

int cuEventSynchronize(Event event) {
  HV_ENTER_UNSAFE(Needs::kContext);
  event->event->await(event->event->latest());
  return kSuccess;
}

}  // namespace hv::cuda
