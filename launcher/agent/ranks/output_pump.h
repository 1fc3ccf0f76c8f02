// One stream of one rank: reads its pipe (or terminal) as it fills and sends it on, as far as
// credit and capacity reach.
// SPDX-License-Identifier: Apache-2.0
//
// Without credit, or while too much waits for hvrun, the pipe is left alone: it fills, and the rank
// slows down. A writer of small pieces is read in lumps: after a small read the pump rests for a
// millisecond instead of waking for every line, which would take the cores from the ranks
// themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/hvrun_link.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

// What all pumps share.
struct PumpContext {
  EventLoop& loop;
  HvrunLink& link;
  std::string scratch = std::string(256 << 10, '\0');
};

class OutputPump {
 public:
  // fd: non-blocking, ours alone. credit: bytes that the rank may still send, shared by its
  // streams.
  OutputPump(PumpContext& context, UniqueFd fd, std::uint32_t rank, std::uint8_t stream,
             std::uint64_t* credit, std::function<void()> on_end);
  ~OutputPump();
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

  // Looks at once; when its rank has ended.
  void poll();
  // Credit or capacity may be there again.
  void poll_if_held() {
    if (is_held_) poll();
  }
  // Nobody of the job is left who could write: what is there is read, then the stream has ended.
  void finish();
  // hvrun is gone: the rest is read and dropped, so that nobody waits in a write.
  void discard();
  bool has_ended() const { return !fd_; }

 private:
  enum class Next { kReadOn, kRest, kAwaitBytes, kAwaitLeave, kEnded };
  Next read_once();
  void rest();
  void await_bytes();
  void stop_waiting();
  void end();

  PumpContext& context_;
  UniqueFd fd_;
  std::uint32_t rank_;
  std::uint8_t stream_;
  std::uint64_t* credit_;
  std::function<void()> on_end_;
  std::size_t small_;  // reads below this are followed by a rest; 0: never
  std::optional<EventLoop::Timer> rest_;
  bool is_held_ = false;  // bytes are there or may be, but must not be read now
  bool is_last_ = false;
  bool discards_ = false;
};

}  // namespace hv::launcher
