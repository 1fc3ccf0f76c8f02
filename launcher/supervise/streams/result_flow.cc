// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/streams/result_flow.h"

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include "src/base/text.h"

namespace hv::launcher {

ResultFlow::ResultFlow(Job& job, JobEvents& events) : job_(job), watched_(job.executor) {
  if (!job.spec.output.result_fd) return;
  watch_reader(events);
  writer_ = std::make_unique<ResultWriter>(
      UniqueFd(*job.spec.output.result_fd),
      [&events](std::size_t bytes) { events.add(ResultWritten{bytes}); },
      [&events](int error) { events.add(ResultFailed{error}); });
}

// The caller of hvrun.run may die while its function runs.
void ResultFlow::watch_reader(JobEvents& events) {
  UniqueFd copy(::fcntl(*job_.spec.output.result_fd, F_DUPFD_CLOEXEC, 0));
  boost::system::error_code failure;
  if (copy) watched_.assign(copy.get(), failure);
  if (!copy || failure) return;  // a regular file, for one, has no reader that could go
  copy.release();
  watched_.async_wait(boost::asio::posix::descriptor_base::wait_error,
                      [&events](const boost::system::error_code& error) {
                        if (!error) events.add(ResultFailed{EPIPE});
                      });
}

bool ResultFlow::receive(wire::Result result) {
  if (!writer_ || has_ended_ || result.bytes.size() > wire::Result::kMostBytes) return false;
  if (!is_discarded_ && !ledger_.add_arrived(0, result.bytes.size(), wire::Result::kFirstCredit))
    return false;
  has_ended_ = result.end;
  if (!is_discarded_ && !result.bytes.empty()) writer_->put(std::move(result.bytes));
  if (result.end) close();
  return true;
}

void ResultFlow::handle(const ResultWritten& event) {
  const std::uint32_t credit = ledger_.written(0, event.bytes);
  if (credit > 0 && !has_ended_) job_.host_of(0).send(wire::Credit{0, credit, true});
}

void ResultFlow::handle(const ResultFailed& event) {
  job_.request_stop({StopReason::Kind::kOutputFailed, SIGPIPE,
                     "write what rank 0 returns to descriptor " +
                         std::to_string(*job_.spec.output.result_fd) +
                         " (--result-fd): " + errno_text(event.errno_value),
                     "keep the reading end open until hvrun has ended"});
}

void ResultFlow::close() {
  boost::system::error_code ignored;  // nothing is written through the copy
  watched_.close(ignored);
  writer_->close();
}

void ResultFlow::finish_within(Duration limit) {
  if (!writer_) return;
  close();
  writer_->join(now() + limit);
}

}  // namespace hv::launcher
