// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/output_room.h"

#include <future>
#include <optional>
#include <unordered_map>

#include "launcher/output/console_writer.h"
#include "launcher/output/file_writer.h"
#include "launcher/output/output_directory.h"
#include "launcher/output/recent_lines.h"
#include "src/base/clock.h"

namespace hv::launcher {
namespace {

LabelStyle style_of(const OutputOptions& options, bool is_terminal) {
  return {options.label, options.timestamp, options.colour && is_terminal};
}

}  // namespace

class OutputRoom::Rooms {
 public:
  Rooms(const OutputOptions& options, Written on_written, Broken on_broken)
      : reports_(std::make_shared<Reports>(std::move(on_written), std::move(on_broken))),
        is_typed_on_out_(options.stdout_is_terminal &&
                         is_same_file(options.stdin_fd, options.stdout_fd)),
        is_typed_on_error_(options.stderr_is_terminal &&
                           is_same_file(options.stdin_fd, options.stderr_fd)) {
    std::optional<OutputDirectory> directory;
    if (!options.directory.empty()) directory.emplace(options.directory);
    const LabelStyle out_style = style_of(options, options.stdout_is_terminal);
    const LabelStyle error_style = style_of(options, options.stderr_is_terminal);
    out_ = std::make_unique<ConsoleWriter>(
        ConsoleTarget{options.stdout_fd, 1, options.stdout_is_terminal, out_style}, reports_);
    if (!is_same_file(options.stdout_fd, options.stderr_fd)) {
      error_ = std::make_unique<ConsoleWriter>(
          ConsoleTarget{options.stderr_fd, 2, options.stderr_is_terminal, error_style}, reports_);
    }
    if (directory)
      files_ = std::make_unique<FileWriter>(*directory, FileWriter::Scope::kAllFiles, reports_);
  }

  void set_ranks(const OutputRanks& ranks) {
    out_->put(ranks);
    if (error_) error_->put(ranks);
  }

  void add(OutputChunk chunk) {
    recent_[chunk.rank].add(chunk.stream, chunk.bytes);
    // The console may hold back the line that has no end yet: it travels apart, so that what stands
    // before it is reported as soon as it is written.
    const std::size_t whole_lines = chunk.bytes.rfind('\n') + 1;
    if (whole_lines > 0 && whole_lines < chunk.bytes.size()) {
      OutputChunk lines = chunk;
      lines.bytes.resize(whole_lines);
      lines.end = false;
      ship(std::move(lines));
      chunk.bytes.erase(0, whole_lines);
    }
    ship(std::move(chunk));
  }

  void end_typed_row(std::uint32_t rank) {
    if (is_typed_on_out_) out_->put(TypedRow{rank});
    if (error_ && is_typed_on_error_) error_->put(TypedRow{rank});
  }

  void note(std::string text) { errors().put(Note{std::move(text)}); }

  std::vector<std::string> last_lines(std::uint32_t rank) const {
    const auto found = recent_.find(rank);
    return found == recent_.end() ? std::vector<std::string>{} : found->second.lines();
  }

  bool are_last_lines_above(std::uint32_t rank) const {
    return (error_ ? *error_ : *out_).tail().ends_with(last_lines(rank), rank);
  }

  void put_token(const Token& token) {
    out_->put(token);
    if (error_) error_->put(token);
    if (files_) files_->put(token);
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

  void ship(OutputChunk chunk) {
    ConsoleWriter& console = chunk.stream == 2 ? errors() : *out_;
    // No copy stays here: the last to let go must be a writer thread, which then sends the report.
    auto shipment = std::make_shared<const Shipment>(std::move(chunk), reports_);
    if (files_) files_->put(shipment);
    console.put(std::move(shipment));
  }

  const std::shared_ptr<Reports> reports_;
  const bool is_typed_on_out_, is_typed_on_error_;  // the console is the input's terminal, too
  std::unique_ptr<ConsoleWriter> out_;
  std::unique_ptr<ConsoleWriter> error_;  // none where stderr is the same file as stdout
  std::unique_ptr<FileWriter> files_;
  std::unordered_map<std::uint32_t, RecentLines> recent_;
};

OutputRoom::OutputRoom(OutputOptions options, Written on_written, Broken on_broken)
    : rooms_(std::make_unique<Rooms>(options, std::move(on_written), std::move(on_broken))) {}

OutputRoom::~OutputRoom() { finish_within(std::chrono::milliseconds(0)); }

void OutputRoom::add(OutputChunk chunk) { rooms_->add(std::move(chunk)); }

void OutputRoom::set_ranks(const OutputRanks& ranks) { rooms_->set_ranks(ranks); }

void OutputRoom::end_typed_row(std::uint32_t rank) { rooms_->end_typed_row(rank); }

void OutputRoom::note(std::string text) { rooms_->note(std::move(text)); }

std::vector<std::string> OutputRoom::last_lines(std::uint32_t rank) const {
  return rooms_->last_lines(rank);
}

bool OutputRoom::are_last_lines_above(std::uint32_t rank) const {
  return rooms_->are_last_lines_above(rank);
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
