// A stand-in for libcuda.so.1: GPUs that are memory and threads of this process. Streams keep their
// order and nothing else, memory cannot be touched by its address, what CUDA refuses is refused.
// SPDX-License-Identifier: Apache-2.0
//
// HVRUN_FAKE_CUDA_DEVICES: how many GPUs there are (2); 0 is as without any. For faults and delays
// see faults.h. This is what all of its functions share.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/device/cuda/driver_abi.h"
#include "tests/fakes/cuda/fake_stream.h"

namespace hv::cuda {

// Whoever defines one of them otherwise than it is called does not compile.
extern "C" {
#define HV_ONE(here, exported, parameters) [[gnu::visibility("default")]] int exported parameters;
HV_CUDA_FUNCTIONS(HV_ONE)
HV_CUDA_NEWER_FUNCTIONS(HV_ONE)
#undef HV_ONE
}

struct ContextState {
  int device = 0;
};
struct StreamState {
  std::shared_ptr<fake::FakeStream> stream;
};
struct EventState {
  std::shared_ptr<fake::FakeEvent> event = std::make_shared<fake::FakeEvent>();
};

}  // namespace hv::cuda

namespace hv::fake {

// CUresult, those that the runtime does not know.
constexpr int kInvalidValue = 1;
constexpr int kNotInitialized = 3;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;
constexpr int kIllegalAddress = 700;
constexpr int kHighestPriority = -5;

struct World {
  std::mutex mutex;  // guards sets and captures
  std::vector<cuda::ContextState> contexts;
  std::vector<cuda::StreamState> default_streams;  // of each device
  std::set<cuda::StreamState*> streams;
  std::vector<std::weak_ptr<FakeStream>> ending;  // destroyed, and with work still
  std::set<cuda::EventState*> events;
  std::set<void*> host_blocks;
  int memory_blocks = 0;
  int captures = 0;
  bool is_capture_broken = false;
  std::atomic<bool> is_begun{false};
  std::atomic<int> urgent_streams{0};
};
World& world();

cuda::Uuid uuid_of(int device);

// The calling thread's.
extern thread_local std::vector<cuda::Context> current_contexts;
extern thread_local int capture_mode;

// What CUDA forbids while another thread captures, unless the calling thread allows itself all.
bool breaks_capture();

// nullptr: the default one of the current context.
FakeStream* stream_of(cuda::Stream stream);

enum class Needs { kNothing, kInit, kContext };

// What every function begins with: its fault, if there is one now, and what it needs.
int enter(const char* function, Needs needs, bool* hangs = nullptr);

#define HV_ENTER(needs) \
  if (const int refused = enter(__func__, needs); refused != kSuccess) return refused
// For what CUDA's captures forbid.
#define HV_ENTER_UNSAFE(needs) \
  HV_ENTER(needs);             \
  if (breaks_capture()) return kStreamCaptureUnsupported

// Work of a function that can be told to hang.
int put(const char* function, cuda::Stream stream, std::function<int()> work);

}  // namespace hv::fake
