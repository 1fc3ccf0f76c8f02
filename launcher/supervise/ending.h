// Ending: how a job ends: every rank, every host and all output, each with its deadline.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>

#include "launcher/output/output_room.h"
#include "launcher/supervise/hosts/host_sweep.h"
#include "launcher/supervise/job.h"

namespace hv::launcher {

class Ending {
 public:
  // Both outlive this.
  Ending(Job& job, HostSweep& sweep) : job_(job), sweep_(sweep) {}

  // Ends what runs, everywhere, and waits until all is settled. in_order: the ranks have ended, or
  // their fate is decided; else the job did not begin.
  boost::asio::awaitable<void> end_hosts(bool in_order);
  // From now on nothing but output is awaited: its reader's patience counts from here.
  void only_output_waits() {
    if (!discards_output_) waits_for_reader_since_ = now();
  }
  // Until everything has been written, or its reader has taken too long.
  boost::asio::awaitable<void> drain(OutputRoom& room);
  // Output that still comes is not wanted any more.
  bool discards_output() const { return discards_output_; }

 private:
  Duration grace_of_end() const;
  bool is_settled() const;
  boost::asio::awaitable<bool> until_settled(TimePoint deadline, std::function<bool()> or_else);
  void discard_output();
  TimePoint reader_deadline() const;

  Job& job_;
  HostSweep& sweep_;
  bool discards_output_ = false;
  TimePoint waits_for_reader_since_{};  // nothing but output was awaited from then on
};

}  // namespace hv::launcher
