// StartDeadline: one host's --start-timeout, and what was being done when it passed. Time in which
// hvrun was stopped (Ctrl-Z, SIGSTOP) does not count.
// SPDX-License-Identifier: Apache-2.0
//
// Every wait on the way to an agent belongs to a phase, and a phase says how its wait is broken
// off. Whoever comes back from a wait with nothing asks throw_if_passed() first. io_context thread
// only.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>

#include "src/base/clock.h"

namespace hv::launcher {

class StartDeadline {
 public:
  StartDeadline(boost::asio::any_io_executor executor, Duration timeout);
  ~StartDeadline();
  StartDeadline(const StartDeadline&) = delete;
  StartDeadline& operator=(const StartDeadline&) = delete;

  // Ends with its scope; cancel is called at the deadline, if that comes within the phase.
  class [[nodiscard]] Phase {
   public:
    ~Phase();
    Phase(const Phase&) = delete;
    Phase& operator=(const Phase&) = delete;

   private:
    friend class StartDeadline;
    explicit Phase(StartDeadline& deadline) : deadline_(deadline) {}
    StartDeadline& deadline_;
  };
  // doing: "connect to host b (10.0.0.3:22)"; hint: what to try when this is where the time went.
  Phase enter(std::string doing, std::string hint, std::function<void()> cancel);

  bool passed() const;
  Duration timeout() const;
  // Error(kTimeout) that names the phase.
  void throw_if_passed() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the timer's handler
};

}  // namespace hv::launcher
