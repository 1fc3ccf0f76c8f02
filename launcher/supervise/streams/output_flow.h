// OutputFlow: the ranks' output on its way from agents to the output room, and the credit that goes
// back for what has been written; beside it what rank 0 returns. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/output/output_ledger.h"
#include "launcher/output/output_room.h"
#include "launcher/supervise/events/job_events.h"
#include "launcher/supervise/job.h"
#include "launcher/supervise/streams/result_flow.h"

namespace hv::launcher {

// What the command line and hvrun's own environment say of output.
OutputOptions output_options(const JobSpec& spec, const Environment& environment);

class OutputFlow {
 public:
  // Both outlive this. Throws Error(kUsage) when the output directory cannot be made.
  OutputFlow(Job& job, JobEvents& events, OutputOptions options);

  // False, without effect: more than the rank had credit for.
  [[nodiscard]] bool receive(wire::Output output);
  void handle(const OutputWritten& event);
  // Ends the job: no output is lost unnoticed.
  void handle(const OutputFailed& event);
  // Output that arrives from now on is dropped.
  void discard() { is_discarded_ = true; }
  bool is_discarded() const { return is_discarded_; }

  OutputRoom& room() { return room_; }
  ResultFlow& results() { return results_; }
  const OutputLedger& ledger() const { return ledger_; }

 private:
  void set_ranks();

  Job& job_;
  OutputRoom room_;
  OutputLedger ledger_;
  ResultFlow results_;
  bool is_discarded_ = false;
  bool has_set_ranks_ = false;
};

}  // namespace hv::launcher
