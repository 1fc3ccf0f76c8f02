// An ssh-agent that waits for its user delays nobody but the host that wants its signature.
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <list>
#include <thread>

#include "launcher/spawn/ssh/ssh_agent.h"
#include "tests/unit/spawn/ssh_world.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

std::string word(std::size_t value) {
  std::string text(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) text[i] = static_cast<char>(value >> (24 - 8 * i));
  return text;
}
std::string string_of(const std::string& text) { return word(text.size()) + text; }

std::string decode_base64(const std::string& text) {
  std::string bytes;
  unsigned group = 0;
  int bits = 0;
  for (const char c : text) {
    unsigned digit = 0;
    for (; digit < 64 && base64(std::string(1, static_cast<char>(digit << 2)))[0] != c; ++digit) {
    }
    if (digit == 64) break;
    group = group << 6 | digit;
    if ((bits += 6) >= 8) bytes += static_cast<char>(group >> (bits -= 8));
  }
  return bytes;
}

// Lists one key, and never answers when it is asked to sign. Hangs up at its end, or after a while.
class SilentAgent {
 public:
  static constexpr auto kPatience = std::chrono::seconds(20);

  SilentAgent(const TemporaryFolder& folder, const std::string& public_key)
      : path(folder / "silent-agent"), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::string blob = decode_base64(split(public_key, ' ').at(1));
    answer_ = string_of(std::string(1, 12) + word(1) + string_of(blob) + string_of("ada@lab"));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_.get(), 8) == 0);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~SilentAgent() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    accepting_.join();
    for (Talk& talk : talks_) {
      ::shutdown(talk.peer.get(), SHUT_RDWR);
      talk.thread.join();
    }
  }
  bool was_asked_to_sign() const { return asked_to_sign_; }
  const std::string path;

 private:
  struct Talk {
    UniqueFd peer;
    std::thread thread;
  };
  void accept_all() {
    for (;;) {
      UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer) return;
      const timeval patience{std::chrono::seconds(kPatience).count(), 0};
      ::setsockopt(peer.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      Talk& talk = talks_.emplace_back();
      talk.peer = std::move(peer);
      talk.thread = std::thread([this, fd = talk.peer.get()] { answer(fd); });
    }
  }
  void answer(int fd) {
    char length[4], type = 0;
    while (::recv(fd, length, sizeof length, MSG_WAITALL) == 4 && ::recv(fd, &type, 1, 0) == 1) {
      if (type == 13) {
        asked_to_sign_ = true;
        std::string rest(64 << 10, '\0');
        while (::recv(fd, rest.data(), rest.size(), 0) > 0) {
        }
        break;
      }
      if (::send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL) < 0) break;
    }
    ::shutdown(fd, SHUT_RDWR);
  }

  UniqueFd listener_;
  std::string answer_;
  std::atomic<bool> asked_to_sign_{false};
  std::list<Talk> talks_;  // grown by the accepting thread only
  std::thread accepting_;
};

}  // namespace

TEST_CASE("an ssh-agent that never signs delays its host only, which times out with words") {
  SshWorld world;
  const SilentAgent agent(world.folder, file_content(world.folder / "user_key.pub"));
  SpawnOptions options = world.options();
  options.environment.set("SSH_AUTH_SOCK", agent.path);
  options.start_timeout = std::chrono::seconds(6);
  write_file(world.folder / "ssh_config", "Host *\n  UserKnownHostsFile " +
                                              world.folder / "known_hosts" +
                                              "\n  GlobalKnownHostsFile none\n  IdentityFile " +
                                              world.folder / "no_such_key" + "\n");
  HostTarget by_file = world.target();
  by_file.identity_file = world.folder / "user_key";
  asio::io_context io;
  const auto spawner = make_spawner(options);
  std::string trouble, hint;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        try {
          (void)co_await spawner->start(world.target());
        } catch (const Error& error) {
          CHECK(error.kind() == ErrorKind::kTimeout);
          trouble = error.what();
          hint = error.hint();
        }
      },
      asio::detached);
  const TimePoint deadline = now() + std::chrono::seconds(5);
  while (!agent.was_asked_to_sign() && now() < deadline)
    io.run_one_for(std::chrono::milliseconds(20));
  REQUIRE(agent.was_asked_to_sign());

  const auto channel = run(io, spawner->start(by_file));
  CHECK(run(io, read_exactly(*channel, 5)) == "HELLO");
  CHECK(trouble == "");  // the other one still waits
  io.restart();
  while (trouble.empty() && io.run_one() > 0) {
  }
  CHECK(contains(trouble, "log in to host 127.0.0.1"));
  CHECK(contains(trouble, "not done within 6 s"));
  CHECK(contains(hint, "ssh-agent waits for you"));
}
