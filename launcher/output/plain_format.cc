// The form for pipes and files: whole lines only, every byte kept. See ConsoleFormat.
// SPDX-License-Identifier: Apache-2.0
//
// With a label each line begins one and ends in a newline: a last line that has none gets one, a
// piece of a line longer than kLongestLine gets " [cont]" and one. Without label nothing is added
// as long as no other stream's text follows, so that one rank's output goes through byte for byte:
// an unfinished line stays open, and whoever writes next closes it.
#include <vector>

#include "launcher/output/console_format.h"
#include "launcher/output/line_buffer.h"

namespace hv::launcher {
namespace {

constexpr std::string_view kCutMark = " [cont]\n";
constexpr std::string_view kNewline = "\n";

class PlainFormat : public ConsoleFormat {
 public:
  explicit PlainFormat(LabelStyle style) : labels_(style) {}

  void take(StreamId stream, std::int64_t wall_clock_ns, std::string_view bytes, TimePoint,
            std::string& out) override {
    if (stream >= streams_.size()) streams_.resize(stream + 1);
    Stream& state = streams_[stream];
    // Of the first line, which may have begun in an earlier chunk; the others begin in this one.
    std::int64_t begun_ns = state.lines.held_bytes() > 0 ? state.begun_ns : wall_clock_ns;
    state.lines.feed(bytes, [&](const LinePiece& piece) {
      write(stream, begun_ns, piece, out);
      if (piece.ending == LinePiece::Ending::kNewline) begun_ns = wall_clock_ns;
    });
    state.begun_ns = begun_ns;
  }

  void end_stream(StreamId stream, std::string& out) override {
    if (stream >= streams_.size()) return;
    Stream& state = streams_[stream];
    state.lines.end([&](const LinePiece& piece) { write(stream, state.begun_ns, piece, out); });
  }

  void note(std::string_view text, std::string& out) override {
    close_open_line(out);
    out += text;
    if (!text.ends_with('\n')) out += '\n';
  }

  void end_all(std::string& out) override {
    for (StreamId stream = 0; stream < streams_.size(); ++stream) end_stream(stream, out);
  }

 private:
  struct Stream {
    LineBuffer lines;
    std::int64_t begun_ns = 0;  // of the line that has begun
  };
  // The console's last line has no end: whose it is, and what ends it should somebody else write.
  struct OpenLine {
    StreamId stream;
    std::string_view mark;
  };

  void write(StreamId stream, std::int64_t begun_ns, const LinePiece& piece, std::string& out) {
    if (open_ && open_->stream != stream) close_open_line(out);
    open_.reset();
    out += labels_.label(rank_of(stream), begun_ns);
    out += piece.held;
    out += piece.text;
    if (piece.ending == LinePiece::Ending::kNewline) return;
    const std::string_view mark = piece.ending == LinePiece::Ending::kCut ? kCutMark : kNewline;
    if (labels_.is_empty()) {
      open_ = OpenLine{stream, mark};
    } else {
      out += mark;
    }
  }

  void close_open_line(std::string& out) {
    if (open_) out += open_->mark;
    open_.reset();
  }

  LabelMaker labels_;
  std::vector<Stream> streams_;
  std::optional<OpenLine> open_;
};

}  // namespace

std::unique_ptr<ConsoleFormat> make_plain_format(LabelStyle style) {
  return std::make_unique<PlainFormat>(style);
}

}  // namespace hv::launcher
