// ConsoleFormat: from the ranks' bytes to the bytes of one console; one form for pipes and files,
// one for terminals, and one that adds nothing.
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

// The most of an unfinished line that a format holds back. A job with many ranks holds less: see
// OutputLedger::most_held.
constexpr std::size_t kMostHeld = 256 << 10;
// So long the beginning of a line waits for its end before it is written.
constexpr auto kPatience = std::chrono::seconds(1);
// The same on a terminal for the rank that the user types for: nobody waits a second for a prompt.
constexpr auto kPromptPatience = std::chrono::milliseconds(100);
// Between the label and the rest of a line whose beginning has been written.
constexpr std::string_view kEllipsis = "\u2026";

class ConsoleFormat {
 public:
  virtual ~ConsoleFormat() = default;
  virtual void take(StreamId stream, std::int64_t wall_clock_ns, std::string_view bytes,
                    TimePoint now, std::string& out) = 0;
  // The stream has ended: its last line comes out, with or without newline.
  virtual void end_stream(StreamId stream, std::string& out) = 0;
  // The launcher's own words, on lines of their own.
  virtual void note(std::string_view text, std::string& out) = 0;
  // The user has typed a line for that rank, and its echo has ended the terminal's last row.
  virtual void end_typed_row(std::uint32_t) {}
  // How many of the stream's last bytes are neither in the output nor replaced by later ones.
  virtual std::size_t held_bytes(StreamId) const { return 0; }
  // When elapse() has something to do; nothing: not before more comes.
  virtual std::optional<TimePoint> due() const { return std::nullopt; }
  virtual void elapse(TimePoint, std::string&) {}
  // Every stream that has not ended ends here.
  virtual void end_all(std::string& out) = 0;
};

struct FormatOptions {
  LabelStyle style{};
  std::size_t most_held = kMostHeld;  // of a stream's unfinished line; more is written at once
  std::optional<std::uint32_t> input_rank{};  // the rank that gets what is typed
};

std::unique_ptr<ConsoleFormat> make_plain_format(FormatOptions options);
// Every byte as it is and when it comes: for the only rank of a job, without labels.
std::unique_ptr<ConsoleFormat> make_raw_format();
// columns: of the terminal, asked whenever text is to fit in one row.
std::unique_ptr<ConsoleFormat> make_terminal_format(FormatOptions options,
                                                    std::function<std::size_t()> columns);

}  // namespace hv::launcher
