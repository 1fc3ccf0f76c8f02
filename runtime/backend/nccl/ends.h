// Ends: communicators that nobody needs any more, until the GPU has done what they were given; and
// those that are given up, until NCCL has.
// SPDX-License-Identifier: Apache-2.0
//
// Results have been told as done that the GPU has yet to reach, and members come to a
// communicator's end at different times: so each ends in a thread of its own, however long that
// takes, and nobody else waits. Any thread may call.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/backend/nccl/communicator.h"
#include "runtime/backend/nccl/lane.h"
#include "runtime/device/accelerator.h"
#include "src/base/clock.h"

namespace hv::nccl {

struct Leftovers {
  std::unique_ptr<Communicator> communicator;
  std::shared_ptr<runtime::Accelerator> accelerator;
  std::vector<runtime::MomentPtr> moments;  // which have passed when the GPU has done it all
  std::vector<runtime::MemoryPtr> memory;   // that it uses
  LaneStreams streams;                      // that it was given work on
};

class Ends {
 public:
  static Ends& of_process();  // never destroyed, as its threads may outlive main()

  void take(Leftovers left);
  // What gives up a communicator, or memory that it had, in a thread of its own.
  void give_up(std::function<void()> work);
  // False: one goes on still, whose results somebody may want. For what is given up it waits until
  // a few seconds after that: a process that ends meanwhile may crash in NCCL's threads.
  bool await(TimePoint deadline);

 private:
  void end(Leftovers left);
  using Beginnings = std::multiset<TimePoint>;

  // There as long as it runs. A thread that is not to be had: it never runs.
  void run(Beginnings* running, std::function<void()> work);

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  Beginnings going_on_, giving_up_;
  std::vector<Leftovers> stuck_;  // NCCL may give their streams work still, on their memory
};

}  // namespace hv::nccl
