// OutputFlow: the ranks' output on its way from agents to the output room, and the credit that goes
// back for what has been written. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/output/output_ledger.h"
#include "launcher/output/output_room.h"
#include "launcher/supervise/events/job_events.h"
#include "launcher/supervise/job.h"

namespace hv::launcher {

class OutputFlow {
 public:
  // Both outlive this. Throws Error(kUsage) when the output directory cannot be made.
  OutputFlow(Job& job, JobEvents& events, OutputOptions options);

  void receive(wire::Output output);
  void handle(const OutputWritten& event);
  // Ends the job: no output is lost unnoticed.
  void handle(const OutputFailed& event);
  // Output that arrives from now on is dropped.
  void discard() { is_discarded_ = true; }
  bool is_discarded() const { return is_discarded_; }

  OutputRoom& room() { return room_; }
  const OutputLedger& ledger() const { return ledger_; }

 private:
  Job& job_;
  OutputRoom room_;
  OutputLedger ledger_;
  bool is_discarded_ = false;
};

}  // namespace hv::launcher
