// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/input_pump.h"

#include <unistd.h>

#include <cerrno>

#include "src/wire/messages.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostWaiting = 4 * wire::kStdinWindow;
// Ctrl-D: a terminal cannot be closed on one side.
constexpr char kEndOfInput = 4;

// A terminal reads a Ctrl-D after one of these bytes as the end of input; elsewhere the first
// Ctrl-D only delivers the unfinished line.
bool ends_line(char byte) { return byte == '\n' || byte == '\r' || byte == kEndOfInput; }

}  // namespace

InputPump::InputPump(EventLoop& loop, UniqueFd fd, bool is_terminal,
                     std::function<void(std::uint32_t)> on_taken)
    : loop_(loop), fd_(std::move(fd)), is_terminal_(is_terminal), on_taken_(std::move(on_taken)) {}

InputPump::~InputPump() { close(); }

bool InputPump::add(const std::string& bytes) {
  if (bytes.size() > kMostWaiting - waiting_.size()) return false;
  if (!fd_ || is_end_requested_) {
    on_taken_(static_cast<std::uint32_t>(bytes.size()));
    return true;
  }
  waiting_ += bytes;
  if (!bytes.empty()) is_in_line_ = !ends_line(bytes.back());
  write_waiting();
  return true;
}

void InputPump::end_input() {
  if (!fd_ || is_end_requested_) return;
  is_end_requested_ = true;
  if (is_terminal_) waiting_.append(is_in_line_ ? 2 : 1, kEndOfInput);
  write_waiting();
}

void InputPump::write_waiting() {
  while (fd_ && !waiting_.empty()) {
    const ssize_t wrote = ::write(fd_.get(), waiting_.data(), waiting_.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) {
      loop_.watch(fd_.get(), EPOLLOUT, [this](std::uint32_t) { write_waiting(); });
      return;
    }
    // Once a rank has closed its stdin, all input counts as taken, so that hvrun does not wait for
    // credit.
    if (wrote < 0) close();
    const std::size_t taken = wrote < 0 ? waiting_.size() : static_cast<std::size_t>(wrote);
    waiting_.erase(0, taken);
    on_taken_(static_cast<std::uint32_t>(taken));
  }
  if (!fd_) return;
  loop_.unwatch(fd_.get());
  if (is_end_requested_ && !is_terminal_) close();
}

void InputPump::close() {
  if (!fd_) return;
  loop_.unwatch(fd_.get());
  fd_.reset();
}

}  // namespace hv::launcher
