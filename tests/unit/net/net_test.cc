// Tests of addresses and sockets. SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "src/net/address.h"
#include "src/net/socket.h"

using namespace std::chrono_literals;

TEST_CASE("numeric addresses parse, names do not") {
  CHECK(hv::SocketAddress::parse("10.0.0.1", 22)->text() == "10.0.0.1:22");
  CHECK(hv::SocketAddress::parse("fd00::1", 22)->text() == "[fd00::1]:22");
  CHECK_FALSE(hv::SocketAddress::parse("localhost", 22).has_value());
  CHECK_FALSE(hv::SocketAddress::parse("10.0.0", 22).has_value());
  CHECK_FALSE(hv::SocketAddress::parse("fe80::1%nosuchinterface", 22).has_value());
}

TEST_CASE("loopback and link-local addresses are told apart") {
  CHECK(hv::SocketAddress::parse("127.0.0.9", 0)->is_loopback());
  CHECK(hv::SocketAddress::parse("::1", 0)->is_loopback());
  CHECK_FALSE(hv::SocketAddress::parse("10.0.0.1", 0)->is_loopback());
  CHECK(hv::SocketAddress::parse("169.254.3.4", 0)->is_link_local());
  CHECK(hv::SocketAddress::parse("fe80::1", 0)->is_link_local());
}

TEST_CASE("a held port lets a program with SO_REUSEADDR bind and listen on it") {
  hv::UniqueFd holder, listener;
  std::uint16_t port = 0, bound = 0;
  REQUIRE(hv::hold_tcp_port(0, &holder, &port).ok());
  REQUIRE(port != 0);
  REQUIRE(hv::listen_tcp(port, &listener, &bound).ok());
  CHECK(bound == port);
  // While somebody listens, another job cannot take the port.
  hv::UniqueFd other;
  CHECK_FALSE(hv::hold_tcp_port(port, &other, &bound).ok());
}

TEST_CASE("TCP bytes arrive, and a closed peer is an error in words") {
  hv::UniqueFd listener, client;
  std::uint16_t port = 0;
  REQUIRE(hv::listen_tcp(0, &listener, &port).ok());
  const auto address = *hv::SocketAddress::parse("127.0.0.1", port);
  REQUIRE(hv::start_connect(address, &client).ok());
  pollfd ready{listener.get(), POLLIN, 0};
  REQUIRE(::poll(&ready, 1, 5000) == 1);
  hv::UniqueFd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(hv::finish_connect(client.get(), address).ok());
  REQUIRE(hv::write_all(client.get(), "hello", 5, 1s).ok());
  char bytes[5];
  REQUIRE(hv::read_exactly(server.get(), bytes, 5, 1s).ok());
  CHECK(std::string(bytes, 5) == "hello");
  client.reset();
  const hv::Status status = hv::read_exactly(server.get(), bytes, 1, 1s);
  CHECK(status.message.find("closed") != std::string::npos);
}

TEST_CASE("waiting for bytes that never come ends at the deadline") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const hv::UniqueFd a(ends[0]), b(ends[1]);
  char byte;
  CHECK(hv::read_exactly(a.get(), &byte, 1, 20ms).message.find("timed out") != std::string::npos);
}

TEST_CASE("a refused connection says so") {
  hv::UniqueFd holder, client;
  std::uint16_t port = 0;
  REQUIRE(hv::hold_tcp_port(0, &holder, &port).ok());  // bound, but nobody listens
  const auto address = *hv::SocketAddress::parse("127.0.0.1", port);
  hv::Status status = hv::start_connect(address, &client);
  if (status.ok()) status = hv::finish_connect(client.get(), address);
  CHECK(status.message.find("refused") != std::string::npos);
}

TEST_CASE("a descriptor is handed over a Unix socket in the abstract namespace") {
  const std::string name = "@hvrun-net-test-" + std::to_string(::getpid());
  hv::UniqueFd listener, client;
  REQUIRE(hv::listen_unix(name, &listener).ok());
  REQUIRE(hv::connect_unix(name, &client).ok());
  const hv::UniqueFd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  std::uint32_t uid = 0;
  std::int32_t pid = 0;
  REQUIRE(hv::peer_user(server.get(), &uid, &pid).ok());
  CHECK(uid == ::geteuid());
  CHECK(pid == ::getpid());
  int pipe_ends[2];
  REQUIRE(::pipe2(pipe_ends, O_CLOEXEC) == 0);
  const hv::UniqueFd read_end(pipe_ends[0]), write_end(pipe_ends[1]);
  REQUIRE(hv::send_descriptor(server.get(), write_end.get()).ok());
  hv::UniqueFd received;
  REQUIRE(hv::receive_descriptor(client.get(), &received).ok());
  CHECK((::fcntl(received.get(), F_GETFD) & FD_CLOEXEC) != 0);
  REQUIRE(::write(received.get(), "x", 1) == 1);
  char byte = 0;
  REQUIRE(::read(read_end.get(), &byte, 1) == 1);
  CHECK(byte == 'x');
}
