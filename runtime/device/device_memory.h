// DeviceMemory: pieces of memory that is not the host's, or that a device copies from and to.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call anything. Nothing waits for a device, unless its memory has run out.
#pragma once

#include <cstddef>
#include <memory>

#include "src/base/status.h"

namespace hv::runtime {

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

}  // namespace hv::runtime
