// SlurmQuery: reads the settings of Slurm that a job needs, by `scontrol show config` and, where
// jobs are preempted, `scontrol show partition` in the background. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>

namespace hv::launcher {

struct LaunchContext;

class SlurmQuery {
 public:
  enum class State { kNotAsked, kRunning, kAnswered };

  // Starts the query in a job of Slurm. Does not block. The query ends after at most 1 s, reports
  // its result as a phase and sets the job's time_to_end. context holds this object.
  void begin(LaunchContext& context);
  // Waits until the query has ended.
  boost::asio::awaitable<void> wait(LaunchContext& context) const;
  // Slurm signals every process of a step, not the agents alone. False where scontrol is missing,
  // fails, is late or prints something else.
  bool signals_ranks() const { return signals_ranks_; }

 private:
  boost::asio::awaitable<void> ask(LaunchContext& context);
  boost::asio::awaitable<void> run(LaunchContext& context);

  State state_ = State::kNotAsked;
  bool signals_ranks_ = false;
};

}  // namespace hv::launcher
