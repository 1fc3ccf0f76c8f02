// Names and connections: a dead name or a silent address holds up nobody but itself.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "launcher/spawn/connect.h"
#include "launcher/spawn/resolve.h"
#include "launcher/spawn/ssh/ssh_agent.h"
#include "src/net/interfaces.h"
#include "src/net/socket.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

constexpr auto kNextAddress = std::chrono::milliseconds(250);  // as connect.h says

// A name service that answers for "slow" only when told to.
struct NameService {
  std::mutex mutex;  // guards open
  std::condition_variable change;
  bool open = false;

  ResolveFunction function() {
    return [this](const std::string& name, std::uint16_t port, int) -> Resolution {
      if (name == "dead") return {{}, "no such name"};
      std::unique_lock lock(mutex);
      if (name == "slow") change.wait(lock, [this] { return open; });
      return {{*SocketAddress::parse("127.0.0.1", port)}, ""};
    };
  }
  void release() {
    const std::lock_guard lock(mutex);
    open = true;
    change.notify_all();
  }
};

asio::awaitable<std::string> look_up(std::string name, Duration timeout, ResolveFunction function) {
  StartDeadline deadline(co_await asio::this_coro::executor, timeout);
  ResolveQuery query{name, name, 22, AF_UNSPEC};
  try {
    const auto addresses = co_await resolve(std::move(query), deadline, std::move(function));
    co_return addresses.at(0).text();
  } catch (const Error& error) {
    co_return std::string(error.kind() == ErrorKind::kTimeout ? "timeout: " : "error: ") +
        error.what();
  }
}

asio::awaitable<std::string> try_connect(std::vector<SocketAddress> addresses, Duration timeout) {
  StartDeadline deadline(co_await asio::this_coro::executor, timeout);
  try {
    const Connection connection = co_await connect_first("b", std::move(addresses), deadline);
    co_return connection.address.text();
  } catch (const Error& error) {
    co_return std::string(error.kind() == ErrorKind::kTimeout ? "timeout: " : "error: ") +
        error.what() + " | " + error.hint();
  }
}

struct Listener {
  Listener() { REQUIRE(listen_tcp(0, &socket, &port).ok()); }
  SocketAddress address(const std::string& ip = "127.0.0.1") const {
    return *SocketAddress::parse(ip, port);
  }
  UniqueFd socket;
  std::uint16_t port = 0;
};

}  // namespace

TEST_CASE("the addresses of many names, without those that are unknown or answer too late") {
  static auto* const service = new NameService;  // its thread may outlive the test
  NameService& names = *service;
  CHECK(resolve_all({"a", "dead", "b"}, std::chrono::minutes(1), names.function()) ==
        std::vector<std::vector<std::string>>{{"127.0.0.1"}, {}, {"127.0.0.1"}});
  CHECK(resolve_all({"slow"}, std::chrono::milliseconds(1), names.function()).at(0).empty());
  names.release();
  CHECK(resolve_all({"slow"}, std::chrono::minutes(1), names.function()).at(0).size() == 1);
  CHECK(resolve_all(std::vector<std::string>(100, "a"), std::chrono::minutes(1), names.function())
            .at(99)
            .size() == 1);
  CHECK(resolve_all({}, std::chrono::minutes(1), names.function()).empty());
}

TEST_CASE("names of this machine have an address in common, and keep their own") {
  const ResolveFunction look_up = [](const std::string& name, std::uint16_t, int) -> Resolution {
    if (name == "trainer") return {{*SocketAddress::parse("127.0.1.1", 22)}, ""};
    if (name == "gpu.west") return {{*SocketAddress::parse("203.0.113.5", 22)}, ""};
    return {{}, "no such name"};
  };
  using Names = std::vector<std::string>;
  const auto found =
      resolve_or_own({"localhost", "trainer", "gpu.east", "gpu.west", "other", own_hostname()},
                     std::chrono::minutes(1), "gpu", look_up);
  CHECK(found[0] == Names{"this machine"});
  CHECK(found[1] == Names{"127.0.1.1", "this machine"});
  CHECK(found[2] == Names{"this machine"});
  CHECK(found[3] == Names{"203.0.113.5"});
  CHECK(found[4].empty());
  CHECK(found[5] == Names{"this machine"});
}

TEST_CASE("a name that is never answered delays no other, and times out alone") {
  static auto* const service = new NameService;  // its thread may outlive the test
  asio::io_context io;
  std::vector<std::string> order;
  for (const std::string name : {"slow", "good", "dead", "10.0.0.7"}) {
    asio::co_spawn(
        io,
        look_up(name, std::chrono::milliseconds(name == "slow" ? 400 : 20000), service->function()),
        [&order, name](std::exception_ptr, std::string answer) {
          order.push_back(name + " " + answer);
        });
  }
  io.run();
  REQUIRE(order.size() == 4);
  CHECK(order[3] ==
        "slow timeout: find the address of host slow: not done within 0.4 s (--start-timeout)");
  std::sort(order.begin(), order.end());
  CHECK(order[0] == "10.0.0.7 10.0.0.7:22");
  CHECK(order[1] == "dead error: find the address of host dead: no such name");
  CHECK(order[2] == "good 127.0.0.1:22");
  service->release();
}

TEST_CASE("a look-up whose asker is gone ends quietly") {
  static auto* const service = new NameService;  // its thread may outlive the test
  {
    asio::io_context io;
    asio::co_spawn(io, look_up("slow", std::chrono::seconds(20), service->function()),
                   asio::detached);
    io.poll();
  }
  service->release();
}

TEST_CASE("the system's resolver knows this machine and no invalid name") {
  CHECK_FALSE(resolve_by_system("localhost", 22, AF_UNSPEC).addresses.empty());
  const Resolution unknown = resolve_by_system("no-such-host.invalid", 22, AF_UNSPEC);
  CHECK(unknown.addresses.empty());
  CHECK_FALSE(unknown.reason.empty());
}

TEST_CASE("the first address that answers wins") {
  asio::io_context io;
  const Listener good;
  CHECK(run(io, try_connect({good.address()}, std::chrono::seconds(5))) == good.address().text());
  // Nobody listens on the first: refused at once, and the second is tried without waiting.
  const SocketAddress refused = *SocketAddress::parse("127.0.0.2", 1);
  Duration least = Duration::max();  // of some tries, for the machine may be busy
  for (int round = 0; round < 20 && least >= kNextAddress; ++round) {
    const TimePoint start = now();
    CHECK(run(io, try_connect({refused, good.address()}, std::chrono::seconds(60))) ==
          good.address().text());
    least = std::min<Duration>(least, now() - start);
  }
  CHECK(least < kNextAddress);
}

TEST_CASE(
    "an address that stays silent does not keep the next one waiting, and alone it times out") {
  asio::io_context io;
  // A listener whose queue is full drops further connection requests.
  UniqueFd full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage raw{};
  socklen_t size = sizeof raw;
  const SocketAddress any = *SocketAddress::parse("127.0.0.1", 0);
  REQUIRE(::bind(full.get(), any.raw(), any.size()) == 0);
  REQUIRE(::listen(full.get(), 0) == 0);
  REQUIRE(::getsockname(full.get(), reinterpret_cast<sockaddr*>(&raw), &size) == 0);
  const SocketAddress silent = SocketAddress::from_raw(reinterpret_cast<sockaddr*>(&raw), size);
  std::vector<UniqueFd> fillers(4);
  for (UniqueFd& filler : fillers) REQUIRE(start_connect(silent, &filler).ok());

  const Listener good;
  CHECK(run(io, try_connect({silent, good.address()}, std::chrono::seconds(5))) ==
        good.address().text());
  const std::string late = run(io, try_connect({silent}, std::chrono::milliseconds(300)));
  CHECK(
      contains(late, "timeout: connect to host b (" + silent.text() + "): not done within 0.3 s"));
  CHECK(contains(late, "firewall"));
}

TEST_CASE("when every address fails each one's reason is told") {
  asio::io_context io;
  const std::string words = run(io, try_connect({*SocketAddress::parse("127.0.0.2", 1),
                                                 *SocketAddress::parse("127.0.0.3", 1)},
                                                std::chrono::seconds(5)));
  CHECK(contains(words, "error: connect to host b: 127.0.0.2:1: "));
  CHECK(contains(words, "; 127.0.0.3:1: "));
  CHECK(contains(words, "refused"));
  CHECK(contains(words, "sshd runs on b"));
}

TEST_CASE("an ssh-agent's answer is read, and nonsense is refused") {
  const auto word = [](const std::string& text) {
    return std::string(3, '\0') + static_cast<char>(text.size()) + text;
  };
  const std::string blob = word("ssh-ed25519") + word("key");
  const std::string answer = std::string("\x0c\0\0\0\1", 5) + word(blob) + word("me@here");
  std::vector<AgentKey> keys;
  REQUIRE(parse_agent_identities(answer, &keys));
  REQUIRE(keys.size() == 1);
  CHECK(keys[0].type == "ssh-ed25519");
  CHECK(keys[0].comment == "me@here");
  for (std::size_t cut = 0; cut < answer.size(); ++cut) {
    keys.clear();
    CHECK_FALSE(parse_agent_identities(answer.substr(0, cut), &keys));
  }
  CHECK_FALSE(parse_agent_identities(std::string("\x0c\xff\xff\xff\xff", 5), &keys));
  CHECK_FALSE(parse_agent_identities(std::string("\x05\0\0\0\0", 5), &keys));
}

TEST_CASE("base64 is RFC 4648's") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("\xff\xfe\xfd\xfc") == "//79/A==");
}
