// InputPump: writes what hvrun reads on its stdin into one rank's stdin.
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
  // fd: non-blocking, not shared with another process. on_taken: that many bytes have reached the
  // rank, or never will.
  InputPump(EventLoop& loop, UniqueFd fd, bool is_terminal,
            std::function<void(std::uint32_t bytes)> on_taken);
  ~InputPump();
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

  // False: hvrun has sent far more than it may have in flight.
  [[nodiscard]] bool add(const std::string& bytes);
  // The rank reads the end of its input after the bytes that were added.
  void end_input();

 private:
  void write_waiting();
  void close();

  EventLoop& loop_;
  UniqueFd fd_;
  bool is_terminal_;
  std::function<void(std::uint32_t)> on_taken_;
  std::string waiting_;
  bool is_end_requested_ = false;
  bool is_in_line_ = false;  // the last byte that was added did not end a line
};

}  // namespace hv::launcher
