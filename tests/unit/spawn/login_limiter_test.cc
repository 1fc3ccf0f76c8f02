// At most so many logins at once through one gate, in their order.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/login_limiter.h"

#include <boost/asio/this_coro.hpp>

#include "launcher/spawn/late_hosts.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;
using namespace std::chrono_literals;

namespace {

using PermitPointer = std::shared_ptr<LoginLimiter::Permit>;

struct Logins {
  explicit Logins(Duration longest_login = 1h) : limiter(longest_login) {}

  asio::io_context io;
  LoginLimiter limiter;
  std::vector<PermitPointer> permits;
  std::vector<std::string> hosts, errors;  // let in; too late

  void ask(const std::string& gate, const std::string& host, Duration timeout = 1h) {
    asio::co_spawn(io, wait(gate, host, timeout), asio::detached);
    io.poll();
  }

  asio::awaitable<void> wait(std::string gate, std::string host, Duration timeout) {
    StartDeadline deadline(co_await asio::this_coro::executor, timeout);
    try {
      permits.push_back(co_await limiter.acquire(gate, host, deadline));
      hosts.push_back(host);
    } catch (const Error& error) {
      errors.push_back(error.what());
    }
  }
};

}  // namespace

TEST_CASE("eight logins are let in at once through one gate, and the next when one has ended") {
  Logins logins;
  for (int i = 0; i < 11; ++i) logins.ask("gate", "w" + std::to_string(i));
  CHECK(logins.hosts.size() == LoginLimiter::kMostAtOnce);
  CHECK(LoginLimiter::kMostAtOnce == 8);
  logins.ask("other", "x");
  CHECK(logins.hosts.back() == "x");  // another gate is free
  logins.permits[3]->release();
  logins.permits[3]->release();  // no effect
  logins.io.poll();
  CHECK(logins.hosts.size() == 10);
  CHECK(logins.hosts.back() == "w8");
  logins.permits[0].reset();
  logins.io.poll();
  CHECK(logins.hosts.back() == "w9");
}

TEST_CASE("a login that waits for others until its deadline is an error that names the gate") {
  Logins logins;
  for (int i = 0; i < 8; ++i) logins.ask("gate", "w");
  logins.ask("gate", "late", 50ms);
  logins.ask("gate", "patient");
  while (logins.errors.empty()) REQUIRE(logins.io.run_one() > 0);
  CHECK(contains(logins.errors[0], "log in to host late: wait for other logins through gate"));
  CHECK(contains(logins.errors[0], "--start-timeout"));
  logins.permits[0].reset();
  logins.io.poll();
  CHECK(logins.hosts.back() == "patient");
}

TEST_CASE("logins that take very long do not keep others waiting") {
  Logins logins(10ms);
  for (int i = 0; i < 9; ++i) logins.ask("gate", "w" + std::to_string(i));
  CHECK(logins.hosts.size() == 8);
  while (logins.hosts.size() < 9) REQUIRE(logins.io.run_one() > 0);
  CHECK(logins.errors.empty());
}

TEST_CASE("a login that is refused is tried again, also where no host may come late") {
  asio::io_context io;
  LateHosts late;
  int attempts = 0;
  const LateHosts::Attempt attempt =
      [&attempts]() -> asio::awaitable<std::unique_ptr<AgentChannel>> {
    if (++attempts < 3) throw LoginRefused(Error(ErrorKind::kStart, "log in", "MaxStartups"));
    throw NotThereYet(Error(ErrorKind::kStart, "no longer there", "look"));
    co_return nullptr;
  };
  const auto start = [&]() -> asio::awaitable<std::unique_ptr<AgentChannel>> {
    StartDeadline deadline(co_await asio::this_coro::executor, 1h);
    co_return co_await late.start_when_there("b", false, deadline, attempt);
  };
  CHECK_THROWS_WITH_AS((void)run(io, start()), "no longer there", Error);
  CHECK(attempts == 3);
}
