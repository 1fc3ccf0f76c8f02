// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_meeting.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "runtime/transport/tcp/tcp_transport.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/socket.h"
#include "src/wire/codec.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kMaxAddresses = 16;
constexpr std::size_t kMaxStrangers = 64;  // unproven incoming connections beyond the expected ones
constexpr int kTries = 5;
constexpr std::chrono::milliseconds kBetweenTries{200};
constexpr std::chrono::seconds kOneHandshake{10};

struct AddressCard {
  std::uint16_t port = 0;
  std::string machine;
  std::vector<std::string> addresses;
  template <class Archive>
  void fields(Archive& archive) {
    archive(port);
    archive(machine);
    archive(addresses);
  }
};

// Names the network namespace: only there does a loopback address mean the same thing.
std::string machine_name() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat info {};
  if (::stat("/proc/self/ns/net", &info) != 0) return boot + "/?";
  return boot + "/" + std::to_string(info.st_ino);
}

// A host that answers nothing is noticed by the kernel within about 20 s while nothing is under way
// to it, even where no agent watches it. No TCP_USER_TIMEOUT: it counts as silent, too, the peer
// that is stopped (Ctrl-Z) behind a full window, though its host answers every probe. A link that
// dies with bytes under way is the agents' business (--lost-after).
void tune(int socket) {
  const int on = 1, idle = 10, interval = 5, count = 2;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

// A few dozen bytes on a fresh socket: they fit into its buffer, or it is broken.
bool send_small(int socket, const void* bytes, std::size_t size) {
  return ::send(socket, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size);
}

}  // namespace

TcpMeeting::TcpMeeting(const MeetingTerms& terms, const Topology& topology)
    : terms_(terms), topology_(topology) {
  for (int rank = 0; rank < topology_.size; ++rank)
    if (topology_.host_of[static_cast<std::size_t>(rank)] !=
        topology_.host_of[static_cast<std::size_t>(topology_.rank)])
      peers_[rank];
}

Status TcpMeeting::listen(const std::vector<std::string>& addresses, std::string* card) {
  AddressCard mine;
  if (Status status = listen_tcp(0, &listener_, &mine.port); !status.ok()) return status;
  mine.machine = machine_name();
  mine.addresses = addresses.empty() ? interface_addresses(true) : addresses;
  if (mine.addresses.size() > kMaxAddresses) mine.addresses.resize(kMaxAddresses);
  *card = encode(mine);
  return Status::success();
}

Status TcpMeeting::set_addresses(int rank, const std::string& card) {
  AddressCard theirs;
  if (!decode(card, &theirs) || theirs.addresses.size() > kMaxAddresses)
    return {StatusCode::kContract,
            "connect to rank " + std::to_string(rank) + ": its addresses are malformed"};
  const auto peer = peers_.find(rank);
  if (peer == peers_.end()) return Status::success();
  const bool is_same_machine = theirs.machine == machine_name();
  for (const std::string& ip : theirs.addresses) {
    const auto address = SocketAddress::parse(ip, theirs.port);
    if (address && (is_same_machine || !address->is_loopback()))
      peer->second.addresses.push_back(*address);
  }
  if (peer->second.addresses.empty())
    return {StatusCode::kSystem,
            "connect to " + name_of(rank) + ": its host has no address that leaves it"};
  return Status::success();
}

std::string TcpMeeting::name_of(int rank) const {
  const int host = topology_.host_of[static_cast<std::size_t>(rank)];
  return "rank " + std::to_string(rank) + " on host " + std::to_string(host);
}

// To all addresses of each lower rank that has no attempt under way.
void TcpMeeting::start_attempts() {
  for (auto& [rank, peer] : peers_) {
    if (rank > topology_.rank || connected_.count(rank) || peer.tries >= kTries ||
        now() < peer.next_try)
      continue;
    if (std::any_of(attempts_.begin(), attempts_.end(),
                    [r = rank](const Attempt& a) { return a.peer == r; }))
      continue;
    ++peer.tries;
    peer.next_try = now() + kBetweenTries;
    for (const SocketAddress& address : peer.addresses) {
      Attempt attempt;
      attempt.peer = rank;
      attempt.address = address;
      attempt.is_connecting = true;
      attempt.deadline = now() + terms_.timeout;
      const Status status = start_connect(address, &attempt.socket);
      if (status.ok()) {
        attempts_.push_back(std::move(attempt));
      } else {
        peer.last_failure = status.message;
      }
    }
  }
}

void TcpMeeting::accept_some() {
  for (;;) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (attempts_.size() > 4 * peers_.size() + kMaxStrangers)
      continue;  // refused: too many that prove nothing
    Attempt attempt;
    attempt.socket = std::move(socket);
    attempt.is_incoming = true;
    attempt.deadline = now() + kOneHandshake;
    attempts_.push_back(std::move(attempt));
  }
}

bool TcpMeeting::give_up(const Attempt& attempt, const std::string& why) {
  if (attempt.is_incoming) {
    HV_LOG(kDebug, "transport") << "refused a connection: " << why;
  } else {
    peers_[attempt.peer].last_failure = attempt.address.text() + ": " + why;
  }
  return false;
}

bool TcpMeeting::keep(Attempt* attempt) {
  tune(attempt->socket.get());
  connected_.emplace(attempt->peer, ForkGuardedFd(std::move(attempt->socket)));
  return false;
}

// Collects exactly `size` bytes over several calls; true: go on waiting or, with *is_whole, use
// them.
bool TcpMeeting::receive(Attempt* attempt, void* to, std::size_t size, bool* is_whole) {
  while (attempt->got < size) {
    const ssize_t got = ::recv(attempt->socket.get(), static_cast<char*>(to) + attempt->got,
                               size - attempt->got, 0);
    if (got < 0 && errno == EAGAIN) return true;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return give_up(*attempt, errno_text(errno));
    if (got == 0)
      return give_up(*attempt, "it closed the connection; another job, or another key?");
    attempt->got += static_cast<std::size_t>(got);
  }
  attempt->got = 0;
  return *is_whole = true;
}

bool TcpMeeting::advance(Attempt* attempt) {
  if (!attempt->is_incoming && connected_.count(attempt->peer))
    return false;  // another address was faster
  if (now() >= attempt->deadline) return give_up(*attempt, "no answer in time");
  return attempt->is_incoming ? advance_incoming(attempt) : advance_outgoing(attempt);
}

bool TcpMeeting::advance_outgoing(Attempt* attempt) {
  if (attempt->is_connecting) {
    pollfd ready{attempt->socket.get(), POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1) return true;  // a signal may cut even this short
    const Status status = finish_connect(attempt->socket.get(), attempt->address);
    if (!status.ok()) return give_up(*attempt, status.message);
    attempt->is_connecting = false;
    attempt->hello.from = static_cast<std::uint32_t>(topology_.rank);
    attempt->hello.to = static_cast<std::uint32_t>(attempt->peer);
    attempt->hello.epoch = static_cast<std::uint32_t>(terms_.epoch);
    attempt->hello.use = kUseData;
    attempt->hello.nonce = random_nonce();
    if (!send_small(attempt->socket.get(), &attempt->hello, sizeof(Hello)))
      return give_up(*attempt, "it hung up");
    return true;
  }
  bool is_whole = false;
  if (!receive(attempt, &attempt->answer, sizeof(ServerAnswer), &is_whole)) return false;
  if (!is_whole) return true;
  const std::string purpose = purpose_of(terms_.job_id, attempt->hello);
  if (!equal_proofs(attempt->answer.proof,
                    server_proof(terms_.key, purpose, attempt->hello.nonce, attempt->answer.nonce)))
    return give_up(*attempt, "the other end does not hold this job's key");
  const Proof mine = client_proof(terms_.key, purpose, attempt->hello.nonce, attempt->answer.nonce);
  if (!send_small(attempt->socket.get(), mine.data(), mine.size()))
    return give_up(*attempt, "it hung up");
  return keep(attempt);
}

bool TcpMeeting::is_expected(const Hello& hello) const {
  const int from = static_cast<int>(hello.from);
  return hello.has_mark() && hello.to == static_cast<std::uint32_t>(topology_.rank) &&
         hello.epoch == static_cast<std::uint32_t>(terms_.epoch) && hello.use == kUseData &&
         from > topology_.rank && peers_.count(from) && !connected_.count(from);
}

bool TcpMeeting::advance_incoming(Attempt* attempt) {
  bool is_whole = false;
  if (!attempt->has_greeted) {
    if (!receive(attempt, &attempt->hello, sizeof(Hello), &is_whole)) return false;
    if (!is_whole) return true;
    if (!is_expected(attempt->hello))
      return give_up(*attempt, "a stranger, or a connection meant for another rank");
    attempt->answer.nonce = random_nonce();
    attempt->answer.proof = server_proof(terms_.key, purpose_of(terms_.job_id, attempt->hello),
                                         attempt->hello.nonce, attempt->answer.nonce);
    if (!send_small(attempt->socket.get(), &attempt->answer, sizeof(ServerAnswer)))
      return give_up(*attempt, "it hung up");
    attempt->has_greeted = true;
  }
  Proof& theirs = attempt->answer.proof;  // sent already: its place serves for what comes back
  is_whole = false;
  if (!receive(attempt, theirs.data(), theirs.size(), &is_whole)) return false;
  if (!is_whole) return true;
  const std::string purpose = purpose_of(terms_.job_id, attempt->hello);
  if (!equal_proofs(theirs,
                    client_proof(terms_.key, purpose, attempt->hello.nonce, attempt->answer.nonce)))
    return give_up(*attempt, "it does not hold this job's key");
  attempt->peer = static_cast<int>(attempt->hello.from);
  return connected_.count(attempt->peer) ? false : keep(attempt);
}

// Until a socket is ready, or it is time to try or to give up something.
bool TcpMeeting::wait_for_sockets(TimePoint deadline) {
  std::vector<pollfd> entries = {{listener_.get(), POLLIN, 0}};
  for (const Attempt& attempt : attempts_)
    entries.push_back(
        {attempt.socket.get(), static_cast<short>(attempt.is_connecting ? POLLOUT : POLLIN), 0});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now());
  if (left.count() <= 0) return false;
  ::poll(entries.data(), entries.size(), static_cast<int>(std::min(left, kBetweenTries).count()));
  return true;
}

// A peer to whom every address has failed as often as we try.
Status TcpMeeting::find_hopeless() const {
  for (const auto& [rank, peer] : peers_) {
    if (peer.tries < kTries || connected_.count(rank)) continue;
    const bool is_tried = std::any_of(attempts_.begin(), attempts_.end(),
                                      [r = rank](const Attempt& a) { return a.peer == r; });
    if (!is_tried)
      return {StatusCode::kSystem, "connect to " + name_of(rank) + ": " + peer.last_failure +
                                       "; does a firewall stand between the hosts?"};
  }
  return Status::success();
}

Status TcpMeeting::time_out() const {
  std::string missing, reason;
  for (const auto& [rank, peer] : peers_) {
    if (connected_.count(rank)) continue;
    missing += (missing.empty() ? "" : ", ") + name_of(rank);
    if (reason.empty() && !peer.last_failure.empty()) reason = " (" + peer.last_failure + ")";
  }
  return {StatusCode::kSystem, "connect the hosts: no proven connection with " + missing +
                                   " within " + std::to_string(terms_.timeout.count() / 1000) +
                                   " s" + reason + "; does a firewall stand between the hosts?"};
}

Status TcpMeeting::connect_all(RemoteTransport* remote) {
  const TimePoint deadline = now() + terms_.timeout;
  while (connected_.size() < peers_.size()) {
    start_attempts();
    if (Status status = find_hopeless(); !status.ok()) return status;
    if (!wait_for_sockets(deadline)) return time_out();
    accept_some();
    attempts_.remove_if([this](Attempt& attempt) { return !advance(&attempt); });
  }
  attempts_.clear();
  auto transport = std::make_unique<TcpTransport>(std::move(connected_));
  remote->poll_fd = transport->poll_fd();
  remote->transport = std::move(transport);
  return Status::success();
}

}  // namespace hv::runtime
