// OutputPump: one output stream of one rank, or its result pipe. Reads the pipe (or terminal) as it
// fills and sends the bytes to hvrun, as far as credit and the link's capacity allow.
// SPDX-License-Identifier: Apache-2.0
//
// Without credit, or while too much waits for hvrun, the pipe is not read: it fills, and the rank
// slows down. Small writes are read in batches: after a small read the pump rests for a millisecond
// instead of waking for every line, which would take CPU time from the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/hvrun_link.h"
#include "launcher/agent/ranks/output_frame.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

// Shared by all pumps.
struct PumpContext {
  EventLoop& loop;
  HvrunLink& link;
  std::string scratch = std::string(256 << 10, '\0');
};

class OutputPump {
 public:
  // fd: non-blocking, not shared with another process. credit: bytes that may still be sent, shared
  // by stdout and stderr.
  OutputPump(PumpContext& context, UniqueFd fd, std::uint32_t rank, RankStream stream,
             std::uint64_t* credit, std::function<void()> on_end);
  ~OutputPump();
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

  // Reads what is there. Call when the rank has ended.
  void poll();
  // Credit or capacity may have returned.
  void poll_if_held() {
    if (is_held_) poll();
  }
  // No process of the job is left that could write: reads the rest, then the stream has ended.
  void finish();
  // hvrun is lost: reads and drops the rest, so that no process blocks in a write.
  void discard();
  bool has_ended() const { return !fd_; }

 private:
  enum class Next { kReadOn, kRest, kAwaitBytes, kHold, kEnded };
  Next read_once();
  void rest();
  void await_bytes();
  void stop_waiting();
  void close_stream();

  PumpContext& context_;
  UniqueFd fd_;
  std::uint32_t rank_;
  RankStream stream_;
  std::uint64_t* credit_;
  std::function<void()> on_end_;
  std::size_t most_;   // bytes of a read
  std::size_t small_;  // reads below this are followed by a rest; 0: never
  std::optional<EventLoop::Timer> rest_;
  bool is_held_ = false;  // without credit or capacity: bytes may be there, and are not read
  bool is_last_ = false;
  bool discards_ = false;
};

}  // namespace hv::launcher
