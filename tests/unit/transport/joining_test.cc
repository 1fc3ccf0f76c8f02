// Joining a job: who shares a host, who proves what to whom, and strangers at the door.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>

#include "runtime/transport/handshake.h"
#include "runtime/transport/io_thread.h"
#include "runtime/transport/placement.h"
#include "runtime/transport/shm/host_meeting.h"
#include "runtime/transport/shm/memfd_source.h"
#include "runtime/transport/tcp/tcp_meeting.h"
#include "src/net/socket.h"
#include "src/wire/codec.h"
#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

using std::chrono::milliseconds;

struct SocketPair {
  SocketPair() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    left.reset(fds[0]);
    right.reset(fds[1]);
  }
  UniqueFd left, right;
};

struct Outcome {
  Status client, server;
};

// Both sides of a handshake, each with its own key and idea of who is meant.
Outcome shake(const JobKey& client_key, const JobKey& server_key, const Hello& said,
              const Hello& expected, const std::string& client_job = "job",
              const std::string& server_job = "job") {
  SocketPair pair;
  Outcome outcome;
  std::thread client([&] {
    outcome.client =
        prove_as_client(pair.left.get(), client_key, client_job, said, milliseconds(2000));
    pair.left.reset();
  });
  Hello hello;
  outcome.server = prove_as_server(pair.right.get(), server_key, server_job, expected, &hello,
                                   milliseconds(2000));
  pair.right.reset();
  client.join();
  return outcome;
}

Hello hello_of(std::uint32_t from, std::uint32_t to, std::uint32_t epoch = 0) {
  Hello hello;
  hello.from = from;
  hello.to = to;
  hello.epoch = epoch;
  hello.use = kUseData;
  return hello;
}

std::vector<RankIdentity> with_locals(const std::vector<std::vector<int>>& rows) {
  std::vector<RankIdentity> identities;
  for (const auto& row : rows) {
    RankIdentity who;
    who.rank = static_cast<int>(identities.size());
    who.local_rank = row[0];
    who.local_size = row[1];
    who.cross_rank = row[2];
    identities.push_back(who);
  }
  return identities;
}

}  // namespace

TEST_CASE("hosts follow from the contract, for ranks in blocks, in turns, and uneven hosts") {
  std::vector<int> hosts;
  for (const JobShape& shape : {JobShape{4}, JobShape{2, 2}, JobShape{1, 2}, JobShape{3, 1, 2}}) {
    REQUIRE(hosts_from_contract(identities_of(shape), &hosts).ok());
    int rank = 0;
    for (std::size_t host = 0; host < shape.size(); ++host)
      for (int local = 0; local < shape[host]; ++local)
        CHECK(hosts[static_cast<std::size_t>(rank++)] == static_cast<int>(host));
  }
  REQUIRE(
      hosts_from_contract(with_locals({{0, 2, 0}, {0, 2, 1}, {1, 2, 0}, {1, 2, 1}}), &hosts).ok());
  CHECK(hosts == std::vector<int>{0, 1, 0, 1});
}

TEST_CASE("contradicting contracts are refused with the rank that shows it") {
  std::vector<int> hosts;
  const auto refused = [&](const std::vector<std::vector<int>>& rows) {
    const Status status = hosts_from_contract(with_locals(rows), &hosts);
    CHECK(status.code == StatusCode::kContract);
    return status.message;
  };
  CHECK(refused({{0, 1, 0}, {0, 1, 0}}).find("rank 1") != std::string::npos);
  CHECK(refused({{0, 2, 0}, {1, 3, 0}}).find("rank 1") != std::string::npos);
  CHECK(refused({{0, 1, 0}, {1, 1, 0}}).find("rank 1") != std::string::npos);
  refused({{0, 2, 0}});
}

TEST_CASE("a topology numbers hosts by first rank and knows its own place") {
  const Topology topology = make_topology(2, {7, 3, 7, 3});
  CHECK(topology.host_of == std::vector<int>{0, 1, 0, 1});
  CHECK(topology.leaders == std::vector<int>{0, 1});
  CHECK(topology.local_ranks == std::vector<int>{0, 2});
  CHECK(local_index(topology) == 1);
}

TEST_CASE("both sides of a handshake accept the same key and purpose") {
  const JobKey key = random_key();
  const Outcome outcome = shake(key, key, hello_of(3, 1), hello_of(0, 1));
  CHECK(outcome.client.ok());
  CHECK(outcome.server.ok());
}

TEST_CASE(
    "another key, job, rank, epoch or no hello at all is refused by the server or by the client") {
  const JobKey key = random_key();
  CHECK_FALSE(shake(random_key(), key, hello_of(3, 1), hello_of(0, 1)).client.ok());
  CHECK_FALSE(shake(random_key(), key, hello_of(3, 1), hello_of(0, 1)).server.ok());
  CHECK_FALSE(shake(key, key, hello_of(3, 1), hello_of(0, 1), "job", "other").client.ok());
  CHECK_FALSE(shake(key, key, hello_of(3, 1), hello_of(0, 2)).server.ok());
  CHECK_FALSE(shake(key, key, hello_of(3, 1, 1), hello_of(0, 1, 0)).server.ok());
  Hello stranger = hello_of(3, 1);
  stranger.mark[0] = 'G';
  CHECK_FALSE(shake(key, key, stranger, hello_of(0, 1)).server.ok());
}

TEST_CASE("a silent client is given up in time") {
  SocketPair pair;
  Hello hello;
  const TimePoint start = now();
  CHECK_FALSE(prove_as_server(pair.right.get(), random_key(), "job", hello_of(0, 1), &hello,
                              milliseconds(50))
                  .ok());
  CHECK(now() - start < std::chrono::seconds(30));
}

namespace {

// Two ranks on hosts of their own, about to connect; silent strangers at rank 0's port.
struct Meeting {
  explicit Meeting(milliseconds timeout = milliseconds(20000)) {
    for (int r = 0; r < 2; ++r) {
      terms[r].job_id = "job";
      terms[r].key = key;
      terms[r].rank = r;
      terms[r].timeout = timeout;
    }
    const TcpSettings local{{"127.0.0.1"}};
    zero = std::make_unique<TcpMeeting>(terms[0], make_topology(0, {0, 1}), local);
    one = std::make_unique<TcpMeeting>(terms[1], make_topology(1, {0, 1}), local);
    std::string card_zero, card_one;
    REQUIRE(zero->listen(&card_zero).ok());
    REQUIRE(one->listen(&card_one).ok());
    std::memcpy(&port, card_zero.data(), sizeof port);
    REQUIRE(zero->set_addresses(1, card_one).ok());
    REQUIRE(one->set_addresses(0, card_zero).ok());
  }
  UniqueFd stranger() const {
    UniqueFd socket;
    REQUIRE(start_connect(*SocketAddress::parse("127.0.0.1", port), &socket).ok());
    return socket;
  }
  // What rank 1 says to rank 0, over a socket that is open already.
  Status prove(int socket) const {
    return prove_as_client(socket, key, "job", hello_of(1, 0), milliseconds(20000));
  }
  // Rank 1 speaks over the socket, and both ranks are content.
  void expect_met(const UniqueFd& socket) const {
    Status proven, met;
    RemoteTransport remote;
    std::thread peer([&] { proven = prove(socket.get()); });
    met = zero->connect_all(&remote);
    peer.join();
    CHECK_MESSAGE(met.ok(), met.message);
    CHECK_MESSAGE(proven.ok(), proven.message);
  }
  const JobKey key = random_key();
  MeetingTerms terms[2];
  std::unique_ptr<TcpMeeting> zero, one;
  std::uint16_t port = 0;
};

// The sanitizer of undefined behaviour takes two descriptors of its own to look at an object, and
// where none is left takes every object for broken.
#ifdef __SANITIZE_ADDRESS__  // that build has both sanitizers
constexpr bool kNeedsDescriptors = true;
#else
constexpr bool kNeedsDescriptors = false;
#endif

// While it lives this process gets so many descriptors and no more.
class FewDescriptors {
 public:
  explicit FewDescriptors(int spare) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    std::vector<UniqueFd> free(static_cast<std::size_t>(spare) + 1);
    for (UniqueFd& fd : free) fd.reset(::fcntl(0, F_DUPFD_CLOEXEC, 0));
    REQUIRE(free.back());
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(free.back().get());
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("garbage, silence and hang-ups on the port do not keep the right peer from connecting") {
  Meeting meeting;
  std::vector<UniqueFd> strangers(20);
  for (std::size_t i = 0; i < strangers.size(); ++i) {
    strangers[i] = meeting.stranger();
    const std::string garbage(i * 37, 'G');
    if (i % 3 == 0) continue;  // silent
    (void)send_all(strangers[i].get(), garbage.data(), garbage.size(), milliseconds(500));
    if (i % 3 == 1) strangers[i].reset();
  }
  RemoteTransport left, right;
  Status status;
  std::thread other([&] { status = meeting.one->connect_all(&right); });
  CHECK(meeting.zero->connect_all(&left).ok());
  other.join();
  CHECK(status.ok());
  CHECK(left.transport->peers() == std::vector<int>{1});
  right.transport->channel(0, kControlLane).write("hello", 5);
  int peer = -1;
  for (int i = 0; i < 1000 && !left.transport->next_arrival(&peer); ++i) left.transport->progress();
  CHECK(peer == 1);
}

// All but the key's proof is right: everything else that a peer says is known to whoever listens.
TEST_CASE(
    "whoever greets as a rank and proves it with other bytes is dropped, and the rank taken") {
  Meeting meeting;
  const UniqueFd liar = meeting.stranger();
  RemoteTransport left, right;
  Status met;
  std::thread rank([&] { met = meeting.zero->connect_all(&left); });
  const Hello hello = hello_of(1, 0);
  CHECK(send_all(liar.get(), &hello, sizeof hello, milliseconds(20000)).ok());
  ServerAnswer answer;
  CHECK(read_exactly(liar.get(), &answer, sizeof answer, milliseconds(20000)).ok());
  Proof wrong = client_proof(meeting.key, purpose_of("job", hello), hello.nonce, answer.nonce);
  wrong.back() ^= 1;
  CHECK(send_all(liar.get(), wrong.data(), wrong.size(), milliseconds(20000)).ok());
  const Status status = meeting.one->connect_all(&right);
  rank.join();
  CHECK_MESSAGE(status.ok(), status.message);
  CHECK_MESSAGE(met.ok(), met.message);
  char byte;
  const Status dropped = read_exactly(liar.get(), &byte, 1, milliseconds(0));
  CHECK_MESSAGE(dropped.message.find("closed the connection") != std::string::npos,
                dropped.message);
}

TEST_CASE("silent strangers that take the last descriptors make room for the right peer" *
          doctest::skip(kNeedsDescriptors)) {
  Meeting meeting;
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(meeting.stranger());
  const UniqueFd socket = meeting.stranger();
  const FewDescriptors few(3);
  meeting.expect_met(socket);
}

TEST_CASE("silent strangers, however many, make room for the right peer") {
  Meeting meeting;
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 300; ++i) strangers.push_back(meeting.stranger());
  const UniqueFd socket = meeting.stranger();
  meeting.expect_met(socket);
}

TEST_CASE("strangers that greet as the right peer and prove nothing make room for it") {
  Meeting meeting(milliseconds(8000));  // each stranger may stay for 10 s where nobody waits
  const Hello hello = hello_of(1, 0);
  std::vector<UniqueFd> strangers(100);
  for (UniqueFd& each : strangers) {
    each = meeting.stranger();
    CHECK(send_all(each.get(), &hello, sizeof hello, milliseconds(20000)).ok());
  }
  const UniqueFd socket = meeting.stranger();
  meeting.expect_met(socket);
}

TEST_CASE("a peer waits at the door until there is a descriptor for it" *
          doctest::skip(kNeedsDescriptors)) {
  Meeting meeting;
  UniqueFd guests[2] = {meeting.stranger(), meeting.stranger()};
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Status proven, met;
  RemoteTransport remote;
  const FewDescriptors few(2);
  std::thread rank([&] { met = meeting.zero->connect_all(&remote); });
  // They greet and are answered, so they are no strangers; then they leave.
  for (UniqueFd& guest : guests) {
    const Hello hello = hello_of(1, 0);
    ServerAnswer answer;
    CHECK(send_all(guest.get(), &hello, sizeof hello, milliseconds(20000)).ok());
    CHECK(read_exactly(guest.get(), &answer, sizeof answer, milliseconds(20000)).ok());
  }
  const auto address = *SocketAddress::parse("127.0.0.1", meeting.port);
  CHECK(::connect(socket.get(), address.raw(), address.size()) == 0);
  for (UniqueFd& guest : guests) ::shutdown(guest.get(), SHUT_RDWR);
  proven = meeting.prove(socket.get());
  rank.join();
  CHECK_MESSAGE(met.ok(), met.message);
  CHECK_MESSAGE(proven.ok(), proven.message);
}

TEST_CASE("without descriptors to the end the joining fails with the reason and who is missing" *
          doctest::skip(kNeedsDescriptors)) {
  Meeting meeting(milliseconds(500));
  const UniqueFd socket = meeting.stranger();
  for (const bool accepts : {true, false}) {
    CAPTURE(accepts);
    RemoteTransport remote;
    const FewDescriptors few(0);
    const Status met = (accepts ? meeting.zero : meeting.one)->connect_all(&remote);
    CHECK_FALSE(met.ok());
    CAPTURE(met.message);
    for (const char* part : {accepts ? "rank 1 on " : "rank 0 on ",
                             accepts ? "take a connection of" : "connect to a rank of",
                             "Too many open files", "ulimit -n"})
      CHECK(met.message.find(part) != std::string::npos);
  }
}

namespace {

// Of this process, connected.
std::vector<int> tcp_connections() {
  std::vector<int> found;
  for (int fd = 0; fd < 1024; ++fd) {
    int protocol = 0;
    socklen_t size = sizeof protocol;
    sockaddr_storage peer{};
    socklen_t peer_size = sizeof peer;
    if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
        protocol == IPPROTO_TCP &&
        ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0)
      found.push_back(fd);
  }
  return found;
}

int option_of(int socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, level, name, &value, &size) == 0 ? value : -1;
}

}  // namespace

// TCP_USER_TIMEOUT gives up a peer that lives but reads nothing, after SIGSTOP.
TEST_CASE("a connection outlives a peer that is stopped for long, and notices a silent host") {
  const auto before = tcp_connections();
  run_ranks({1, 1}, {}, [&](RankContext& context) {
    require(context.run({}).ok(), "a barrier: both ends are set up");
    if (context.rank != 0) return;
    int connections = 0;
    for (const int socket : tcp_connections()) {
      if (std::find(before.begin(), before.end(), socket) != before.end()) continue;
      ++connections;
      require(option_of(socket, IPPROTO_TCP, TCP_USER_TIMEOUT) == 0, "no user timeout");
      require(option_of(socket, SOL_SOCKET, SO_KEEPALIVE) == 1, "keepalive");
    }
    require(connections > 0, "a connection to look at");
  });
}

namespace {

std::atomic<int> handled{0};

// Interrupts the threads that do not block SIGALRM, again and again.
struct Alarms {
  explicit Alarms(int microseconds) {
    struct sigaction action {};
    action.sa_handler = [](int) { ++handled; };
    ::sigaction(SIGALRM, &action, &before);
    const itimerval timer{{0, microseconds}, {0, microseconds}};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }
  ~Alarms() {
    const itimerval none{};
    ::setitimer(ITIMER_REAL, &none, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
  }
  struct sigaction before {};
};

}  // namespace

TEST_CASE("signals that a rank handles do not end its wait for the memory of its host") {
  const HostGeometry geometry{2, 4096};
  MeetingTerms terms;
  terms.job_id = "job";
  terms.rank = 1;
  terms.timeout = milliseconds(20000);
  UniqueFd listener, memfd;
  const std::string name = "@hvrun-test-" + random_hex(8);
  REQUIRE(listen_unix(name, &listener).ok());
  REQUIRE(create_memfd(geometry.total_bytes(), &memfd).ok());
  HostMeeting member(terms);
  REQUIRE(member.reach(name));
  // The leader hands the memory over only after some signals.
  std::thread leader = start_quiet_thread([&] {
    UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello expected, hello;
    expected.use = kUseHostMemory;
    const bool proven = prove_as_server(socket.get(), terms.key, terms.job_id, expected, &hello,
                                        milliseconds(20000))
                            .ok();
    const TimePoint deadline = now() + std::chrono::seconds(10);
    for (const int so_far = handled; handled < so_far + 5 && now() < deadline;)
      std::this_thread::yield();
    if (proven) (void)send_descriptor(socket.get(), memfd.get());
  });
  MappedMemory memory;
  std::vector<WatchedPeer> watched;
  Status status;
  {
    const Alarms alarms(2000);
    status = member.follow(0, geometry, &memory, &watched);
  }
  leader.join();
  CHECK_MESSAGE(status.ok(), status.message);
  CHECK(memory.size == geometry.total_bytes());
}

TEST_CASE(
    "silence, garbage and hang-ups at a host's socket do not keep its ranks from sharing memory") {
  const HostGeometry geometry{2, 4096};
  MeetingTerms terms;
  terms.job_id = "job";
  HostMeeting leader(terms);
  std::string name;
  REQUIRE(leader.listen(&name).ok());
  std::vector<UniqueFd> strangers(20);  // one after another they would outlast the ranks' patience
  for (std::size_t i = 0; i < strangers.size(); ++i) {
    REQUIRE(connect_unix(name, &strangers[i]).ok());
    const std::string garbage(i % 4 == 0 ? 0 : i % 4 == 1 ? 7 : 200, 'G');
    REQUIRE(send_all(strangers[i].get(), garbage.data(), garbage.size(), milliseconds(500)).ok());
    if (i % 4 == 3) strangers[i].reset();
  }
  terms.rank = 1;
  HostMeeting member(terms);
  REQUIRE(member.reach(name));
  MappedMemory memories[2];
  std::vector<WatchedPeer> watched[2];
  Status led;
  std::thread host =
      start_quiet_thread([&] { led = leader.lead({1}, geometry, &memories[0], &watched[0]); });
  const Status followed = member.follow(0, geometry, &memories[1], &watched[1]);
  host.join();
  CHECK_MESSAGE(led.ok(), led.message);
  CHECK_MESSAGE(followed.ok(), followed.message);
  REQUIRE(watched[0].size() == 1);
  CHECK(watched[0][0].rank == 1);
  CHECK(memories[1].size == geometry.total_bytes());
}

TEST_CASE("an address that nobody listens at is told with the reason, before the timeout") {
  MeetingTerms terms;
  terms.rank = 1;
  terms.timeout = milliseconds(20000);
  TcpMeeting meeting(terms, make_topology(1, {0, 1}), {{"127.0.0.1", "127.0.0.2"}});
  std::string card;
  REQUIRE(meeting.listen(&card).ok());
  std::string closed = card;
  const std::uint16_t port = 1;  // tcpmux: nobody
  std::memcpy(closed.data(), &port, sizeof port);
  REQUIRE(meeting.set_addresses(0, closed).ok());
  RemoteTransport remote;
  const TimePoint start = now();
  const Status status = meeting.connect_all(&remote);
  CHECK(now() - start < std::chrono::seconds(10));
  CAPTURE(status.message);
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  CHECK(status.message.find(std::string("rank 0 on ") + host) != std::string::npos);
  for (const char* tried : {"127.0.0.1:1: Connection refused", "127.0.0.2:1: Connection refused"})
    CHECK(status.message.find(tried) != std::string::npos);
}

TEST_CASE("ranks listen inside HVRUN_PORT_RANGE, and say so when none of it is free") {
  UniqueFd other;
  std::uint16_t first = 0;
  // A pair of ports of which the first is taken; the second may be anybody's.
  REQUIRE(listen_tcp(0, &other, &first).ok());
  TcpSettings settings{{"127.0.0.1"}};
  settings.ports = {first, first};
  std::string card;
  TcpMeeting full({}, make_topology(1, {0, 1}), settings);
  const Status status = full.listen(&card);
  CHECK_FALSE(status.ok());
  for (const std::string& part : {std::string("no port of ") + std::to_string(first) + " is free",
                                  std::string("in use"), std::string("HVRUN_PORT_RANGE")}) {
    CAPTURE(part);
    CHECK(status.message.find(part) != std::string::npos);
  }
  other.reset();
  TcpMeeting free({}, make_topology(1, {0, 1}), settings);
  const Status bound = free.listen(&card);
  REQUIRE_MESSAGE(bound.ok(), bound.message);
  std::uint16_t port = 0;
  std::memcpy(&port, card.data(), sizeof port);
  CHECK(port == first);
}

TEST_CASE("HVRUN_INTERFACES that allows no address is an error that lists what there is") {
  TcpSettings settings;
  settings.interfaces = *InterfaceFilter::parse("nosuch0");
  TcpMeeting meeting({}, make_topology(1, {0, 1}), settings);
  std::string card;
  const Status status = meeting.listen(&card);
  CHECK_FALSE(status.ok());
  CHECK(status.message.find("HVRUN_INTERFACES=nosuch0 allows none") != std::string::npos);
  CHECK(status.message.find("lo 127.0.0.1") != std::string::npos);
}

TEST_CASE("a malformed card of addresses is refused") {
  MeetingTerms terms;
  TcpMeeting meeting(terms, make_topology(0, {0, 1}));
  CHECK(meeting.set_addresses(1, "nonsense").code == StatusCode::kContract);
  CHECK_FALSE(meeting.set_addresses(1, std::string(6, '\0') + std::string(4, '\0')).ok());
}

TEST_CASE("our threads block every signal, and the caller's mask is as before") {
  sigset_t before, after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  bool blocked = true;
  start_quiet_thread([&] {
    sigset_t mine;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGPROF})
      blocked = blocked && ::sigismember(&mine, signal);
  }).join();
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  CHECK(blocked);
  CHECK(::sigismember(&after, SIGUSR1) == ::sigismember(&before, SIGUSR1));
}

TEST_CASE(
    "the I/O thread rings for a watched descriptor once for each change, and for an armed one "
    "once") {
  std::atomic<int> rings{0};
  SocketPair watched, armed;
  std::atomic<bool> happened{false};
  IoThread io([&] { ++rings; });
  io.watch(watched.left.get(), &happened);
  io.watch_when_armed(armed.left.get());
  io.start();
  const auto rung = [&](int count) {
    const TimePoint deadline = now() + std::chrono::seconds(10);
    while (rings < count && now() < deadline) std::this_thread::yield();
    return rings >= count;
  };
  REQUIRE(::write(armed.right.get(), "x", 1) == 1);
  REQUIRE(::write(watched.right.get(), "x", 1) == 1);
  CHECK(rung(1));
  CHECK(happened);
  const int so_far = rings;
  io.arm();
  CHECK(rung(so_far + 1));
}

}  // namespace hv::runtime
