// Accelerator: memory that is not the host's, and the streams that order the work on it.
// SPDX-License-Identifier: Apache-2.0
//
// Devices are numbered as the process sees them, from 0. Any thread may call anything; what one
// thread gives to a device's work stream stands there in its order. Nothing waits for a device,
// unless its memory has run out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/device/device_memory.h"
#include "src/base/status.h"

namespace hv::runtime {

// Where a tensor lies, as all ranks must have it alike.
enum class MemoryKind : std::uint8_t { kHost = 0, kCuda = 1 };
constexpr int kHostDevice = -1;

class Accelerator : public DeviceMemory {
 public:
  enum class Way { kToHost, kToDevice, kOnDevice };

  // stream: a caller's, nullptr its default one. kUnsupported while a graph is captured from it.
  virtual Status mark(int device, void* stream, MomentPtr* made) = 0;
  // What the caller's stream is given from now on waits for the moment.
  virtual Status follow(int device, void* stream, const Moment& moment) = 0;
  // kInProgress: not yet.
  virtual Status poll(const Moment& moment) = 0;

  // While it runs, what this thread calls finds the device, as code that knows CUDA expects it.
  virtual Status within(int device, const std::function<Status()>& action) = 0;

  // ---- to the device's work stream: the runtime's own ----
  virtual Status await(int device, const Moment& moment) = 0;
  virtual Status copy(int device, Way way, void* to, const void* from, std::size_t bytes) = 0;
  virtual Status mark_work(int device, MomentPtr* made) = 0;
};

}  // namespace hv::runtime
