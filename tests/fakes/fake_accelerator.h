// An accelerator without memory, for the unit tests: it says of all it was given what it is told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/device/accelerator.h"

namespace hv::runtime {

struct FakeAccelerator : Accelerator {
  Status mark(int, void*, MomentPtr*) override { return Status::success(); }
  Status follow(int, void*, const Moment&) override { return Status::success(); }
  Status poll(const Moment&) override { return work; }
  Status allocate(int, Room, std::size_t, MemoryPtr*) override { return Status::success(); }
  void keep_until(MomentPtr, MemoryPtr) override { ++kept; }
  void release_passed() override { kept = 0; }
  bool keeps_any() const override { return kept > 0; }
  Status within(int, const std::function<Status()>& action) override { return action(); }
  Status await(int, const Moment&) override { return Status::success(); }
  Status copy(int, Way, void*, const void*, std::size_t) override { return Status::success(); }
  Status mark_work(int, MomentPtr*) override { return Status::success(); }

  Status work{StatusCode::kInProgress, {}};
  int kept = 0;  // pieces of memory, since they were last released
};

}  // namespace hv::runtime
