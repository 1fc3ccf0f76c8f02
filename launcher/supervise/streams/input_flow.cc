// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/streams/input_flow.h"

#include <termios.h>
#include <unistd.h>

#include <utility>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Standard input is a terminal that shows what is typed.
bool is_echoed() {
  termios settings{};
  return ::tcgetattr(STDIN_FILENO, &settings) == 0 && (settings.c_lflag & ECHO) != 0;
}

}  // namespace

void InputFlow::start() {
  if (!job_.spec.output.stdin_rank) return;
  const auto deliver = [&events = events_](std::string bytes) {
    events.add(InputRead{std::move(bytes)});
  };
  const auto on_error = [&events = events_](int error) { events.add(InputFailed{error}); };
  forwarder_ =
      std::make_unique<StdinForwarder>(wire::kStdinWindow, StdinCallbacks{deliver, on_error});
}

void InputFlow::handle(InputRead event) {
  const bool is_end = event.bytes.empty();
  const int rank = *job_.spec.output.stdin_rank;
  if (event.bytes.ends_with('\n') && is_echoed()) console_.end_typed_row(rank);
  job_.host_of(rank).send(
      wire::Stdin{static_cast<std::uint32_t>(rank), is_end, std::move(event.bytes)});
}

void InputFlow::handle(const InputFailed& event) {
  console_.say("warning: read standard input: " + errno_text(event.errno_value) + "; rank " +
               std::to_string(*job_.spec.output.stdin_rank) + " gets no more of it");
}

void InputFlow::accept(std::uint32_t bytes) {
  if (forwarder_) forwarder_->add_window(bytes);
}

void InputFlow::resume(bool was_stopped) {
  if (forwarder_) forwarder_->continue_after_stop(was_stopped);
}

}  // namespace hv::launcher
