// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/cuda/world.h"

#include <utility>

#include "tests/fakes/cuda/faults.h"

namespace hv::fake {

World& world() {
  static World* const one = new World;
  return *one;
}

thread_local std::vector<cuda::Context> current_contexts;
thread_local int capture_mode = 0;  // CU_STREAM_CAPTURE_MODE_GLOBAL

bool breaks_capture() {
  World& all = world();
  const std::lock_guard lock(all.mutex);
  if (all.captures == 0 || capture_mode == cuda::kCaptureRelaxed) return false;
  all.is_capture_broken = true;
  return true;
}

FakeStream* stream_of(cuda::Stream stream) {
  if (stream != nullptr) return stream->stream.get();
  return world()
      .default_streams[static_cast<std::size_t>(current_contexts.back()->device)]
      .stream.get();
}

int enter(const char* function, Needs needs, bool* hangs) {
  const Faults::Fault fault = Faults::of_process().take(function);
  if (fault.way == Faults::Way::kResult) return fault.result;
  if (hangs != nullptr) *hangs = fault.way == Faults::Way::kHang;
  if (needs != Needs::kNothing && !world().is_begun) return kNotInitialized;
  if (needs == Needs::kContext && current_contexts.empty()) return kInvalidContext;
  return cuda::kSuccess;
}

int put(const char* function, cuda::Stream stream, std::function<int()> work) {
  bool hangs = false;
  if (const int refused = enter(function, Needs::kContext, &hangs); refused != cuda::kSuccess)
    return refused;
  FakeStream* const to = stream_of(stream);
  if (to->failure() != 0) return to->failure();
  if (hangs) to->hang();
  to->put([to, work = std::move(work)] {
    if (to->failure() != 0) return;
    if (const int result = work(); result != cuda::kSuccess) to->fail(result);
  });
  return cuda::kSuccess;
}

}  // namespace hv::fake
