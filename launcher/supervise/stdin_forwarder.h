// Hands hvrun's standard input to rank 0, never more than a window ahead of what that rank has
// taken.
// SPDX-License-Identifier: Apache-2.0
//
// A thread of its own does the blocking reads, so that nothing is changed on the descriptor that
// hvrun was given. The thread is left behind, blocked in read, when the job ends first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hv::launcher {

class StdinForwarder {
 public:
  // deliver is called from the reading thread with each piece; an empty one is the end of input.
  StdinForwarder(std::size_t window, std::function<void(std::string)> deliver);
  ~StdinForwarder();
  // So many bytes have reached the rank: as many more may be read.
  void accepted(std::uint32_t bytes);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hv::launcher
