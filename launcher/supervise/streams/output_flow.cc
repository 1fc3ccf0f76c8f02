// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/streams/output_flow.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "src/base/text.h"

namespace hv::launcher {

OutputOptions output_options(const JobSpec& spec, const Environment& environment) {
  OutputOptions options;
  options.label = spec.output.label;
  options.timestamp = spec.output.timestamp;
  options.directory = spec.output.output_directory;
  options.stdout_is_terminal = ::isatty(1) == 1;
  options.stderr_is_terminal = ::isatty(2) == 1;
  options.colour =
      environment.get_or("NO_COLOR", "").empty() && environment.get_or("TERM", "dumb") != "dumb";
  return options;
}

OutputFlow::OutputFlow(Job& job, JobEvents& events, OutputOptions options)
    : job_(job),
      room_(
          std::move(options),
          [&events](std::uint32_t rank, std::size_t bytes) {
            events.add(OutputWritten{rank, bytes});
          },
          [&events](const std::string& text, int error, int stream) {
            events.add(OutputFailed{text, error, stream});
          }),
      results_(job, events) {}

bool OutputFlow::receive(wire::Output output) {
  const std::size_t ranks = job_.slots.count();
  const std::uint32_t more = is_discarded_ ? OutputLedger::kDiscardCredit : 0;
  if (!ledger_.add_arrived(output.rank, output.bytes.size(),
                           OutputLedger::first_credit(ranks) + more))
    return false;
  if (is_discarded_) return true;
  if (!std::exchange(has_set_ranks_, true)) set_ranks();
  room_.add({output.rank, output.stream, output.wall_clock_ns, std::move(output.bytes), output.end,
             job_.spec.output.shows(static_cast<int>(output.rank))});
  return true;
}

// With the first output: the plan is known then.
void OutputFlow::set_ranks() {
  OutputRanks ranks{job_.slots.count()};
  if (const auto rank = job_.spec.output.stdin_rank)
    ranks.input_rank = static_cast<std::uint32_t>(*rank);
  if (job_.spec.output.label_has_host) {
    std::vector<std::string> by_rank;
    for (std::size_t rank = 0; rank < ranks.count; ++rank)
      by_rank.push_back(printable(job_.host_of(static_cast<int>(rank)).target.name));
    ranks.hosts = std::make_shared<const std::vector<std::string>>(std::move(by_rank));
  }
  room_.set_ranks(ranks);
}

void OutputFlow::handle(const OutputWritten& event) {
  if (event.rank >= job_.slots.count()) return;
  const std::uint32_t credit = ledger_.written(event.rank, event.bytes);
  if (credit > 0) job_.host_of(static_cast<int>(event.rank)).send(wire::Credit{event.rank, credit});
}

void OutputFlow::handle(const OutputFailed& event) {
  const bool has_reader_left = event.errno_value == EPIPE && event.stream != 0;
  const bool is_planted = event.errno_value == ELOOP || event.errno_value == EPERM;
  job_.request_stop(
      {has_reader_left ? StopReason::Kind::kOutputClosed : StopReason::Kind::kOutputFailed, SIGPIPE,
       event.text + ": " + errno_text(event.errno_value),
       is_planted ? "give --output-dir another directory, or remove that" : ""});
}

}  // namespace hv::launcher
