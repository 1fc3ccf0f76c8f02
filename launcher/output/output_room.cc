// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/output_room.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <future>
#include <unordered_map>

#include "launcher/output/console_writer.h"
#include "launcher/output/file_writer.h"
#include "launcher/output/recent_lines.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

LabelStyle style_of(const OutputOptions& options, bool is_terminal) {
  return {options.label, options.timestamp, options.colour && is_terminal};
}

// Reported before any rank starts, instead of after hours.
void make_output_directory(const std::string& directory) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (!failure && ::access(directory.c_str(), W_OK | X_OK) != 0)
    failure = {errno, std::generic_category()};
  if (!failure) return;
  throw Error(ErrorKind::kUsage,
              "make the output directory " + printable(directory, 1000) + ": " +
                  errno_text(failure.value()),
              "give --output-dir a directory that this user can write to");
}

}  // namespace

class OutputRoom::Rooms {
 public:
  Rooms(const OutputOptions& options, Written on_written, Broken on_broken)
      : reports_(std::make_shared<Reports>(std::move(on_written), std::move(on_broken))) {
    if (!options.directory.empty()) make_output_directory(options.directory);
    const LabelStyle out_style = style_of(options, options.stdout_is_terminal);
    const LabelStyle error_style = style_of(options, options.stderr_is_terminal);
    out_ = std::make_unique<ConsoleWriter>(
        ConsoleTarget{options.stdout_fd, 1, options.stdout_is_terminal, out_style}, reports_);
    if (!is_same_file(options.stdout_fd, options.stderr_fd)) {
      error_ = std::make_unique<ConsoleWriter>(
          ConsoleTarget{options.stderr_fd, 2, options.stderr_is_terminal, error_style}, reports_);
    }
    if (!options.directory.empty()) {
      files_ =
          std::make_unique<FileWriter>(options.directory, FileWriter::Scope::kAllFiles, reports_);
    }
  }

  void add(OutputChunk chunk) {
    recent_[chunk.rank].add(chunk.stream, chunk.bytes);
    ConsoleWriter& console = chunk.stream == 2 ? errors() : *out_;
    // No copy stays here: the last to let go must be a writer thread, which then sends the report.
    auto shipment = std::make_shared<const Shipment>(std::move(chunk), reports_);
    if (files_) files_->put({shipment, {}, nullptr});
    console.put({std::move(shipment), {}, nullptr});
  }

  void note(std::string text) { errors().put({nullptr, std::move(text), nullptr}); }

  std::vector<std::string> last_lines(std::uint32_t rank) const {
    const auto found = recent_.find(rank);
    return found == recent_.end() ? std::vector<std::string>{} : found->second.lines();
  }

  void put_token(const Token& token) {
    out_->put({nullptr, {}, token});
    if (error_) error_->put({nullptr, {}, token});
    if (files_) files_->put({nullptr, {}, token});
  }

  bool finish(std::optional<TimePoint> limit) {
    out_->close();
    if (error_) error_->close();
    if (files_) files_->close();
    const bool out_ended = out_->join(limit);
    const bool errors_ended = !error_ || error_->join(limit);
    const bool files_ended = !files_ || files_->join(limit);
    if (out_ended && errors_ended && files_ended) return true;
    reports_->silence();
    return false;
  }

 private:
  ConsoleWriter& errors() { return error_ ? *error_ : *out_; }

  const std::shared_ptr<Reports> reports_;
  std::unique_ptr<ConsoleWriter> out_;
  std::unique_ptr<ConsoleWriter> error_;  // none where stderr is the same file as stdout
  std::unique_ptr<FileWriter> files_;
  std::unordered_map<std::uint32_t, RecentLines> recent_;
};

OutputRoom::OutputRoom(OutputOptions options, Written on_written, Broken on_broken)
    : rooms_(std::make_unique<Rooms>(options, std::move(on_written), std::move(on_broken))) {}

OutputRoom::~OutputRoom() { finish_within(std::chrono::milliseconds(0)); }

void OutputRoom::add(OutputChunk chunk) { rooms_->add(std::move(chunk)); }

void OutputRoom::note(std::string text) { rooms_->note(std::move(text)); }

std::vector<std::string> OutputRoom::last_lines(std::uint32_t rank) const {
  return rooms_->last_lines(rank);
}

void OutputRoom::flush() {
  // Shared: this thread may be gone on before set_value has returned.
  const auto written = std::make_shared<std::promise<void>>();
  flush_then([written] { written->set_value(); });
  written->get_future().wait();
}

void OutputRoom::flush_then(std::function<void()> done) {
  // Points at something, so that it is told from no token; what counts is that its last owner lets
  // go of it.
  rooms_->put_token(Token(rooms_.get(), [call = std::move(done)](void*) { call(); }));
}

void OutputRoom::finish() { rooms_->finish(std::nullopt); }

bool OutputRoom::finish_within(std::chrono::milliseconds limit) {
  return rooms_->finish(now() + limit);
}

}  // namespace hv::launcher
