// Agents that test reachability over TCP, in this process and through real agents.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "launcher/agent/probe_listener.h"
#include "launcher/agent/queries/address_probe.h"
#include "launcher/probes/pair_measure.h"
#include "src/net/socket.h"
#include "tests/unit/agent/agent_client.h"

using namespace hv;
using namespace hv::tests;
using namespace std::chrono_literals;
using launcher::AddressProbe;
using launcher::EventLoop;
using launcher::ProbeListener;

namespace {

wire::ProbeReply probe(EventLoop& loop, const JobKey& key, wire::ProbeRequest request) {
  std::optional<wire::ProbeReply> reply;
  AddressProbe asking(loop, key, "job", request,
                      [&](wire::ProbeReply answer) { reply = std::move(answer); });
  for (const TimePoint deadline = now() + 20s; !reply && now() < deadline;) loop.run_once(deadline);
  REQUIRE(reply);
  return *reply;
}

}  // namespace

TEST_CASE(
    "a probe separates the right host from a wrong key, a wrong host, a closed and a mute port") {
  EventLoop loop;
  JobKey key, other;
  other.fill(1);
  ProbeListener right(loop, key, launcher::probe_purpose("job", 3));
  ProbeListener wrong_key(loop, other, launcher::probe_purpose("job", 3));
  REQUIRE(right.listen().ok());
  REQUIRE(wrong_key.listen().ok());
  UniqueFd silent, closed;
  std::uint16_t silent_port = 0, closed_port = 0;
  REQUIRE(listen_tcp(0, &silent, &silent_port).ok());
  REQUIRE(hold_tcp_port(0, &closed, &closed_port).ok());

  wire::ProbeRequest request;
  request.timeout_s = 0.5;
  request.targets = {{3, right.port(), {"127.0.0.2", "127.0.0.1", "::1", "no address"}},
                     {3, wrong_key.port(), {"127.0.0.1"}},
                     {4, right.port(), {"127.0.0.1"}},
                     {3, closed_port, {"127.0.0.1"}},
                     {3, silent_port, {"127.0.0.1"}},
                     {3, right.port(), {}}};
  const auto results = probe(loop, key, request).results;
  REQUIRE(results.size() == 6);
  CHECK(results[0].reached.size() >= 2);
  CHECK(results[0].reached[0] == "127.0.0.2");
  CHECK(results[0].reason.empty());
  CHECK(results[1].reached.empty());
  CHECK(results[1].reason.find("no agent of this job") != std::string::npos);
  CHECK(results[2].reached.empty());
  CHECK(results[3].reason.find("Connection refused") != std::string::npos);
  CHECK(results[4].reason.find("no answer in time") != std::string::npos);
  CHECK(!results[5].reason.empty());
}

TEST_CASE("more addresses than are tried at once all get an answer") {
  EventLoop loop;
  ProbeListener listener(loop, JobKey(), launcher::probe_purpose("job", 0));
  REQUIRE(listener.listen().ok());
  wire::ProbeRequest request;
  request.timeout_s = 10;
  request.targets.push_back({0, listener.port(), {}});
  for (int i = 1; i < 250; ++i)
    request.targets[0].addresses.push_back("127.0.1." + std::to_string(i));
  for (int i = 1; i < 250; ++i)
    request.targets[0].addresses.push_back("127.0.2." + std::to_string(i));
  CHECK(probe(loop, JobKey(), request).results[0].reached == request.targets[0].addresses);
}

TEST_CASE(
    "a probe listener outlives unauthenticated peers that are mute, send too much, or hang up") {
  EventLoop loop;
  ProbeListener listener(loop, JobKey(), launcher::probe_purpose("job", 0));
  REQUIRE(listener.listen().ok());
  const auto address = *SocketAddress::parse("127.0.0.1", listener.port());
  std::vector<UniqueFd> strangers(20);
  for (UniqueFd& stranger : strangers) REQUIRE(start_connect(address, &stranger).ok());
  const std::string much(1000, 'x');
  for (std::size_t i = 0; i < 10; ++i)
    (void)send_all(strangers[i].get(), much.data(), much.size(), 1s);
  strangers.resize(15);
  wire::ProbeRequest request;
  request.targets.push_back({0, listener.port(), {"127.0.0.1"}});
  CHECK(probe(loop, JobKey(), request).results[0].reached.size() == 1);
}

TEST_CASE("a probe listener makes room for a newcomer, however many peers are mute") {
  EventLoop loop;
  ProbeListener listener(loop, JobKey(), launcher::probe_purpose("job", 0));
  REQUIRE(listener.listen().ok());
  const auto address = *SocketAddress::parse("127.0.0.1", listener.port());
  std::vector<UniqueFd> peers(300);
  for (UniqueFd& peer : peers) {
    REQUIRE(start_connect(address, &peer).ok());
    loop.run_once(now());
  }
  wire::ProbeRequest request;
  request.timeout_s = 5;  // less than a mute peer is given
  request.targets.push_back({0, listener.port(), {"127.0.0.1"}});
  CHECK(probe(loop, JobKey(), request).results[0].reached.size() == 1);
}

TEST_CASE("the path to a host is measured over an authenticated connection") {
  EventLoop loop;
  const JobKey key = random_key();
  ProbeListener listener(loop, key, launcher::probe_purpose("job", 1));
  REQUIRE(listener.listen().ok());
  wire::ProbeRequest request;
  request.timeout_s = 10;
  request.targets = {{1, listener.port(), {"127.0.0.1"}}};
  UniqueFd proved;
  std::optional<wire::ProbeReply> reply;
  AddressProbe asking(
      loop, key, "job", request, [&](wire::ProbeReply answer) { reply = std::move(answer); },
      [&](std::uint32_t host, UniqueFd socket) {
        CHECK(host == 1);
        proved = std::move(socket);
      });
  while (!reply) loop.run_once(now() + 1s);
  REQUIRE((proved && reply->results[0].reached.size() == 1));
  std::atomic<bool> is_over{false};
  wire::PairMeasure measure;
  std::thread measuring([&] {
    measure = launcher::measure_pair(proved.get());
    is_over = true;
  });
  while (!is_over) loop.run_once(now() + 10ms);
  measuring.join();
  CHECK(measure.problem == "");
  CHECK((measure.round_trip_us > 0 && measure.megabytes_per_s > 0 && !measure.is_stuck));
  // On a busy machine TCP sends again even over loopback, when the receiver's turn comes late.
  CHECK((measure.resent_share < 0.5 && measure.segment_bytes > 500));
}

TEST_CASE("a path without an answer has no measurement, and a reason") {
  UniqueFd listener, guest;
  std::uint16_t port = 0;
  REQUIRE(listen_tcp(0, &listener, &port).ok());
  REQUIRE(start_connect(*SocketAddress::parse("127.0.0.1", port), &guest).ok());
  const wire::PairMeasure measure = launcher::measure_pair(guest.get());
  CHECK(measure.problem.find("exchange small messages") == 0);
  CHECK(measure.megabytes_per_s == 0);
}

TEST_CASE("a guest proves the key to the listener, too, which accepts only measurements") {
  EventLoop loop;
  const JobKey key = random_key();
  const std::string purpose = launcher::probe_purpose("job", 0);
  ProbeListener listener(loop, key, purpose);
  REQUIRE(listener.listen().ok());
  const auto visit = [&](const JobKey& known, std::size_t cut) {
    UniqueFd guest;
    REQUIRE(start_connect(*SocketAddress::parse("127.0.0.1", listener.port()), &guest).ok());
    const auto serve = [&] { loop.run_once(now() + 200ms); };
    serve();
    const Nonce mine = random_nonce();
    REQUIRE(send_all(guest.get(), mine.data(), mine.size(), 1s).ok());
    serve();
    unsigned char answer[kNonceBytes + kProofBytes];
    REQUIRE(read_exactly(guest.get(), answer, sizeof answer, 1s).ok());
    Nonce its;
    std::copy_n(answer, its.size(), its.begin());
    char byte;
    CHECK(::recv(guest.get(), &byte, 1, MSG_DONTWAIT) < 0);  // it waits for the guest's proof
    const Proof proof = client_proof(known, purpose, mine, its);
    REQUIRE(send_all(guest.get(), proof.data(), cut, 1s).ok());
    if (cut < proof.size()) {
      serve();
      REQUIRE(send_all(guest.get(), proof.data() + cut, proof.size() - cut, 1s).ok());
    }
    serve();
    return guest;
  };
  char byte;
  for (const std::size_t cut : {kProofBytes, std::size_t{5}}) {
    const UniqueFd guest = visit(key, cut);
    CHECK(::recv(guest.get(), &byte, 1, MSG_DONTWAIT) < 0);  // who proved it may measure
    const std::string first(launcher::kEchoedBytes, 'x'), rest(1000, 'y');
    std::string echo(first.size(), 0);
    REQUIRE(send_all(guest.get(), (first + rest).data(), first.size() + rest.size(), 1s).ok());
    for (int i = 0; i < 4; ++i) loop.run_once(now() + 50ms);
    REQUIRE(read_exactly(guest.get(), echo.data(), echo.size(), 1s).ok());
    CHECK(echo == first);
    ::shutdown(guest.get(), SHUT_WR);
    for (int i = 0; i < 4; ++i) loop.run_once(now() + 50ms);
    std::uint64_t counted = 0;
    REQUIRE(read_exactly(guest.get(), &counted, sizeof counted, 1s).ok());
    CHECK((counted == rest.size() && ::recv(guest.get(), &byte, 1, MSG_DONTWAIT) == 0));
  }
  CHECK(listener.proven() == 2);
  CHECK(::recv(visit(random_key(), kProofBytes).get(), &byte, 1, MSG_DONTWAIT) == 0);  // closed
  CHECK(listener.proven() == 2);
  CHECK(listener.refused() == 1);

  wire::ProbeRequest request;
  request.targets.push_back({0, listener.port(), {"127.0.0.1"}});
  CHECK(probe(loop, key, request).results[0].reached.size() == 1);
  for (const TimePoint deadline = now() + 5s; listener.proven() < 3 && now() < deadline;)
    loop.run_once(deadline);
  CHECK(listener.proven() == 3);
}

TEST_CASE("two agents reach each other, until the ranks are launched") {
  AgentClient one, two;
  wire::SetupRequest setup;
  setup.probe = true;
  setup.host_id = 1;
  setup.key.fill(9);
  setup.job_id = "shared";
  two.send(setup);
  const auto port = two.expect<wire::SetupReply>().probe_port;
  REQUIRE(port > 0);
  setup.host_id = 0;
  one.send(setup);
  (void)one.expect<wire::SetupReply>();
  wire::ProbeRequest request;
  request.targets.push_back({1, port, {"127.0.0.1"}});
  one.send(request);
  CHECK(one.expect<wire::ProbeReply>().results.at(0).reached ==
        std::vector<std::string>{"127.0.0.1"});
  two.send(launch_of({"true"}));
  (void)two.expect<wire::Ready>();
  one.send(request);
  CHECK(one.expect<wire::ProbeReply>().results.at(0).reason.find("refused") != std::string::npos);
  CHECK(one.finish() == 0);
  CHECK(two.finish() == 0);
}
