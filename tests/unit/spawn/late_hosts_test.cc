// Hosts that are awaited, as they are told to the user.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/late_hosts.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "src/base/log.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> lines;  // of the log

// The log with --verbose, so that who is awaited is told at once.
struct VerboseLog {
  VerboseLog() {
    lines.clear();
    set_log_sink([](const std::string& line) { lines.push_back(line); });
    configure_log(LogLevel::kInfo, "hvrun");
  }
  ~VerboseLog() {
    configure_log(LogLevel::kWarn, "hvrun");
    set_log_sink(nullptr);
  }
};

asio::awaitable<std::unique_ptr<AgentChannel>> not_there(std::string host) {
  throw NotThereYet(Error(ErrorKind::kStart, "find " + host, "wait"));
  co_return nullptr;
}

// Awaits it until the deadline.
void await_host(asio::io_context& io, LateHosts& late, const std::string& host, Duration timeout) {
  const auto wait = [](LateHosts& hosts, std::string name,
                       Duration limit) -> asio::awaitable<void> {
    StartDeadline deadline(co_await asio::this_coro::executor, limit);
    const LateHosts::Attempt attempt = [name] { return not_there(name); };
    try {
      (void)co_await hosts.start_when_there(name, true, deadline, attempt);
    } catch (const Error&) {
    }
  };
  asio::co_spawn(io, wait(late, host, timeout), asio::detached);
}

}  // namespace

TEST_CASE("hosts that are awaited are named together, and one that comes later is told later") {
  const VerboseLog log;
  asio::io_context io;
  LateHosts late;
  for (int i = 0; i < 10; ++i) await_host(io, late, "w-" + std::to_string(i), 1200ms);
  asio::steady_timer later(io, 400ms);
  later.async_wait([&](const boost::system::error_code&) { await_host(io, late, "x", 800ms); });
  io.run();
  REQUIRE(lines.size() == 2);
  CHECK(contains(lines[0], "waiting for w-[0-9] (10 hosts): find w-0"));
  CHECK(contains(lines[1], "waiting for x: find x"));
}
