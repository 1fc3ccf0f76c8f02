// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/connect.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <list>
#include <memory>
#include <optional>

#include "launcher/spawn/late_hosts.h"
#include "launcher/spawn/ssh/ssh_advice.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr auto kNextAddress = std::chrono::milliseconds(250);

// Shared with the handlers of the attempts.
class Race : public std::enable_shared_from_this<Race> {
 public:
  Race(asio::any_io_executor executor, std::vector<SocketAddress> addresses)
      : executor_(executor), change_(executor), addresses_(std::move(addresses)) {}

  // Until one address has answered or all have failed, or cancel().
  asio::awaitable<void> run() {
    TimePoint next_start = now();
    while (!winner && !cancelled_ && (running_ > 0 || next_ < addresses_.size())) {
      if (next_ < addresses_.size() && (running_ == 0 || now() >= next_start)) {
        next_start = now() + kNextAddress;
        start_attempt(addresses_[next_++]);
        continue;
      }
      boost::system::error_code ignored;
      change_.expires_at(next_ < addresses_.size() ? next_start : TimePoint::max());
      co_await change_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    close_all();
  }

  void cancel() {
    cancelled_ = true;
    close_all();
    change_.cancel();
  }

  std::optional<Connection> winner;
  std::vector<std::string> reasons;
  int last_error = 0;

 private:
  void start_attempt(const SocketAddress& address) {
    UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return fail(address, errno);
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(socket.get(), address.raw(), address.size()) != 0 && errno != EINPROGRESS)
      return fail(address, errno);
    ++running_;
    auto& attempt = attempts_.emplace_back(executor_);
    attempt.assign(socket.release());
    await_outcome(attempt, address);
  }

  void await_outcome(asio::posix::stream_descriptor& attempt, const SocketAddress& address) {
    attempt.async_wait(
        asio::posix::descriptor_base::wait_write,
        [self = shared_from_this(), &attempt, address](const boost::system::error_code& error) {
          if (!error && !self->cancelled_) self->finish_attempt(attempt, address);
        });
  }

  void finish_attempt(asio::posix::stream_descriptor& attempt, const SocketAddress& address) {
    // The event may have been meant for the descriptor that had this number before.
    pollfd state{attempt.native_handle(), POLLOUT, 0};
    if (::poll(&state, 1, 0) == 0) return await_outcome(attempt, address);
    --running_;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(attempt.native_handle(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0)
      fail(address, error);
    else if (!winner)
      winner = Connection{UniqueFd(attempt.release()), address};
    change_.cancel();
  }

  void fail(const SocketAddress& address, int error) {
    last_error = error;
    reasons.push_back(address.text() + ": " + errno_text(error));
  }

  void close_all() {
    boost::system::error_code ignored;
    for (auto& attempt : attempts_) attempt.close(ignored);
  }

  asio::any_io_executor executor_;
  asio::steady_timer change_;
  std::vector<SocketAddress> addresses_;
  std::list<asio::posix::stream_descriptor> attempts_;
  std::size_t next_ = 0;
  int running_ = 0;
  bool cancelled_ = false;
};

std::string list_addresses(const std::vector<SocketAddress>& addresses) {
  std::vector<std::string> texts;
  for (const SocketAddress& address : addresses) texts.push_back(address.text());
  return join(texts, ", ");
}

}  // namespace

asio::awaitable<Connection> connect_first(std::string host, std::vector<SocketAddress> addresses,
                                          StartDeadline& deadline) {
  const auto race = std::make_shared<Race>(co_await asio::this_coro::executor, addresses);
  const auto phase =
      deadline.enter("connect to host " + host + " (" + list_addresses(addresses) + ")",
                     connect_advice(ETIMEDOUT, host), [race] { race->cancel(); });
  co_await race->run();
  deadline.throw_if_passed();
  if (race->winner) co_return std::move(*race->winner);
  throw NotThereYet(Error(ErrorKind::kStart,
                          "connect to host " + host + ": " + join(race->reasons, "; "),
                          connect_advice(race->last_error, host)));
}

}  // namespace hv::launcher
