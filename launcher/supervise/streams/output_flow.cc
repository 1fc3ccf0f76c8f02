// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/streams/output_flow.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include "src/base/text.h"

namespace hv::launcher {

OutputFlow::OutputFlow(Job& job, JobEvents& events, OutputOptions options)
    : job_(job),
      room_(
          std::move(options),
          [&events](std::uint32_t rank, std::size_t bytes) {
            events.add(OutputWritten{rank, bytes});
          },
          [&events](const std::string& text, int error, int stream) {
            events.add(OutputFailed{text, error, stream});
          }) {}

void OutputFlow::receive(wire::Output output) {
  ledger_.arrived(output.rank, output.bytes.size());
  if (is_discarded_) return;
  room_.add(
      {output.rank, output.stream, output.wall_clock_ns, std::move(output.bytes), output.end});
}

void OutputFlow::handle(const OutputWritten& event) {
  if (event.rank >= job_.slots.count()) return;
  const std::uint32_t credit = ledger_.written(event.rank, event.bytes);
  if (credit > 0) job_.host_of(static_cast<int>(event.rank)).send(wire::Credit{event.rank, credit});
}

void OutputFlow::handle(const OutputFailed& event) {
  const bool has_reader_left = event.errno_value == EPIPE && event.stream != 0;
  job_.request_stop(
      {has_reader_left ? StopReason::Kind::kOutputClosed : StopReason::Kind::kOutputFailed, SIGPIPE,
       event.text + ": " + errno_text(event.errno_value)});
}

}  // namespace hv::launcher
