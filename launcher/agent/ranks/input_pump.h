// What hvrun reads on its stdin, on its way into one rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

class InputPump {
 public:
  // fd: non-blocking, ours alone. on_taken: so many bytes have reached the rank (or never will).
  InputPump(EventLoop& loop, UniqueFd fd, bool is_terminal,
            std::function<void(std::uint32_t bytes)> on_taken);
  ~InputPump();
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

  // False when hvrun sent far more than it may have on the way.
  [[nodiscard]] bool add(const std::string& bytes);
  // After what has been added the rank reads the end of its input.
  void end();

 private:
  void write_on();
  void close();

  EventLoop& loop_;
  UniqueFd fd_;
  bool is_terminal_;
  std::function<void(std::uint32_t)> on_taken_;
  std::string waiting_;
  bool end_wanted_ = false;
  bool is_in_line_ = false;  // what was added last did not end a line
};

}  // namespace hv::launcher
