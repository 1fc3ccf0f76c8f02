// Tests of how an agent that srun has started finds its hvrun, and of the stream between them.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/control_connection.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "launcher/agent/agent_options.h"
#include "launcher/agent/hvrun_stream.h"
#include "src/net/socket.h"
#include "src/wire/sealed_stream.h"

using namespace hv;
using namespace hv::launcher;

namespace {

constexpr auto kLong = std::chrono::seconds(10);

struct Pipe {
  UniqueFd read_end, write_end;
  Pipe() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
  void put(const std::string& bytes) {
    REQUIRE(::write(write_end.get(), bytes.data(), bytes.size()) ==
            static_cast<ssize_t>(bytes.size()));
  }
};

std::string reason_of(const std::string& line) {
  Pipe pipe;
  pipe.put(line);
  pipe.write_end.reset();
  JobKey key;
  return read_key(pipe.read_end.get(), now() + kLong, &key).message;
}

// Answers the first connection as hvrun does.
void answer_one(int listener, const JobKey& key) {
  pollfd wait{listener, POLLIN, 0};
  if (::poll(&wait, 1, 10000) != 1) return;
  const UniqueFd guest(::accept(listener, nullptr, nullptr));
  std::string words(kGreetingBytes, '\0'), proof(kProofBytes, '\0');
  if (!read_exactly(guest.get(), words.data(), words.size(), kLong).ok()) return;
  const std::string answer = answer_greeting(key, *decode_greeting(words), random_nonce());
  (void)send_all(guest.get(), answer.data(), answer.size(), kLong);
  (void)read_exactly(guest.get(), proof.data(), proof.size(), kLong);
}

}  // namespace

TEST_CASE("the agent refuses every option that is not its own") {
  const auto given = [](std::vector<std::string> words) { return parse_agent_options(words); };
  CHECK(given({})->hvrun.empty());
  CHECK(given({"--version"})->shows_version);
  const auto both = given({"--connect", "10.0.0.1:5,[fd00::1]:6", "--step", "s1", "--remove-self"});
  REQUIRE(both);
  CHECK(both->removes_itself);
  CHECK(both->step == "s1");
  REQUIRE(both->hvrun.size() == 2);
  CHECK(both->hvrun[0].text() == "10.0.0.1:5");
  CHECK(both->hvrun[1].text() == "[fd00::1]:6");
  CHECK_FALSE(given({})->lost_after);
  CHECK(given({"--lost-after", "0.5"})->lost_after == std::chrono::milliseconds(500));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--other"},
                                                {"--lost-after"},
                                                {"--lost-after", "soon"},
                                                {"--connect"},
                                                {"--connect", ""},
                                                {"--connect", "host:5"},
                                                {"--connect", "10.0.0.1"},
                                                {"--connect", "10.0.0.1:0"},
                                                {"--connect", "10.0.0.1:65536"},
                                                {"--connect", "10.0.0.1:5,"},
                                                {"--version", "x"}})
    CHECK_FALSE(given(words));
}

TEST_CASE("the key is one line, however it is split, and no byte after it is read") {
  const JobKey key = random_key();
  Pipe pipe;
  std::thread writer([&] {
    const std::string line = key_as_text(key) + "\nmore";
    for (const char byte : line) pipe.put(std::string(1, byte));
  });
  JobKey read;
  CHECK(read_key(pipe.read_end.get(), now() + kLong, &read).ok());
  writer.join();
  CHECK(key_as_text(read) == key_as_text(key));
  char rest[8];
  CHECK(::read(pipe.read_end.get(), rest, sizeof rest) == 4);
}

TEST_CASE("a malformed key is refused, and a missing key is waited for until the deadline") {
  CHECK(reason_of("").find("it ended") != std::string::npos);
  CHECK(reason_of(std::string(64, 'x') + "\n").find("it is none") != std::string::npos);
  CHECK(reason_of(std::string(65, 'a')).find("it is none") != std::string::npos);
  Pipe silent;
  JobKey key;
  const Status status =
      read_key(silent.read_end.get(), now() + std::chrono::milliseconds(20), &key);
  CHECK(status.message.find("in time") != std::string::npos);
}

TEST_CASE("the agent connects to a peer that has the key, and reports peers without it") {
  const JobKey key = random_key();
  UniqueFd listener;
  std::uint16_t port = 0;
  REQUIRE(listen_tcp(0, &listener, &port).ok());
  const auto here = *SocketAddress::parse("127.0.0.1", port);
  // A port that was just given up.
  UniqueFd other;
  std::uint16_t closed_port = 0;
  REQUIRE(hold_tcp_port(0, &other, &closed_port).ok());
  const auto closed = *SocketAddress::parse("127.0.0.1", closed_port);
  ControlConnection connection;
  {
    std::thread hvrun([&] { answer_one(listener.get(), key); });
    const Status status =
        connect_to_hvrun({closed, here}, "node1", key, now() + kLong, &connection);
    hvrun.join();
    CHECK(status.ok());
    CHECK(connection.socket);
  }
  std::thread stranger([&] { answer_one(listener.get(), random_key()); });
  const Status status = connect_to_hvrun({closed, here}, "node1", key, now() + kLong, &connection);
  stranger.join();
  CHECK(status.message.find(here.text() + ": who answers there is not the hvrun") !=
        std::string::npos);
  CHECK(status.message.find(closed.text()) != std::string::npos);
  CHECK(status.message.find("Connection refused") != std::string::npos);
}

TEST_CASE("an agent whose connection is closed before the proof tries again") {
  const JobKey key = random_key();
  UniqueFd listener;
  std::uint16_t port = 0;
  REQUIRE(listen_tcp(0, &listener, &port).ok());
  const std::vector<SocketAddress> here{*SocketAddress::parse("127.0.0.1", port)};
  const auto turn_away = [&listener] {
    pollfd wait{listener.get(), POLLIN, 0};
    if (::poll(&wait, 1, 10000) == 1) UniqueFd(::accept(listener.get(), nullptr, nullptr));
  };
  ControlConnection connection;
  SUBCASE("and comes in once there is room") {
    std::thread hvrun([&] {
      turn_away();
      answer_one(listener.get(), key);
    });
    CHECK(connect_to_hvrun(here, "node1", key, now() + kLong, &connection).ok());
    hvrun.join();
  }
  SUBCASE("but not beyond its time") {
    std::thread hvrun(turn_away);
    const auto deadline = now() + std::chrono::milliseconds(100);
    CHECK_FALSE(connect_to_hvrun(here, "node1", key, deadline, &connection).ok());
    CHECK(now() < deadline + kLong);
    hvrun.join();
  }
}

TEST_CASE("a sealed stream carries all bytes both ways, however slowly the other end takes them") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  UniqueFd theirs(ends[1]);
  const ControlKeys keys{random_key(), random_key()};
  auto stream = sealed_stream(UniqueFd(ends[0]), keys);
  std::string sent(3 << 20, '\0');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 2654435761u >> 13);
  std::string opened, arrived, reason;
  Opener opener(keys.to_hvrun);
  std::size_t taken = 0;
  while (opened.size() < sent.size()) {
    iovec pieces[2] = {{sent.data() + taken, (sent.size() - taken) / 2}, {}};
    pieces[1] = {sent.data() + taken + pieces[0].iov_len, sent.size() - taken - pieces[0].iov_len};
    const ssize_t wrote = stream->write(pieces, 2, true);
    REQUIRE(wrote >= 0);
    taken += static_cast<std::size_t>(wrote);
    char buffer[10000];
    const ssize_t got = ::recv(theirs.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) REQUIRE(opener.open({buffer, static_cast<std::size_t>(got)}, &opened));
  }
  CHECK((opened == sent));
  CHECK_FALSE(stream->has_unsent());
  std::string sealed;
  Sealer(keys.to_agent).seal("answer", &sealed);
  REQUIRE(send_all(theirs.get(), sealed.data(), sealed.size(), kLong).ok());
  CHECK(stream->read(&arrived, &reason));
  CHECK(arrived == "answer");
  REQUIRE(send_all(theirs.get(), sealed.data(), sealed.size(), kLong).ok());
  CHECK_FALSE(stream->read(&arrived, &reason));
  CHECK(reason.find("changed on its way") != std::string::npos);
  CHECK(arrived == "answer");
}
