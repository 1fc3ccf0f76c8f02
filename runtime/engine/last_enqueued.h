// What this rank's caller enqueued last, in whatever set: where the rank stands, for those who
// wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "runtime/engine/operation.h"
#include "src/base/clock.h"

namespace hv::runtime {

// Belongs to whoever drives.
class LastEnqueued {
 public:
  void note(const OperationPtr& operation, TimePoint time) {
    operation_ = operation;
    name_ = operation->name;
    kind_ = operation->description.kind;
    set_ = operation->set;
    time_ = time;
  }
  // "last enqueued allreduce 'w' 61 s ago, which is complete"; to stand behind "rank 3 ".
  std::string words(TimePoint time) const;

 private:
  std::weak_ptr<Operation> operation_;
  std::string name_;
  CollectiveKind kind_ = CollectiveKind::kBarrier;
  std::uint32_t set_ = 0;
  TimePoint time_{};
};

}  // namespace hv::runtime
