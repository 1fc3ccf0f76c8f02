// ConsoleFormat: from the ranks' bytes to the bytes of one console; one form for pipes and files,
// one for terminals.
// SPDX-License-Identifier: Apache-2.0
//
// Pure: appends to `out` what shall be written next, and learns the time from its caller. Between
// two calls the formats differ in what may stand unfinished on the console's last line; each says
// so in its own header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/output/label.h"
#include "src/base/clock.h"

namespace hv::launcher {

// A rank's stdout or stderr, numbered so that it can index a table.
using StreamId = std::uint32_t;
inline StreamId stream_id(std::uint32_t rank, int stream) {
  return rank * 2 + (stream == 2 ? 1 : 0);
}
inline std::uint32_t rank_of(StreamId id) { return id / 2; }

class ConsoleFormat {
 public:
  virtual ~ConsoleFormat() = default;
  virtual void take(StreamId stream, std::int64_t wall_clock_ns, std::string_view bytes,
                    TimePoint now, std::string& out) = 0;
  // The stream has ended: its last line comes out, with or without newline.
  virtual void end_stream(StreamId stream, std::string& out) = 0;
  // The launcher's own words, on lines of their own.
  virtual void note(std::string_view text, std::string& out) = 0;
  // When elapse() has something to do; nothing: not before more comes.
  virtual std::optional<TimePoint> due() const { return std::nullopt; }
  virtual void elapse(TimePoint, std::string&) {}
  // Every stream that has not ended ends here.
  virtual void end_all(std::string& out) = 0;
};

std::unique_ptr<ConsoleFormat> make_plain_format(LabelStyle style);
// columns: of the terminal, asked whenever text is to fit in one row.
std::unique_ptr<ConsoleFormat> make_terminal_format(LabelStyle style,
                                                    std::function<std::size_t()> columns);

}  // namespace hv::launcher
