// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/login_limiter.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <list>
#include <utility>

#include "src/base/text.h"

namespace hv::launcher {

namespace asio = boost::asio;

struct LoginLimiter::Gate {
  struct Waiter {
    Waiter(const asio::any_io_executor& executor, Gate& its_gate)
        : wake(executor, TimePoint::max()), gate(its_gate) {
      gate.waiting.push_back(this);
    }
    ~Waiter() { gate.waiting.remove(this); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    asio::steady_timer wake;  // cancelled when it is let in, and at its deadline
    Gate& gate;
    bool is_let_in = false;
  };

  // The first login that waits replaces one that has ended.
  void end_login() {
    if (waiting.empty()) {
      --logins;
      return;
    }
    waiting.front()->is_let_in = true;
    waiting.front()->wake.cancel();
    waiting.pop_front();
  }

  int logins = 0;
  std::list<Waiter*> waiting;
};

namespace {

class CountedLogin : public LoginLimiter::Permit {
 public:
  CountedLogin(const asio::any_io_executor& executor, Duration longest, std::function<void()> end)
      : end_(std::make_shared<std::function<void()>>(std::move(end))), longest_(executor, longest) {
    longest_.async_wait([end = end_](const boost::system::error_code& error) {
      if (!error) end_once(*end);
    });
  }
  ~CountedLogin() override { release(); }
  CountedLogin(const CountedLogin&) = delete;
  CountedLogin& operator=(const CountedLogin&) = delete;
  void release() override {
    longest_.cancel();
    end_once(*end_);
  }

 private:
  static void end_once(std::function<void()>& end) {
    if (const auto call = std::exchange(end, nullptr)) call();
  }

  std::shared_ptr<std::function<void()>> end_;  // shared with the timer's handler
  asio::steady_timer longest_;
};

}  // namespace

asio::awaitable<std::shared_ptr<LoginLimiter::Permit>> LoginLimiter::acquire(
    std::string gate, std::string host, StartDeadline& deadline) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  std::shared_ptr<Gate>& at = gates_[gate];
  if (!at) at = std::make_shared<Gate>();
  const std::shared_ptr<Gate> state = at;
  const auto admit = [this, &executor, &state] {
    return std::make_shared<CountedLogin>(executor, longest_login_,
                                          [state] { state->end_login(); });
  };
  if (state->logins < kMostAtOnce) {
    ++state->logins;
    co_return admit();
  }
  Gate::Waiter waiter(executor, *state);
  {
    const auto phase = deadline.enter(
        "log in to host " + host + ": wait for other logins through " + printable(gate) + " (" +
            std::to_string(kMostAtOnce) + " at once)",
        "raise --start-timeout, or see why logins through " + printable(gate) + " are slow",
        [&waiter] { waiter.wake.cancel(); });
    boost::system::error_code ignored;
    co_await waiter.wake.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  std::shared_ptr<Permit> permit;
  if (waiter.is_let_in) permit = admit();  // also past the deadline: the next one gets the place
  deadline.throw_if_passed();
  co_return permit;
}

}  // namespace hv::launcher
