// What may take long beside the host: a backend that is being prepared, and devices with what is
// done for the host. It is warned of, and ends the job in the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/device/accelerator.h"
#include "runtime/engine/negotiation/stall_inspector.h"

namespace hv::runtime {

class LongWork {
 public:
  // As NegotiationConfig's of stalls: zero is never.
  LongWork(Duration limit, Duration end) : tells_(limit), end_(end) {}

  // A backend is being prepared, or no more. Time is counted from the first look at it.
  void begin_preparation(const std::string& what) { preparation_ = {what, kUnseen}; }
  void end_preparation() { preparation_.reset(); }
  // What is being given to a device, by the number of its bucket; another one begins its time anew.
  void note_launch(std::uint64_t bucket, const std::string& what);
  void note_no_launch() { launch_.reset(); }
  // A device has been given work. All that was given before is done before, where there is one
  // communicator: so the oldest is watched, and then whatever was the latest by then.
  void give(const std::string& what, std::shared_ptr<Accelerator> accelerator, MomentPtr ended);
  // Success: nothing goes on any more. kInProgress: it does. Else a device's error, or kStalled,
  // with words, after `end`. advice: what may help, for messages.
  Status look(const std::string& advice, TimePoint time);

 private:
  static constexpr TimePoint kUnseen = TimePoint::max();

  struct Preparation {
    std::string what;
    TimePoint since;
  };
  struct Launch {
    std::uint64_t bucket;
    std::string what;
    TimePoint since;
  };
  struct Given {
    std::string what;
    std::shared_ptr<Accelerator> accelerator;
    MomentPtr ended;
    TimePoint since;
  };
  Status look_at_devices();

  StallInspector tells_;
  const Duration end_;
  std::optional<Preparation> preparation_;
  std::optional<Launch> launch_;
  std::optional<Given> oldest_, latest_;
};

}  // namespace hv::runtime
