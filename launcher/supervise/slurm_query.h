// SlurmQuery: what Slurm's settings mean for a launch: `scontrol show config`, once, in the
// background. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>

namespace hv::launcher {

struct LaunchContext;

class SlurmQuery {
 public:
  enum class State { kNotAsked, kRunning, kAnswered };

  // Starts the query where an agent runs in a step of Slurm: srun starts the agents, or hvrun
  // itself is in a step. Does not block. The query ends after at most 1 s and reports its result as
  // a phase. context holds this object.
  void begin(LaunchContext& context);
  // Until the query has ended.
  boost::asio::awaitable<void> wait(LaunchContext& context) const;
  // Slurm signals every process of a step, not the agents alone. False where scontrol is missing,
  // fails, is late or prints something else.
  bool signals_ranks() const { return signals_ranks_; }

 private:
  boost::asio::awaitable<void> run(LaunchContext& context);

  State state_ = State::kNotAsked;
  bool signals_ranks_ = false;
};

}  // namespace hv::launcher
