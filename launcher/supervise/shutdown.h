// Shutdown: how a job ends: every rank, every host and all output, each with its deadline.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>

#include "launcher/plan/grace.h"
#include "launcher/supervise/hosts/host_sweep.h"
#include "launcher/supervise/job.h"
#include "launcher/supervise/streams/output_flow.h"

namespace hv::launcher {

class Shutdown {
 public:
  // All outlive this.
  Shutdown(Job& job, HostSweep& sweep, OutputFlow& output)
      : job_(job), sweep_(sweep), output_(output) {}

  // Ends all processes on all hosts and waits until all is settled. in_order: the ranks have ended,
  // or their outcome is decided; else the job did not begin.
  boost::asio::awaitable<void> end_hosts(bool in_order);
  // That ranks have from End on, as things stand.
  Duration grace() const { return job_.grace(ended_by()); }
  // From now on only output is awaited: its reader's time limit counts from here.
  void begin_output_wait() {
    if (!output_.is_discarded()) waits_for_reader_since_ = now();
  }
  // Until everything has been written, results too, or its reader has taken too long.
  boost::asio::awaitable<void> drain();

 private:
  EndedBy ended_by() const;
  bool is_settled() const;
  boost::asio::awaitable<bool> until_settled(TimePoint deadline, std::function<bool()> or_else);
  void discard_output();
  TimePoint reader_deadline() const;

  Job& job_;
  HostSweep& sweep_;
  OutputFlow& output_;
  TimePoint waits_for_reader_since_{};  // only output has been awaited since
};

}  // namespace hv::launcher
