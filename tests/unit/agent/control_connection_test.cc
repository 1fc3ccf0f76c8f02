// Tests of how an agent that srun has started finds its hvrun, and of the stream between them.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/control_connection.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

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

UniqueFd accept_one(int listener) {
  pollfd wait{listener, POLLIN, 0};
  return UniqueFd(::poll(&wait, 1, 10000) == 1 ? ::accept(listener, nullptr, nullptr) : -1);
}

std::string read_greeting(int guest) {
  std::string words(kGreetingBytes, '\0');
  return read_exactly(guest, words.data(), words.size(), kLong).ok() ? words : "";
}

// The rest of hvrun's side.
void answer(int guest, const std::string& greeting, const JobKey& key) {
  std::string proof(kProofBytes, '\0');
  const std::string answer = answer_greeting(key, *decode_greeting(greeting), random_nonce());
  (void)send_all(guest, answer.data(), answer.size(), kLong);
  (void)read_exactly(guest, proof.data(), proof.size(), kLong);
}

// Answers the first connection as hvrun does.
void answer_one(int listener, const JobKey& key) {
  const UniqueFd guest = accept_one(listener);
  const std::string greeting = read_greeting(guest.get());
  if (!greeting.empty()) answer(guest.get(), greeting, key);
}

struct Listener {
  UniqueFd socket;
  std::uint16_t port = 0;
  Listener() { REQUIRE(listen_tcp(0, &socket, &port).ok()); }
  SocketAddress address() const { return *SocketAddress::parse("127.0.0.1", port); }
};

// Its queue of connections is full, so that its kernel drops packets that ask for another.
struct BlackHole : Listener {
  std::vector<UniqueFd> guests;
  BlackHole() {
    REQUIRE(::listen(socket.get(), 0) == 0);
    for (int i = 0; i < 3; ++i) REQUIRE(start_connect(address(), &guests.emplace_back()).ok());
    pollfd wait{guests.back().get(), POLLOUT, 0};
    REQUIRE(::poll(&wait, 1, 0) == 0);
  }
};

const ConnectWait kWait{kLong, -1};

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
  const Listener listener;
  const SocketAddress here = listener.address();
  // A port that was just given up.
  UniqueFd other;
  std::uint16_t closed_port = 0;
  REQUIRE(hold_tcp_port(0, &other, &closed_port).ok());
  const auto closed = *SocketAddress::parse("127.0.0.1", closed_port);
  ControlConnection connection;
  {
    std::thread hvrun([&] { answer_one(listener.socket.get(), key); });
    const Status status = connect_to_hvrun({closed, here}, "node1", key, kWait, &connection);
    hvrun.join();
    CHECK(status.ok());
    CHECK(connection.socket);
  }
  std::thread stranger([&] { answer_one(listener.socket.get(), random_key()); });
  const Status status = connect_to_hvrun({closed, here}, "node1", key, kWait, &connection);
  stranger.join();
  CHECK(status.message.find(here.text() + ": who answers there is not the hvrun") !=
        std::string::npos);
  CHECK(status.message.find(closed.text()) != std::string::npos);
  CHECK(status.message.find("Connection refused") != std::string::npos);
}

TEST_CASE("addresses that swallow packets or never answer cost the agent no time") {
  const JobKey key = random_key();
  const Listener hvrun, silent;
  const BlackHole hole;
  bool is_silent_awaited = false;
  std::thread answers([&] {
    const UniqueFd unanswered = accept_one(silent.socket.get());
    const std::string ignored = read_greeting(unanswered.get());
    const UniqueFd guest = accept_one(hvrun.socket.get());
    const std::string greeting = read_greeting(guest.get());
    // The agent still waits for the other one, too.
    pollfd end{unanswered.get(), POLLRDHUP, 0};
    is_silent_awaited = !ignored.empty() && ::poll(&end, 1, 0) == 0;
    if (!greeting.empty()) answer(guest.get(), greeting, key);
  });
  ControlConnection connection;
  const Status status =
      connect_to_hvrun({hole.address(), silent.address(), hvrun.address(), silent.address()},
                       "node1", key, kWait, &connection);
  answers.join();
  CHECK_MESSAGE(status.ok(), status.message);
  CHECK(is_silent_awaited);
}

TEST_CASE("an address that swallows packets is given up in time and named") {
  const BlackHole hole;
  const Pipe pipe;  // open: hvrun may live
  ControlConnection connection;
  const ConnectWait wait{std::chrono::milliseconds(20), pipe.read_end.get()};
  const Status status =
      connect_to_hvrun({hole.address()}, "node1", random_key(), wait, &connection);
  CHECK(status.message == "connect to hvrun: " + hole.address().text() + ": no answer in time");
}

TEST_CASE("the agent waits for a stopped hvrun, whose kernel accepts connections for it") {
  const JobKey key = random_key();
  const Listener listener;
  Pipe pipe;
  const ConnectWait wait{std::chrono::milliseconds(20), pipe.read_end.get()};
  ControlConnection connection;
  SUBCASE("as long as it lives") {
    std::thread hvrun([&] {
      const UniqueFd guest = accept_one(listener.socket.get());
      const std::string greeting = read_greeting(guest.get());
      (void)::poll(nullptr, 0, 100);  // stopped for longer than to_connect
      if (!greeting.empty()) answer(guest.get(), greeting, key);
    });
    const Status status = connect_to_hvrun({listener.address()}, "node1", key, wait, &connection);
    hvrun.join();
    CHECK_MESSAGE(status.ok(), status.message);
  }
  SUBCASE("not when it is gone") {
    std::thread hvrun([&] {
      const UniqueFd guest = accept_one(listener.socket.get());
      (void)read_greeting(guest.get());
      pipe.write_end.reset();
      pollfd end{guest.get(), POLLRDHUP, 0};
      (void)::poll(&end, 1, 10000);
    });
    const Status status = connect_to_hvrun({listener.address()}, "node1", key, wait, &connection);
    hvrun.join();
    CHECK(status.message ==
          "connect to hvrun: " + listener.address().text() + ": no answer in time");
  }
}

TEST_CASE("an agent whose connection is closed before the proof tries again") {
  const JobKey key = random_key();
  const Listener listener;
  const std::vector<SocketAddress> here{listener.address()};
  const auto turn_away = [&listener] { accept_one(listener.socket.get()); };
  ControlConnection connection;
  SUBCASE("and comes in once there is room") {
    std::thread hvrun([&] {
      turn_away();
      answer_one(listener.socket.get(), key);
    });
    CHECK(connect_to_hvrun(here, "node1", key, kWait, &connection).ok());
    hvrun.join();
  }
  SUBCASE("but not beyond its time") {
    std::thread hvrun(turn_away);
    const TimePoint begun = now();
    const ConnectWait wait{std::chrono::milliseconds(100), -1};
    CHECK_FALSE(connect_to_hvrun(here, "node1", key, wait, &connection).ok());
    CHECK(now() < begun + kLong);
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
