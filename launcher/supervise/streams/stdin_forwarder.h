// Hands hvrun's standard input to rank 0, never more than a window ahead of what that rank has
// taken.
// SPDX-License-Identifier: Apache-2.0
//
// A thread of its own does the blocking reads, so that nothing is changed on the descriptor that
// hvrun was given. The thread is left behind, blocked in read, when the job ends first.
//
// A terminal that another job of the shell has is waited for as by any program that reads there:
// the thread sends SIGTTIN to the process group, and reads again once hvrun goes on. The kernel
// does not do so by itself, because the thread has its signals blocked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hv::launcher {

// Called from the reading thread.
struct StdinCallbacks {
  std::function<void(std::string)> deliver;       // each piece; an empty one is the end of input
  std::function<void(int errno_value)> on_error;  // a read failed; the end of input follows
};

class StdinForwarder {
 public:
  StdinForwarder(std::size_t window, StdinCallbacks callbacks);
  ~StdinForwarder();
  // So many bytes have reached the rank: as many more may be read.
  void accepted(std::uint32_t bytes);
  // The SIGTTIN has been acted upon. False: hvrun cannot be stopped, so that there is no input.
  void has_been_stopped(bool stopped);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hv::launcher
