// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/streams/input_flow.h"

#include <utility>

#include "src/base/text.h"

namespace hv::launcher {

void InputFlow::start() {
  if (!job_.spec.output.forward_stdin) return;
  const auto deliver = [&events = events_](std::string bytes) {
    events.add(InputRead{std::move(bytes)});
  };
  const auto on_error = [&events = events_](int error) { events.add(InputFailed{error}); };
  forwarder_ =
      std::make_unique<StdinForwarder>(wire::kStdinWindow, StdinCallbacks{deliver, on_error});
}

void InputFlow::handle(InputRead event) {
  const bool is_end = event.bytes.empty();
  job_.host_of(0).send(wire::Stdin{0, is_end, std::move(event.bytes)});
}

void InputFlow::handle(const InputFailed& event) {
  console_.say("warning: read standard input: " + errno_text(event.errno_value) +
               "; rank 0 gets no more of it");
}

void InputFlow::accept(std::uint32_t bytes) {
  if (forwarder_) forwarder_->accepted(bytes);
}

void InputFlow::resume(bool was_stopped) {
  if (forwarder_) forwarder_->has_been_stopped(was_stopped);
}

}  // namespace hv::launcher
