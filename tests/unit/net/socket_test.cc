// Tests of src/net/socket.
// SPDX-License-Identifier: Apache-2.0
#include "src/net/socket.h"
#include "src/net/interfaces.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>

using namespace std::chrono_literals;

namespace {

// Long enough that only what never comes meets it.
constexpr auto kLong = 60s;

struct Pair {
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    a.reset(ends[0]);
    b.reset(ends[1]);
  }
  hv::UniqueFd a, b;
};

hv::UniqueFd accept_from(const hv::UniqueFd& listener) {
  pollfd ready{listener.get(), POLLIN, 0};
  REQUIRE(::poll(&ready, 1, 60000) == 1);
  return hv::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

bool is_close_on_exec(const hv::UniqueFd& fd) { return ::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC; }
bool is_nonblocking(const hv::UniqueFd& fd) { return ::fcntl(fd.get(), F_GETFL) & O_NONBLOCK; }

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd"), end;
  return std::distance(folder, end);
}

std::string abstract_name() {
  static int number = 0;
  return "@hvrun-net-test-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
}

bool says(const hv::Status& status, const char* words) {
  return !status.ok() && status.message.find(words) != std::string::npos;
}

// While it lives SIGUSR1 interrupts system calls and does nothing else.
struct Interrupting {
  Interrupting() {
    struct sigaction action {};
    action.sa_handler = [](int) {};  // without SA_RESTART
    ::sigaction(SIGUSR1, &action, &before);
  }
  ~Interrupting() { ::sigaction(SIGUSR1, &before, nullptr); }
  struct sigaction before {};
};

// Interrupts a thread that is about to wait, often enough that some signals meet it waiting.
void interrupt(std::thread& thread) {
  for (int i = 0; i < 1000; ++i) {
    ::pthread_kill(thread.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("a TCP listener takes connections over IPv4 and IPv6 on the port it names") {
  hv::UniqueFd listener;
  std::uint16_t port = 0;
  REQUIRE(hv::listen_tcp(0, &listener, &port).ok());
  CHECK(port != 0);
  CHECK(is_nonblocking(listener));
  CHECK(is_close_on_exec(listener));
  for (const std::string& ip : hv::interface_addresses(true)) {
    CAPTURE(ip);
    const auto address = *hv::SocketAddress::parse(ip, port);
    hv::UniqueFd client;
    REQUIRE(hv::start_connect(address, &client).ok());
    CHECK(accept_from(listener));
    CHECK(hv::finish_connect(client.get(), address).ok());
  }
}

TEST_CASE("a connecting socket is not blocking, not inherited and does not delay small messages") {
  hv::UniqueFd listener, client;
  std::uint16_t port = 0;
  REQUIRE(hv::listen_tcp(0, &listener, &port).ok());
  REQUIRE(hv::start_connect(*hv::SocketAddress::parse("127.0.0.1", port), &client).ok());
  CHECK(is_nonblocking(client));
  CHECK(is_close_on_exec(client));
  int no_delay = 0;
  socklen_t size = sizeof no_delay;
  REQUIRE(::getsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &size) == 0);
  CHECK(no_delay != 0);
}

TEST_CASE("a held port lets a program with SO_REUSEADDR bind and listen on it") {
  hv::UniqueFd holder, listener;
  std::uint16_t port = 0, bound = 0;
  REQUIRE(hv::hold_tcp_port(0, &holder, &port).ok());
  REQUIRE(port != 0);
  REQUIRE(hv::listen_tcp(port, &listener, &bound).ok());
  CHECK(bound == port);
}

TEST_CASE("a port on which somebody listens is refused, naming it") {
  hv::UniqueFd listener, other;
  std::uint16_t port = 0, bound = 0;
  REQUIRE(hv::listen_tcp(0, &listener, &port).ok());
  const std::string words = "bind TCP port " + std::to_string(port) + ": Address already in use";
  CHECK(hv::hold_tcp_port(port, &other, &bound).message == words);
  CHECK(hv::listen_tcp(port, &other, &bound).message == words);
  CHECK_FALSE(other);
}

TEST_CASE("a refused connection says by whom") {
  hv::UniqueFd holder, client;
  std::uint16_t port = 0;
  REQUIRE(hv::hold_tcp_port(0, &holder, &port).ok());  // bound, but nobody listens
  const auto address = *hv::SocketAddress::parse("127.0.0.1", port);
  hv::Status status = hv::start_connect(address, &client);
  if (status.ok()) status = hv::finish_connect(client.get(), address);
  CHECK(status.message == "connect to " + address.text() + ": Connection refused");
}

TEST_CASE("a connection whose state cannot be asked for is not taken for a good one") {
  const auto address = *hv::SocketAddress::parse("127.0.0.1", 1);
  CHECK(says(hv::finish_connect(-1, address), "Bad file descriptor"));
  const hv::UniqueFd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK(says(hv::finish_connect(file.get(), address), "connect to 127.0.0.1:1"));
}

TEST_CASE("an address of no family cannot be connected to") {
  hv::UniqueFd client;
  CHECK_FALSE(hv::start_connect(hv::SocketAddress(), &client).ok());
  CHECK_FALSE(client);
}

TEST_CASE("Unix sockets meet by a path or by an abstract name") {
  const std::string path = "/tmp/hvrun-net-test-" + std::to_string(::getpid());
  for (const std::string& name : {path, abstract_name()}) {
    CAPTURE(name);
    hv::UniqueFd listener, client, second;
    CHECK(says(hv::connect_unix(name, &client), name.c_str()));
    REQUIRE(hv::listen_unix(name, &listener).ok());
    CHECK(is_close_on_exec(listener));
    CHECK(std::filesystem::exists(name) == (name == path));
    CHECK(says(hv::listen_unix(name, &second), "Address already in use"));
    REQUIRE(hv::connect_unix(name, &client).ok());
    CHECK(is_close_on_exec(client));
    CHECK_FALSE(is_nonblocking(client));
    CHECK(accept_from(listener));
  }
  ::unlink(path.c_str());
}

TEST_CASE("an abstract name ends where it ends: a longer one is another") {
  const std::string name = abstract_name();
  hv::UniqueFd listener, client;
  REQUIRE(hv::listen_unix(name, &listener).ok());
  sockaddr_storage raw{};
  socklen_t size = sizeof raw;
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&raw), &size) == 0);
  CHECK(size == sizeof raw.ss_family + name.size());  // no zero byte behind it
  CHECK_FALSE(hv::connect_unix(name + "0", &client).ok());
  CHECK_FALSE(hv::connect_unix(name.substr(0, name.size() - 1), &client).ok());
  CHECK_FALSE(hv::connect_unix(name + std::string(1, '\0'), &client).ok());
}

TEST_CASE("a Unix socket's name may have 107 bytes and must have one") {
  hv::UniqueFd socket;
  const std::string longest = abstract_name() + "-";
  CHECK(hv::listen_unix(longest + std::string(107 - longest.size(), 'x'), &socket).ok());
  for (const std::string& bad :
       {std::string(), std::string(108, 'x'), "@" + std::string(5000, 'x')}) {
    CHECK(hv::listen_unix(bad, &socket).code == hv::StatusCode::kArgument);
    CHECK(hv::connect_unix(bad, &socket).code == hv::StatusCode::kArgument);
  }
}

TEST_CASE("peer_user says who connected, or that nobody can have") {
  Pair pair;
  std::uint32_t uid = ~0u;
  std::int32_t pid = 0;
  REQUIRE(hv::peer_user(pair.a.get(), &uid, &pid).ok());
  CHECK(uid == ::geteuid());
  CHECK(pid == ::getpid());
  CHECK(says(hv::peer_user(-1, &uid, &pid), "ask who connected"));
}

TEST_CASE("a descriptor is handed over and works at the other end") {
  Pair pair, handed;
  REQUIRE(hv::send_descriptor(pair.a.get(), handed.b.get()).ok());
  hv::UniqueFd received;
  REQUIRE(hv::receive_descriptor(pair.b.get(), &received).ok());
  CHECK(is_close_on_exec(received));
  handed.b.reset();
  char byte = 0;
  REQUIRE(hv::send_all(received.get(), "x", 1, kLong).ok());
  REQUIRE(hv::read_exactly(handed.a.get(), &byte, 1, kLong).ok());
  CHECK(byte == 'x');
}

TEST_CASE("a peer that closes or sends plain bytes hands over no descriptor") {
  hv::UniqueFd received;
  Pair plain;
  REQUIRE(hv::send_all(plain.a.get(), "d", 1, kLong).ok());
  CHECK(says(hv::receive_descriptor(plain.b.get(), &received), "sent something else"));
  plain.a.reset();
  CHECK(says(hv::receive_descriptor(plain.b.get(), &received), "closed"));
  CHECK(says(hv::send_descriptor(plain.b.get(), 0), "Broken pipe"));
  CHECK_FALSE(received);
}

TEST_CASE("a peer that hands over two descriptors is refused, and none stays open") {
  Pair pair;
  char byte = 'd';
  iovec piece{&byte, 1};
  const int two[] = {pair.a.get(), pair.b.get()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof two)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof two);
  std::copy_n(two, 2, reinterpret_cast<int*>(CMSG_DATA(header)));
  REQUIRE(::sendmsg(pair.a.get(), &message, 0) == 1);
  const std::ptrdiff_t before = open_descriptors();
  hv::UniqueFd received;
  CHECK_FALSE(hv::receive_descriptor(pair.b.get(), &received).ok());
  CHECK_FALSE(received);
  CHECK(open_descriptors() == before);
}

TEST_CASE("more bytes than a socket holds arrive whole and in order, although signals interrupt") {
  const Interrupting interrupting;
  Pair pair;
  std::string sent(8 << 20, '\0');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7919 >> 8);
  std::string received(sent.size(), '\0');
  hv::Status wrote, read;
  std::thread writer([&] { wrote = hv::send_all(pair.a.get(), sent.data(), sent.size(), kLong); });
  interrupt(writer);  // it waits: nobody reads yet
  std::thread reader(
      [&] { read = hv::read_exactly(pair.b.get(), received.data(), received.size(), kLong); });
  interrupt(reader);
  writer.join();
  reader.join();
  CHECK(wrote.message.empty());
  CHECK(read.message.empty());
  CHECK(received == sent);
}

TEST_CASE("reading waits for the rest of what has come in part, although signals interrupt") {
  const Interrupting interrupting;
  Pair pair;
  REQUIRE(hv::send_all(pair.a.get(), "he", 2, kLong).ok());
  char bytes[5] = {};
  hv::Status status;
  std::thread reader([&] { status = hv::read_exactly(pair.b.get(), bytes, sizeof bytes, kLong); });
  interrupt(reader);
  CHECK(hv::send_all(pair.a.get(), "llo!", 4, kLong).ok());
  reader.join();
  CHECK(status.message.empty());
  CHECK(std::string(bytes, 5) == "hello");
  CHECK(hv::read_exactly(pair.b.get(), bytes, 1, kLong).ok());
  CHECK(bytes[0] == '!');  // not a byte more was taken
}

TEST_CASE("a peer that closes is an error on both ways, and no signal") {
  Pair pair;
  REQUIRE(hv::send_all(pair.b.get(), "ab", 2, kLong).ok());
  pair.b.reset();
  char bytes[3];
  CHECK(says(hv::read_exactly(pair.a.get(), bytes, 3, kLong), "the other end closed"));
  CHECK(hv::send_all(pair.a.get(), "x", 1, kLong).message == "send: Broken pipe");
}

TEST_CASE("a peer that breaks the connection off is told from one that closes") {
  hv::UniqueFd listener, client;
  std::uint16_t port = 0;
  REQUIRE(hv::listen_tcp(0, &listener, &port).ok());
  REQUIRE(hv::start_connect(*hv::SocketAddress::parse("127.0.0.1", port), &client).ok());
  hv::UniqueFd server = accept_from(listener);
  const linger at_once{1, 0};
  ::setsockopt(server.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  server.reset();
  char byte;
  CHECK(hv::read_exactly(client.get(), &byte, 1, kLong).message ==
        "receive: Connection reset by peer");
}

TEST_CASE("waiting for bytes, or for room, that never comes ends at the deadline") {
  Pair pair;
  char byte;
  for (const auto timeout : {-1ms, 0ms, 20ms}) {
    CHECK(hv::read_exactly(pair.a.get(), &byte, 1, timeout).message == "receive: timed out");
  }
  const std::string much(8 << 20, 'x');
  CHECK(hv::send_all(pair.a.get(), much.data(), much.size(), 20ms).message == "send: timed out");
}

TEST_CASE("what is there already needs no time, and nothing needs no peer") {
  Pair pair;
  char byte = 0;
  CHECK(hv::send_all(pair.a.get(), "x", 1, 0ms).ok());
  CHECK(hv::read_exactly(pair.b.get(), &byte, 1, 0ms).ok());
  pair.b.reset();
  CHECK(hv::send_all(pair.a.get(), nullptr, 0, 0ms).ok());
  CHECK(hv::read_exactly(pair.a.get(), nullptr, 0, 0ms).ok());
}

TEST_CASE("set_nonblocking changes that mode and no other") {
  const hv::UniqueFd file(::open("/dev/null", O_WRONLY | O_APPEND | O_CLOEXEC));
  const int before = ::fcntl(file.get(), F_GETFL);
  CHECK(hv::set_nonblocking(file.get(), true).ok());
  CHECK(::fcntl(file.get(), F_GETFL) == (before | O_NONBLOCK));
  CHECK(hv::set_nonblocking(file.get(), false).ok());
  CHECK(::fcntl(file.get(), F_GETFL) == before);
  CHECK(says(hv::set_nonblocking(-1, true), "Bad file descriptor"));
}
