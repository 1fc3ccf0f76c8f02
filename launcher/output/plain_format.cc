// The form for pipes and files: whole lines, beginnings of lines after 1 s, and of a line that its
// program overwrites the newest state at growing intervals. See ConsoleFormat.
// SPDX-License-Identifier: Apache-2.0
//
// The output's last line may stand open, without its newline: then it is one stream's, which
// appends to it. Before anything else is written a newline closes it; the rest of that line then
// begins with the label and an ellipsis, without labels with nothing.
//
//   beginning  text that waited 1 s for its newline, or is longer than a format may hold
//   state      what stands between two '\r': its program means to overwrite it. The newest state is
//              written 1 s after it came, on a line of its own, then after 2, 4, 8, 16, 30, 30 ...
//              seconds, and when the line ends. States that another one has replaced by then are
//              left out.
//
// With labels a last line without newline gets one. Without them nothing is added but the newlines
// that end one stream's line before another's text.
#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "launcher/output/console_format.h"

namespace hv::launcher {
namespace {

constexpr auto kLongestInterval = std::chrono::seconds(30);
constexpr std::size_t kKeptCapacity = 4096;

// Where the newest state of text begins: after the last '\r' that anything but '\r' follows.
// 0: text has one state.
std::size_t newest_state(std::string_view text) {
  const std::size_t last = text.find_last_not_of('\r');
  if (last == std::string_view::npos) return 0;
  const void* before = ::memrchr(text.data(), '\r', last);
  return before ? static_cast<std::size_t>(static_cast<const char*>(before) - text.data()) + 1 : 0;
}

std::string_view without_returns(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\r') + 1);
}

// text: a whole line. A '\r' at its end is part of a line of one state ("\r\n"), and of a line that
// is overwritten what the next state would have begun with.
std::string_view last_state(std::string_view text) {
  const std::size_t state = newest_state(text);
  return state == 0 ? text : without_returns(text.substr(state));
}

class PlainFormat : public ConsoleFormat {
 public:
  explicit PlainFormat(FormatOptions options)
      : labels_(std::move(options.style)), most_held_(options.most_held) {}

  void take(StreamId id, std::int64_t wall_clock_ns, std::string_view bytes, TimePoint now,
            std::string& out) override {
    if (id >= streams_.size()) streams_.resize(id + 1);
    Stream& stream = streams_[id];
    while (!bytes.empty()) {
      const std::size_t newline = bytes.find('\n');
      const std::string_view text = bytes.substr(0, newline);
      if (stream.text.empty()) stream.begun_ns = wall_clock_ns;
      if (newline == std::string_view::npos) {
        add(id, text, wall_clock_ns, out);
        show_when_due(id, now, out);
        return;
      }
      if (stream.has_begun) {
        add(id, text, wall_clock_ns, out);
        end_line(id, out);
      } else {
        close_line(out);
        out += labels_.label(rank_of(id), wall_clock_ns);
        (out += last_state(text)) += '\n';
      }
      bytes.remove_prefix(newline + 1);
    }
  }

  void end_stream(StreamId id, std::string& out) override {
    if (id >= streams_.size()) return;
    write_rest(id, out);
    if (is_open(id)) {
      out += rest_of_line(id);
      open_ = kNoStream;
      if (!labels_.is_empty()) close_line(out);
    }
    forget_line(id);
  }

  void note(std::string_view text, std::string& out) override {
    close_line(out);
    out += text;
    if (!text.ends_with('\n')) out += '\n';
  }

  std::size_t held_bytes(StreamId id) const override {
    return id < streams_.size() ? streams_[id].text.size() : 0;
  }

  std::optional<TimePoint> due() const override {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_.begin()->first);
  }

  void elapse(TimePoint now, std::string& out) override {
    while (!waiting_.empty() && waiting_.begin()->first <= now) {
      const StreamId id = waiting_.begin()->second;
      write_rest(id, out);
      Stream& stream = streams_[id];
      if (!stream.is_state) continue;
      stream.interval = std::min<Duration>(stream.interval * 2, kLongestInterval);
      stream.next_state = now + stream.interval;
    }
  }

  void end_all(std::string& out) override {
    for (StreamId id = 0; id < streams_.size(); ++id) end_stream(id, out);
  }

 private:
  // The line that a stream has begun and not ended.
  struct Stream {
    std::string text;  // of it, or of its newest state, what has not been written
    bool has_begun = false;
    bool is_written = false;        // in part
    bool is_state = false;          // an earlier state has been replaced
    std::int64_t begun_ns = 0;      // of text
    Duration interval = kPatience;  // before the last state that was written
    TimePoint next_state{};         // not before
    std::optional<TimePoint> due;   // its entry in waiting_

    // A '\r' at the end may belong to "\r\n".
    std::size_t visible_bytes() const { return without_returns(text).size(); }
  };
  static constexpr StreamId kNoStream = UINT32_MAX;

  // text: has no newline.
  void add(StreamId id, std::string_view text, std::int64_t wall_clock_ns, std::string& out) {
    if (text.empty()) return;
    Stream& stream = streams_[id];
    stream.has_begun = true;
    const std::size_t state = newest_state(text);
    const bool is_visible = text.find_first_not_of('\r') != std::string_view::npos;
    if (state > 0 || (stream.text.ends_with('\r') && is_visible)) {
      if (is_open(id)) close_line(out);
      text.remove_prefix(state);
      stream.text.clear();
      stream.is_written = false;
      stream.is_state = true;
      stream.begun_ns = wall_clock_ns;
    }
    stream.text += text;
    if (stream.text.size() > most_held_) {
      write_rest(id, out);
      if (stream.text.size() > most_held_) stream.text.clear();  // nothing but '\r'
    }
  }

  void show_when_due(StreamId id, TimePoint now, std::string& out) {
    Stream& stream = streams_[id];
    if (is_open(id))
      write_rest(id, out);
    else if (!stream.due && stream.visible_bytes() > 0)
      stream.due = waiting_.emplace(std::max(now + kPatience, stream.next_state), id).first->first;
  }

  // What has not been written of the stream's line; it stands open then.
  void write_rest(StreamId id, std::string& out) {
    Stream& stream = streams_[id];
    stop_waiting(id);
    const std::size_t bytes = stream.visible_bytes();
    if (bytes == 0) return;
    if (!is_open(id)) {
      close_line(out);
      out += labels_.label(rank_of(id), stream.begun_ns);
      if (stream.is_written && !labels_.is_empty()) out += kEllipsis;
    }
    open_ = id;
    out.append(stream.text, 0, bytes);
    stream.text.erase(0, bytes);
    stream.is_written = true;
  }

  void end_line(StreamId id, std::string& out) {
    Stream& stream = streams_[id];
    if (!stream.is_written) {
      close_line(out);
      out += labels_.label(rank_of(id), stream.begun_ns);
      (out += rest_of_line(id)) += '\n';
    } else {
      write_rest(id, out);
      if (is_open(id)) (out += rest_of_line(id)) += '\n';
      if (is_open(id)) open_.reset();
    }
    forget_line(id);
  }

  // At the end of the line: what has not been written of it.
  std::string_view rest_of_line(StreamId id) const {
    const Stream& stream = streams_[id];
    return stream.is_state ? without_returns(stream.text) : std::string_view(stream.text);
  }

  void forget_line(StreamId id) {
    stop_waiting(id);
    // One long line must not keep a megabyte for the rest of the job.
    std::string kept = std::move(streams_[id].text);
    if (kept.capacity() > kKeptCapacity) std::string().swap(kept);
    kept.clear();
    streams_[id] = Stream{};
    streams_[id].text = std::move(kept);
  }

  void stop_waiting(StreamId id) {
    if (const auto due = std::exchange(streams_[id].due, std::nullopt)) waiting_.erase({*due, id});
  }

  bool is_open(StreamId id) const { return open_ == id; }

  void close_line(std::string& out) {
    if (open_) out += '\n';
    open_.reset();
  }

  LabelMaker labels_;
  const std::size_t most_held_;
  std::vector<Stream> streams_;
  std::set<std::pair<TimePoint, StreamId>> waiting_;  // streams with text that is not written
  std::optional<StreamId> open_;                      // whose line has no newline yet
};

class RawFormat : public ConsoleFormat {
 public:
  void take(StreamId, std::int64_t, std::string_view bytes, TimePoint, std::string& out) override {
    out += bytes;
    if (!bytes.empty()) has_open_line_ = !bytes.ends_with('\n');
  }
  void end_stream(StreamId, std::string&) override {}
  void note(std::string_view text, std::string& out) override {
    if (std::exchange(has_open_line_, false)) out += '\n';
    out += text;
    if (!text.ends_with('\n')) out += '\n';
  }
  void end_all(std::string&) override {}

 private:
  bool has_open_line_ = false;
};

}  // namespace

std::unique_ptr<ConsoleFormat> make_plain_format(FormatOptions options) {
  return std::make_unique<PlainFormat>(std::move(options));
}

std::unique_ptr<ConsoleFormat> make_raw_format() { return std::make_unique<RawFormat>(); }

}  // namespace hv::launcher
