// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/console_writer.h"

#include <sys/stat.h>

#include <deque>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/output/console_format.h"
#include "launcher/output/output_ledger.h"
#include "launcher/output/terminal_size.h"
#include "src/base/blocking_write.h"

namespace hv::launcher {
namespace {

// Large enough that a write's fixed cost vanishes, small enough to stay in the cache until the
// kernel copies it.
constexpr std::size_t kBatchBytes = 256 << 10;
constexpr std::size_t kFallbackColumns = 80;

std::size_t terminal_columns(int fd) {
  const auto size = terminal_size(fd);
  return size ? size->columns : kFallbackColumns;
}

std::unique_ptr<ConsoleFormat> make_format(const ConsoleTarget& target, const OutputRanks& ranks) {
  if (ranks.count == 1 && target.style.is_empty()) return make_raw_format();
  FormatOptions options{target.style, OutputLedger::most_held(ranks.count), ranks.input_rank};
  options.style.hosts = ranks.hosts;
  if (!target.is_terminal) return make_plain_format(std::move(options));
  return make_terminal_format(std::move(options),
                              [fd = target.fd] { return terminal_columns(fd); });
}

// Of a stream the shipments with bytes that the format holds back, in the order of their coming.
struct HeldBack {
  std::deque<SharedShipment> shipments;
  std::size_t bytes = 0;
};

// What the thread owns.
class ConsoleLoop {
 public:
  ConsoleLoop(const ConsoleTarget& target, std::shared_ptr<WorkQueue<WriterItem>> queue,
              std::shared_ptr<Reports> reports, std::shared_ptr<ConsoleTail> tail)
      : target_(target),
        queue_(std::move(queue)),
        reports_(std::move(reports)),
        tail_(std::move(tail)),
        format_(make_format(target, {})) {}

  void run() {
    std::vector<WriterItem> items;
    while (queue_->take_all(items, next_due())) {
      for (WriterItem& item : items) handle(std::move(item));
      elapse();
      write_text();
    }
    format_->end_all(text_);
    write_text();
  }

 private:
  // The format's time stands still while a reader does: the rest of a line that has begun may wait
  // for the credit that this write gives back.
  TimePoint time() const { return now() - blocked_; }
  std::optional<TimePoint> next_due() const {
    const auto due = format_->due();
    return due ? std::optional(*due + blocked_) : std::nullopt;
  }

  void handle(WriterItem item) {
    std::visit([this](auto& kind) { take(std::move(kind)); }, item);
    if (text_.size() >= kBatchBytes) write_text();
  }
  void take(SharedShipment shipment) {
    const OutputChunk& chunk = shipment->chunk;
    if (!chunk.is_shown) return;  // the rank gets its credit back all the same
    const StreamId stream = stream_id(chunk.rank, chunk.stream);
    format_->take(stream, chunk.wall_clock_ns, chunk.bytes, time(), text_);
    if (chunk.end) format_->end_stream(stream, text_);
    if (format_->held_bytes(stream) == 0 && !held_.contains(stream)) {
      in_text_.push_back(std::move(shipment));
      return;
    }
    HeldBack& held = held_[stream];
    held.bytes += chunk.bytes.size();
    held.shipments.push_back(std::move(shipment));
    release(stream);
  }
  void take(Token) { write_text(); }
  void take(const Note& note) { format_->note(note.text, text_); }
  void take(TypedRow row) { format_->end_typed_row(row.rank); }
  // Comes before any output: no line is lost with the former format.
  void take(const OutputRanks& ranks) { format_ = make_format(target_, ranks); }

  void elapse() {
    const auto due = format_->due();
    if (!due || *due > time()) return;
    format_->elapse(time(), text_);
    std::vector<StreamId> streams;
    for (const auto& [stream, held] : held_) streams.push_back(stream);
    for (const StreamId stream : streams) release(stream);
  }

  // What the format does not hold back is in the text now, or was replaced.
  void release(StreamId stream) {
    HeldBack& held = held_[stream];
    const std::size_t still_held = format_->held_bytes(stream);
    while (!held.shipments.empty()) {
      const std::size_t oldest = held.shipments.front()->chunk.bytes.size();
      if (held.bytes - oldest < still_held) return;
      held.bytes -= oldest;
      in_text_.push_back(std::move(held.shipments.front()));
      held.shipments.pop_front();
    }
    held_.erase(stream);
  }

  void write_text() {
    if (!text_.empty() && !is_broken_) {
      const TimePoint begun = now();
      const int failure = write_all(target_.fd, text_);
      blocked_ += now() - begun;
      if (failure == 0) {
        tail_->add(text_);
      } else {
        is_broken_ = true;
        reports_->tell_broken(
            target_.stream == 1 ? "write to standard output" : "write to standard error", failure,
            target_.stream);
      }
    }
    text_.clear();
    in_text_.clear();
    reports_->send();
  }

  const ConsoleTarget target_;
  const std::shared_ptr<WorkQueue<WriterItem>> queue_;
  const std::shared_ptr<Reports> reports_;
  const std::shared_ptr<ConsoleTail> tail_;
  std::unique_ptr<ConsoleFormat> format_;
  Duration blocked_{};                   // in writes, so far
  std::string text_;                     // formatted, not yet written
  std::vector<SharedShipment> in_text_;  // what it was made of
  std::unordered_map<StreamId, HeldBack> held_;
  bool is_broken_ = false;
};

}  // namespace

bool is_same_file(int fd, int other_fd) {
  struct stat one {};
  struct stat other {};
  if (::fstat(fd, &one) != 0 || ::fstat(other_fd, &other) != 0) return false;
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

ConsoleWriter::ConsoleWriter(const ConsoleTarget& target, std::shared_ptr<Reports> reports)
    : tail_(std::make_shared<ConsoleTail>(target.style)),
      queue_(std::make_shared<WorkQueue<WriterItem>>()),
      thread_([loop = std::make_shared<ConsoleLoop>(target, queue_, std::move(reports), tail_)] {
        loop->run();
      }) {}

}  // namespace hv::launcher
