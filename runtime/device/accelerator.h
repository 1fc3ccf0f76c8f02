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
#include <memory>

#include "src/base/status.h"

namespace hv::runtime {

// DeviceMemory: pieces of memory that is not the host's, or that a device copies from and to.
// Any thread may call anything. Nothing waits for a device, unless its memory has run out.
// A place in a stream's order: it has passed when all that the stream had been given before has.
class Moment {
 public:
  virtual ~Moment() = default;
};
using MomentPtr = std::shared_ptr<const Moment>;
using MemoryPtr = std::shared_ptr<std::byte[]>;

class DeviceMemory {
 public:
  // kPinned: of the host, which a device copies from and to while the host goes on; it is kept for
  // the next one that asks for as much.
  enum class Room { kDevice, kPinned };

  virtual ~DeviceMemory() = default;

  // kMemory where there is none.
  virtual Status allocate(int device, Room room, std::size_t bytes, MemoryPtr* made) = 0;
  // Not given back before the moment has passed; no other work uses it. Whoever lets go of a
  // device's memory without having said so need not wait either, but it is not used again.
  virtual void keep_until(MomentPtr moment, MemoryPtr memory) = 0;
  // Gives back what has been kept until a moment that has passed.
  virtual void release_passed() = 0;
  virtual bool keeps_any() const = 0;
};

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
