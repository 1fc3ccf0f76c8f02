// The form for terminals: whole lines, progress updates at most 5/s a rank, and beginnings of lines
// after 1 s.
// SPDX-License-Identifier: Apache-2.0
//
// The terminal's last row may stand open, showing one stream's unfinished line in one of two ways:
//   beginning  text that waited 1 s for its end ("Name? "). More of it is appended. Another
//              stream's line first ends the row; the rest then comes with the label and an
//              ellipsis.
//   update     text before or after a '\r': its program means to overwrite it. It is clipped to one
//              row and drawn anew in place, also by another rank's update; another stream's whole
//              line ends the row first, and the line is shown whole again when it ends.
// '\r' replaces the row instead of moving the cursor, since the row begins with a label; "\r\n"
// ends a line.
#include <algorithm>
#include <utility>
#include <vector>

#include "launcher/output/columns.h"
#include "launcher/output/console_format.h"

namespace hv::launcher {
namespace {

constexpr auto kUpdateInterval = std::chrono::milliseconds(200);
// A longer line is cut: a row that may be drawn anew is kept in memory.
constexpr std::size_t kLongestLine = 1 << 20;
constexpr std::string_view kResetColour = "\x1b[0m";

struct Stream {
  std::string row;  // of the unfinished line: what follows its last '\r' that anything follows
  bool returned = false;   // a '\r' came last
  bool is_update = false;  // something followed a '\r'
  bool is_dirty = false;   // row has changed since it was shown
  std::size_t shown = 0;   // bytes of row that were shown as a beginning
  std::int64_t begun_ns = 0;
  TimePoint dirty_since{};
  std::optional<TimePoint> due;

  bool overwrites() const { return is_update || returned; }
};

struct OpenRow {
  StreamId stream = 0;
  bool is_update = false;
  std::size_t columns = 0;
};

class TerminalFormat : public ConsoleFormat {
 public:
  TerminalFormat(FormatOptions options, std::function<std::size_t()> columns)
      : labels_(std::move(options.style)),
        most_held_(options.most_held),
        input_rank_(options.input_rank),
        columns_(std::move(columns)) {}

  void take(StreamId id, std::int64_t wall_clock_ns, std::string_view bytes, TimePoint now,
            std::string& out) override;
  void end_stream(StreamId id, std::string& out) override;
  void note(std::string_view text, std::string& out) override;
  void end_typed_row(std::uint32_t rank) override;
  std::size_t held_bytes(StreamId id) const override;
  std::optional<TimePoint> due() const override;
  void elapse(TimePoint now, std::string& out) override;
  void end_all(std::string& out) override;

 private:
  void add_text(StreamId id, std::string_view text, std::string& out);
  void append(StreamId id, std::string_view text, std::string& out);
  void finish_line(StreamId id, std::string_view mark, std::string& out);
  void show_when_due(StreamId id, TimePoint now, std::string& out);
  void show_beginning(StreamId id, std::string& out);
  void draw_update(StreamId id, std::string& out);
  std::size_t draw_over(bool may, std::string_view text, std::size_t columns, std::string& out);
  void close_row(std::string& out);
  std::size_t width() const { return std::max<std::size_t>(columns_(), 2); }
  bool is_open(StreamId id) const { return open_ && open_->stream == id; }

  LabelMaker labels_;
  const std::size_t most_held_;
  const std::optional<std::uint32_t> input_rank_;
  std::function<std::size_t()> columns_;
  std::vector<Stream> streams_;
  std::vector<std::optional<TimePoint>> last_update_;  // by rank
  std::optional<OpenRow> open_;
  TimePoint now_{};
};

void TerminalFormat::take(StreamId id, std::int64_t wall_clock_ns, std::string_view bytes,
                          TimePoint now, std::string& out) {
  if (id >= streams_.size()) streams_.resize(id + 1);
  if (rank_of(id) >= last_update_.size()) last_update_.resize(rank_of(id) + 1);
  Stream& stream = streams_[id];
  now_ = now;
  while (!bytes.empty()) {
    if (stream.row.empty()) stream.begun_ns = wall_clock_ns;
    const std::size_t newline = bytes.find('\n');
    add_text(id, bytes.substr(0, newline), out);
    if (newline == std::string_view::npos) break;
    finish_line(id, "\n", out);
    bytes.remove_prefix(newline + 1);
  }
  show_when_due(id, now, out);
}

// text: no newline in it.
void TerminalFormat::add_text(StreamId id, std::string_view text, std::string& out) {
  Stream& stream = streams_[id];
  if (text.empty()) return;
  const std::size_t last = text.find_last_not_of('\r');
  if (last == std::string_view::npos) {
    stream.returned = true;
    return;
  }
  const bool returns = last + 1 < text.size();
  text = text.substr(0, last + 1);
  const std::size_t inner = text.rfind('\r');
  if (stream.returned || inner != std::string_view::npos) {
    stream.row.clear();
    stream.shown = 0;
    stream.is_update = true;
    if (inner != std::string_view::npos) text.remove_prefix(inner + 1);
  }
  stream.returned = false;
  append(id, text, out);
  stream.returned = returns;
}

void TerminalFormat::append(StreamId id, std::string_view text, std::string& out) {
  Stream& stream = streams_[id];
  while (stream.row.size() + text.size() > kLongestLine) {
    const std::size_t fits = kLongestLine - stream.row.size();
    stream.row += text.substr(0, fits);
    finish_line(id, " [cont]\n", out);
    text.remove_prefix(fits);
  }
  stream.row += text;
  if (!std::exchange(stream.is_dirty, true)) stream.dirty_since = now_;
}

void TerminalFormat::finish_line(StreamId id, std::string_view mark, std::string& out) {
  Stream& stream = streams_[id];
  const std::string_view rest = std::string_view(stream.row).substr(stream.shown);
  if (is_open(id) && !open_->is_update && !stream.is_update) {
    (out += rest) += mark;
    open_.reset();
  } else if (stream.shown == 0 || !rest.empty()) {
    std::string line(labels_.label(rank_of(id), stream.begun_ns));
    if (stream.shown > 0) line += kEllipsis;
    line += rest;
    draw_over(is_open(id), line, columns_of(line), out);
    out += mark;
  }
  const std::int64_t begun_ns = stream.begun_ns;
  stream = Stream{};
  stream.begun_ns = begun_ns;
}

// Over the open row where that may be and can be done (a beginning may fill several rows), else
// below it. Returns the columns of the row that are filled then, blanks over what was there before
// included.
std::size_t TerminalFormat::draw_over(bool may, std::string_view text, std::size_t columns,
                                      std::string& out) {
  std::size_t covered = 0;
  if (open_ && may && open_->columns < width()) {
    covered = open_->columns;
    out += '\r';
    open_.reset();
  }
  close_row(out);
  out += text;
  if (covered > columns) out.append(covered - columns, ' ');
  return std::max(covered, columns);
}

void TerminalFormat::show_when_due(StreamId id, TimePoint now, std::string& out) {
  Stream& stream = streams_[id];
  stream.due.reset();
  if (!stream.is_dirty) return;
  const Duration patience = input_rank_ == rank_of(id) ? kPromptPatience : Duration(kPatience);
  TimePoint when = stream.dirty_since + patience;
  if (stream.overwrites()) {
    const std::optional<TimePoint>& last = last_update_[rank_of(id)];
    when = last ? *last + kUpdateInterval : now;
  } else if (is_open(id) || held_bytes(id) > most_held_) {
    when = now;
  }
  if (when > now) {
    stream.due = when;
    return;
  }
  if (stream.overwrites()) {
    draw_update(id, out);
    last_update_[rank_of(id)] = now;
  } else {
    show_beginning(id, out);
  }
  stream.is_dirty = false;
}

void TerminalFormat::show_beginning(StreamId id, std::string& out) {
  Stream& stream = streams_[id];
  std::string text;
  if (!is_open(id)) {
    close_row(out);
    text = labels_.label(rank_of(id), stream.begun_ns);
    if (stream.shown > 0) text += kEllipsis;
    open_ = OpenRow{id, false, 0};
  }
  text += std::string_view(stream.row).substr(stream.shown);
  out += text;
  open_->columns += columns_of(text);
  stream.shown = stream.row.size();
}

void TerminalFormat::draw_update(StreamId id, std::string& out) {
  Stream& stream = streams_[id];
  std::string line(labels_.label(rank_of(id), stream.begun_ns));
  line += stream.row;
  const std::string_view clipped = clip_to_columns(line, width() - 1);
  const std::size_t columns = columns_of(clipped);
  if (clipped.size() < line.size()) {
    line.resize(clipped.size());
    if (line.find('\x1b') != std::string::npos) line += kResetColour;
  }
  const std::size_t filled =
      draw_over(is_open(id) || (open_ && open_->is_update), line, columns, out);
  open_ = OpenRow{id, true, filled};
  stream.shown = 0;
}

void TerminalFormat::close_row(std::string& out) {
  if (open_) out += '\n';
  open_.reset();
}

void TerminalFormat::end_stream(StreamId id, std::string& out) {
  if (id >= streams_.size()) return;
  if (!streams_[id].row.empty()) finish_line(id, "\n", out);
}

void TerminalFormat::note(std::string_view text, std::string& out) {
  close_row(out);
  out += text;
  if (!text.ends_with('\n')) out += '\n';
}

// The prompt of the rank that gets the input is a whole line then. Another stream's line goes on
// behind an ellipsis, as after any text that came between.
void TerminalFormat::end_typed_row(std::uint32_t rank) {
  if (!open_) return;
  const OpenRow row = *std::exchange(open_, std::nullopt);
  Stream& stream = streams_[row.stream];
  if (rank_of(row.stream) != rank || row.is_update) return;
  stream.row.erase(0, stream.shown);
  stream.shown = 0;
}

// What is not shown yet. An update counts as shown once it is drawn, though it is clipped.
std::size_t TerminalFormat::held_bytes(StreamId id) const {
  if (id >= streams_.size() || !streams_[id].is_dirty) return 0;
  return streams_[id].row.size() - streams_[id].shown;
}

std::optional<TimePoint> TerminalFormat::due() const {
  std::optional<TimePoint> first;
  for (const Stream& stream : streams_) {
    if (stream.due && (!first || *stream.due < *first)) first = stream.due;
  }
  return first;
}

void TerminalFormat::elapse(TimePoint now, std::string& out) {
  for (StreamId id = 0; id < streams_.size(); ++id) {
    if (streams_[id].due && *streams_[id].due <= now) show_when_due(id, now, out);
  }
}

void TerminalFormat::end_all(std::string& out) {
  for (StreamId id = 0; id < streams_.size(); ++id) end_stream(id, out);
}

}  // namespace

std::unique_ptr<ConsoleFormat> make_terminal_format(FormatOptions options,
                                                    std::function<std::size_t()> columns) {
  return std::make_unique<TerminalFormat>(std::move(options), std::move(columns));
}

}  // namespace hv::launcher
