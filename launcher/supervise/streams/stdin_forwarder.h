// StdinForwarder: reads hvrun's standard input for the rank of --stdin, at most a window ahead of
// that rank.
// SPDX-License-Identifier: Apache-2.0
//
// A thread does the blocking reads, so that the flags of the descriptor stay as they are. When the
// job ends first, the thread stays blocked in read.
//
// When another job of the shell owns the terminal, the thread sends SIGTTIN to the process group,
// like the kernel, and reads again once hvrun continues. The kernel itself sends no SIGTTIN to a
// thread that blocks signals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hv::launcher {

// Called from the reading thread.
struct StdinCallbacks {
  std::function<void(std::string)> deliver;       // empty bytes: the end of input
  std::function<void(int errno_value)> on_error;  // a read failed; the end of input follows
};

class StdinForwarder {
 public:
  StdinForwarder(std::size_t window, StdinCallbacks callbacks);
  ~StdinForwarder();
  // The rank has read these bytes: as many more may be read.
  void add_window(std::uint32_t bytes);
  // SIGTTIN has been handled. was_stopped: hvrun was stopped, and continues. Else input ends.
  void continue_after_stop(bool was_stopped);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hv::launcher
