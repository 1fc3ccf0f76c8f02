// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/start_deadline.h"

#include <boost/asio/steady_timer.hpp>

#include "src/base/error.h"
#include "src/base/running_time.h"

namespace hv::launcher {

struct StartDeadline::State : std::enable_shared_from_this<StartDeadline::State> {
  State(boost::asio::any_io_executor executor, Duration duration)
      : timer(std::move(executor)), timeout(duration), end(running_time.at(now()) + duration) {}

  void wait() {
    timer.expires_at(running_time.next_check(end));
    timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error) self->look();
    });
  }

  void look() {
    if (running_time.at(now()) < end) return wait();
    passed = true;
    if (cancel) cancel();
  }

  boost::asio::steady_timer timer;
  RunningTime running_time;
  const Duration timeout;
  const TimePoint end;  // in running time
  bool passed = false;
  std::string doing, hint;
  std::function<void()> cancel;
};

StartDeadline::StartDeadline(boost::asio::any_io_executor executor, Duration timeout)
    : state_(std::make_shared<State>(std::move(executor), timeout)) {
  state_->wait();
}

StartDeadline::~StartDeadline() {
  state_->cancel = nullptr;
  state_->timer.cancel();
}

StartDeadline::Phase::~Phase() { deadline_.state_->cancel = nullptr; }

StartDeadline::Phase StartDeadline::enter(std::string doing, std::string hint,
                                          std::function<void()> cancel) {
  throw_if_passed();
  state_->doing = std::move(doing);
  state_->hint = std::move(hint);
  state_->cancel = std::move(cancel);
  return Phase(*this);
}

bool StartDeadline::passed() const { return state_->passed; }

Duration StartDeadline::timeout() const { return state_->timeout; }

void StartDeadline::throw_if_passed() const {
  if (!state_->passed) return;
  throw Error(ErrorKind::kTimeout,
              state_->doing + ": not done within " + format_duration(state_->timeout) +
                  " (--start-timeout)",
              state_->hint);
}

}  // namespace hv::launcher
