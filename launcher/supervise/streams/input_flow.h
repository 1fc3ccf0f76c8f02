// InputFlow: hvrun's standard input on its way to the rank of --stdin. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "launcher/supervise/events/job_events.h"
#include "launcher/supervise/job.h"
#include "launcher/supervise/report/console.h"
#include "launcher/supervise/streams/stdin_forwarder.h"

namespace hv::launcher {

class InputFlow {
 public:
  // All outlive this.
  InputFlow(Job& job, JobEvents& events, const Console& console)
      : job_(job), events_(events), console_(console) {}

  // Once ranks run; without --stdin it does nothing.
  void start();
  void handle(InputRead event);
  void handle(const InputFailed& event);
  // The rank has read these bytes: as many more may be read here.
  void accept(std::uint32_t bytes);
  // After SIGTTIN. was_stopped: hvrun was stopped, and continues.
  void resume(bool was_stopped);
  // Ends the reading.
  void close() { forwarder_.reset(); }

 private:
  Job& job_;
  JobEvents& events_;
  const Console& console_;
  std::unique_ptr<StdinForwarder> forwarder_;
};

}  // namespace hv::launcher
