// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/start_deadline.h"

#include <boost/asio/steady_timer.hpp>

#include "src/base/error.h"

namespace hv::launcher {

struct StartDeadline::State {
  State(boost::asio::any_io_executor executor, Duration duration)
      : timer(std::move(executor), duration), timeout(duration) {}
  boost::asio::steady_timer timer;
  Duration timeout;
  bool passed = false;
  std::string doing, hint;
  std::function<void()> cancel;
};

StartDeadline::StartDeadline(boost::asio::any_io_executor executor, Duration timeout)
    : state_(std::make_shared<State>(std::move(executor), timeout)) {
  state_->timer.async_wait([state = state_](const boost::system::error_code& error) {
    if (error) return;
    state->passed = true;
    if (state->cancel) state->cancel();
  });
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
  throw Error(
      ErrorKind::kTimeout,
      state_->doing + ": not done within " + seconds_text(state_->timeout) + " (--start-timeout)",
      state_->hint);
}

}  // namespace hv::launcher
