// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/blocking_call.h"

#include <fcntl.h>

#include <atomic>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <system_error>
#include <thread>

#include "launcher/spawn/ssh/ssh_advice.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/signals.h"

namespace hv::launcher {

namespace asio = boost::asio;

struct BlockingCall::Shared {
  std::atomic<bool> is_through{false};  // what the work wrote is visible to who sees this
  UniqueFd thread_end;
};

BlockingCall::BlockingCall(asio::any_io_executor executor, const std::string& doing,
                           std::function<void()> work)
    : shared_(std::make_shared<Shared>()), answered_(std::move(executor)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    throw Error(ErrorKind::kStart, doing + ": make a pipe: " + errno_text(error),
                shortage_advice(error));
  }
  answered_.assign(ends[0]);
  shared_->thread_end.reset(ends[1]);
  const SignalBlock block;  // signals are for the main thread
  try {
    std::thread([shared = shared_, work = std::move(work)]() mutable {
      work();
      work = nullptr;  // what it holds is given up here, unless the maker still has it
      shared->is_through = true;
      shared->thread_end.reset();
    }).detach();
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::kStart, doing + ": start a thread: " + error.what(),
                shortage_advice(EAGAIN));
  }
}

void BlockingCall::abandon() {
  is_abandoned_ = true;
  boost::system::error_code ignored;
  answered_.cancel(ignored);
}

asio::awaitable<bool> BlockingCall::done() {
  while (!shared_->is_through) {
    if (is_abandoned_) co_return false;
    // May end early: with an event that was meant for the descriptor that had this number before.
    boost::system::error_code ignored;
    co_await answered_.async_wait(asio::posix::descriptor_base::wait_read,
                                  asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return !is_abandoned_;
}

}  // namespace hv::launcher
