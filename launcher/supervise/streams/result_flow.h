// ResultFlow: what rank 0 returns (hvrun.run), on its way from its agent to the descriptor of
// --result-fd, and the credit that goes back for what has been written. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
//
// hvrun passes the bytes on as they are and never reads anything into them. The descriptor is
// closed behind the last byte, once every process has closed rank 0's result pipe, or else by
// hvrun's own end: the caller judges by the lengths in the stream whether all has come.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>

#include "launcher/output/output_ledger.h"
#include "launcher/output/result_writer.h"
#include "launcher/supervise/events/job_events.h"
#include "launcher/supervise/job.h"

namespace hv::launcher {

class ResultFlow {
 public:
  // Both outlive this. Takes over the descriptor of the job's specification, if it has one.
  ResultFlow(Job& job, JobEvents& events);

  // False, without effect: not requested, after the end, too long, or more than it had credit for.
  [[nodiscard]] bool receive(wire::Result result);
  void handle(const ResultWritten& event);
  // Ends the job: the caller would miss results.
  void handle(const ResultFailed& event);
  // What arrives from now on is dropped.
  void discard() { is_discarded_ = true; }
  // Closes the descriptor behind what has arrived, and waits so long for that at most.
  void finish_within(Duration limit);
  // All that has arrived has been written.
  bool is_written() const { return ledger_.lost_bytes() == 0; }

 private:
  void watch_reader(JobEvents& events);
  void close();

  Job& job_;
  std::unique_ptr<ResultWriter> writer_;  // none: not requested
  // A copy of the descriptor, to notice that its reader is gone while nothing is written.
  boost::asio::posix::stream_descriptor watched_;
  OutputLedger ledger_;  // rank 0's account
  bool has_ended_ = false;
  bool is_discarded_ = false;
};

}  // namespace hv::launcher
