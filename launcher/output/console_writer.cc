// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/console_writer.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

#include <vector>

#include "launcher/output/console_format.h"
#include "src/base/blocking_write.h"

namespace hv::launcher {
namespace {

// Large enough that a write's fixed cost vanishes, small enough to stay in the cache until the
// kernel copies it.
constexpr std::size_t kBatchBytes = 256 << 10;
constexpr std::size_t kFallbackColumns = 80;

std::size_t terminal_columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kFallbackColumns;
}

std::unique_ptr<ConsoleFormat> make_format(const ConsoleTarget& target) {
  if (!target.is_terminal) return make_plain_format(target.style);
  return make_terminal_format(target.style, [fd = target.fd] { return terminal_columns(fd); });
}

// What the thread owns.
class ConsoleLoop {
 public:
  ConsoleLoop(const ConsoleTarget& target, std::shared_ptr<WorkQueue<WriterItem>> queue,
              std::shared_ptr<Reports> reports)
      : target_(target),
        queue_(std::move(queue)),
        reports_(std::move(reports)),
        format_(make_format(target)) {}

  void run() {
    std::vector<WriterItem> items;
    while (queue_->take_all(items, format_->due())) {
      for (WriterItem& item : items) handle(std::move(item));
      format_->elapse(now(), text_);
      write_text();
    }
    format_->end_all(text_);
    write_text();
  }

 private:
  void handle(WriterItem item) {
    if (item.shipment) {
      take(*item.shipment);
      in_text_.push_back(std::move(item.shipment));
    } else if (item.token) {
      write_text();
    } else {
      format_->note(item.note, text_);
    }
    if (text_.size() >= kBatchBytes) write_text();
  }

  void take(const Shipment& shipment) {
    const OutputChunk& chunk = shipment.chunk;
    const StreamId stream = stream_id(chunk.rank, chunk.stream);
    format_->take(stream, chunk.wall_clock_ns, chunk.bytes,
                  target_.is_terminal ? now() : TimePoint{}, text_);
    if (chunk.end) format_->end_stream(stream, text_);
  }

  void write_text() {
    if (!text_.empty() && !is_broken_) {
      if (const int failure = write_all(target_.fd, text_)) {
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
  const std::unique_ptr<ConsoleFormat> format_;
  std::string text_;                     // formatted, not yet written
  std::vector<SharedShipment> in_text_;  // what it was made of
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
    : queue_(std::make_shared<WorkQueue<WriterItem>>()),
      thread_([loop = std::make_shared<ConsoleLoop>(target, queue_, std::move(reports))] {
        loop->run();
      }) {}

}  // namespace hv::launcher
