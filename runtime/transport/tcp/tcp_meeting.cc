// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_meeting.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/transport/tcp/link_local.h"
#include "runtime/transport/tcp/tcp_transport.h"
#include "src/base/boot_id.h"
#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/socket.h"
#include "src/wire/codec.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kMaxAddresses = 16;
constexpr std::size_t kMostCandidates = 64;  // of a peer
constexpr std::size_t kMaxStrangers = 64;  // unproven incoming connections beyond the expected ones
constexpr std::size_t kMaxHostName = 255;
constexpr int kRounds = 5;
constexpr std::chrono::milliseconds kBetweenKinds{200};
constexpr std::chrono::seconds kOneHandshake{10};
// A rank of this job has proven itself by then, once it is answered. Where others wait.
constexpr std::chrono::seconds kTimeToProve{2};
constexpr std::size_t kMostNamed = 4;  // peers whose addresses a message lists
constexpr const char* kFirewallHint =
    "; does a firewall stand between the hosts (HVRUN_PORT_RANGE), or should HVRUN_INTERFACES name "
    "the network between them?";

struct AddressCard {
  std::uint16_t port = 0;
  std::string machine;
  std::string host;  // its name
  std::vector<std::string> addresses;
  std::vector<std::uint8_t> kinds;      // of each address, an AddressKind
  std::vector<std::string> interfaces;  // of each address, its name there
  void fields(auto& a) { a(port, machine, host, addresses, kinds, interfaces); }
  bool is_whole() const {
    return addresses.size() <= kMaxAddresses && kinds.size() == addresses.size() &&
           interfaces.size() == addresses.size() && host.size() <= kMaxHostName;
  }
};

// Names the network namespace: only there does a loopback address mean the same thing.
std::string machine_name() {
  struct stat info {};
  if (::stat("/proc/self/ns/net", &info) != 0) return boot_id() + "/?";
  return boot_id() + "/" + std::to_string(info.st_ino);
}

std::string host_name() {
  char name[kMaxHostName + 1] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// A connection's failure without the address, which stands in front of it already.
std::string reason_in(const Status& status, const SocketAddress& address) {
  const std::string doing = "connect to " + address.text() + ": ";
  return status.message.rfind(doing, 0) == 0 ? status.message.substr(doing.size()) : status.message;
}

// A host that answers nothing is noticed by the kernel within about 20 s while nothing is under way
// to it, even where no agent watches it. No TCP_USER_TIMEOUT: it counts as silent, too, the peer
// that is stopped (Ctrl-Z) behind a full window, though its host answers every probe. A link that
// dies with bytes under way is the business of peer_watch.h and of the agents (--lost-after).
void tune(int socket) {
  const int on = 1, idle = 10, interval = 5, count = 2;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

// Of what this process or the system may give back later.
bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// accept() complains of descriptors even when nobody is there.
bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

// A few dozen bytes on a fresh socket: they fit into its buffer, or it is broken.
bool send_small(int socket, const void* bytes, std::size_t size) {
  return ::send(socket, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size);
}

}  // namespace

TcpMeeting::TcpMeeting(const MeetingTerms& terms, const Topology& topology, TcpSettings settings)
    : terms_(terms), topology_(topology), settings_(std::move(settings)) {
  for (int rank = 0; rank < topology_.size; ++rank)
    if (topology_.host_of[static_cast<std::size_t>(rank)] !=
        topology_.host_of[static_cast<std::size_t>(topology_.rank)])
      peers_[rank].streams.resize(static_cast<std::size_t>(settings_.streams));
}

Status TcpMeeting::choose_own_addresses(std::vector<InterfaceAddress>* chosen) const {
  for (const std::string& ip : settings_.addresses)
    chosen->push_back({"", ip, kind_of_address("", ip)});
  if (!settings_.addresses.empty()) return Status::success();
  const std::vector<InterfaceAddress> all = interfaces_up();
  *chosen = choose_addresses(all, settings_.interfaces);
  if (!chosen->empty() || settings_.interfaces.is_empty()) return Status::success();
  return {StatusCode::kSystem,
          "connect the hosts: HVRUN_INTERFACES=" + printable(settings_.interfaces.text()) +
              " allows none of this host's addresses (" + describe(all) +
              "); name one of these interfaces or their subnets"};
}

Status TcpMeeting::listen(std::string* card) {
  std::vector<InterfaceAddress> own;
  if (Status status = choose_own_addresses(&own); !status.ok()) return status;
  Status status = listen_tcp_in(settings_.ports, static_cast<std::uint32_t>(topology_.rank),
                                &listener_, &port_);
  if (!status.ok() && settings_.ports.is_any())
    return {status.code, "open a port for the ranks of other hosts: " + status.message};
  if (!status.ok())
    return {status.code, "open a port for the ranks of other hosts: " + status.message +
                             "; give HVRUN_PORT_RANGE more ports than ranks run on one host"};
  AddressCard mine;
  mine.port = port_;
  mine.machine = machine_name();
  mine.host = host_name();
  if (own.size() > kMaxAddresses) own.resize(kMaxAddresses);
  for (const InterfaceAddress& address : own) {
    mine.addresses.push_back(address.ip);
    mine.kinds.push_back(static_cast<std::uint8_t>(address.kind));
    mine.interfaces.push_back(address.interface);
  }
  *card = encode(mine);
  return Status::success();
}

void TcpMeeting::add_link_local_candidates(Peer* peer) const {
  const std::vector<std::string> pairs = link_local_pairs(
      std::exchange(peer->link_local, {}), choose_addresses(interfaces_up(), settings_.interfaces),
      kMostCandidates - std::min(kMostCandidates, peer->candidates.size()));
  std::vector<Candidate> added;
  for (const std::string& ip : pairs)
    if (const auto address = SocketAddress::parse(ip, peer->port))
      added.push_back({*address, AddressKind::kLinkLocal});
  peer->candidates.insert(
      peer->candidates.begin() + static_cast<std::ptrdiff_t>(peer->next_candidate), added.begin(),
      added.end());
}

Status TcpMeeting::set_addresses(int rank, const std::string& card) {
  AddressCard theirs;
  if (!decode(card, &theirs) || !theirs.is_whole())
    return {StatusCode::kContract,
            "connect to rank " + std::to_string(rank) + ": its addresses are malformed"};
  const auto found = peers_.find(rank);
  if (found == peers_.end()) return Status::success();
  Peer& peer = found->second;
  peer.host = printable(theirs.host);
  peer.port = theirs.port;
  const bool is_same_machine = theirs.machine == machine_name();
  for (std::size_t i = 0; i < theirs.addresses.size(); ++i) {
    const auto kind = static_cast<AddressKind>(
        std::min(theirs.kinds[i], static_cast<std::uint8_t>(AddressKind::kLoopback)));
    const auto address = SocketAddress::parse(theirs.addresses[i], theirs.port);
    if (!address || (address->is_loopback() && !is_same_machine)) continue;
    if (address->family() != AF_INET6 || !address->is_link_local())
      peer.candidates.push_back({*address, kind});
    else
      peer.link_local.push_back({theirs.interfaces[i], address->ip(), AddressKind::kLinkLocal});
  }
  std::stable_sort(peer.candidates.begin(), peer.candidates.end(),
                   [](const auto& left, const auto& right) { return left.kind < right.kind; });
  if (peer.is_through())
    return {StatusCode::kSystem,
            "connect to " + name_of(rank) + ": its host has no address that leaves it (it told " +
                (theirs.addresses.empty() ? "none" : printable(join(theirs.addresses, ", "))) +
                "); is its network up, and does HVRUN_INTERFACES allow it?"};
  return Status::success();
}

std::string TcpMeeting::name_of(int rank) const {
  const int host = topology_.host_of[static_cast<std::size_t>(rank)];
  const auto peer = peers_.find(rank);
  return "rank " + std::to_string(rank) + " on " +
         (peer == peers_.end() || peer->second.host.empty() ? "host " + std::to_string(host)
                                                            : peer->second.host);
}

bool TcpMeeting::is_tried(int rank) const {
  return std::any_of(attempts_.begin(), attempts_.end(), [&](const Attempt& attempt) {
    return attempt.peer == rank && !attempt.is_incoming;
  });
}

bool TcpMeeting::is_everybody_here() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second.is_whole(); });
}

Status TcpMeeting::start(int rank, int stream, const SocketAddress& address) {
  Attempt attempt;
  attempt.peer = rank;
  attempt.stream = stream;
  attempt.address = address;
  attempt.is_connecting = true;
  attempt.deadline = now() + std::min<Duration>(terms_.timeout, kOneHandshake);
  Status status = start_connect(address, &attempt.socket);
  if (status.ok()) attempts_.push_back(std::move(attempt));
  return status;
}

// All addresses of the first kind that this round has not tried yet.
void TcpMeeting::start_next_kind(int rank, Peer* peer) {
  if (peer->is_link_local_next()) add_link_local_candidates(peer);
  if (peer->next_candidate == peer->candidates.size()) return;
  const AddressKind kind = peer->candidates[peer->next_candidate].kind;
  for (; peer->next_candidate < peer->candidates.size(); ++peer->next_candidate) {
    Candidate& candidate = peer->candidates[peer->next_candidate];
    if (candidate.kind != kind) return;
    const Status status = start(rank, 0, candidate.address);
    if (!status.ok()) candidate.failure = reason_in(status, candidate.address);
  }
}

// As often as a round of addresses may begin.
void TcpMeeting::start_further_streams(int rank, Peer* peer) {
  if (is_tried(rank) || peer->rounds >= kRounds || now() < peer->next_step) return;
  if (!has_descriptor()) return;
  ++peer->rounds;
  peer->next_step = now() + kBetweenKinds;
  for (int stream = 1; stream < settings_.streams; ++stream) {
    if (peer->has(stream)) continue;
    const Status status = start(rank, stream, *peer->address);
    if (status.ok()) continue;
    for (Candidate& candidate : peer->candidates)
      if (candidate.address.text() == peer->address->text())
        candidate.failure = reason_in(status, *peer->address);
  }
}

// To each lower rank: a round goes through the kinds of its addresses, and rounds are repeated.
void TcpMeeting::start_attempts() {
  for (auto& [rank, peer] : peers_) {
    if (rank > topology_.rank || peer.is_whole()) continue;
    if (peer.address) {
      start_further_streams(rank, &peer);
      continue;
    }
    const bool is_busy = is_tried(rank);
    const bool may_overlap = now() >= peer.next_step && !peer.is_link_local_next();
    const bool goes_on = peer.rounds > 0 && !peer.is_through() && (!is_busy || may_overlap);
    const bool begins = !goes_on && (peer.rounds == 0 || peer.is_through()) && !is_busy &&
                        peer.rounds < kRounds && now() >= peer.next_step;
    if (!(goes_on || begins) || !has_descriptor()) continue;
    if (begins) {
      ++peer.rounds;
      peer.next_candidate = 0;
    }
    peer.next_step = now() + kBetweenKinds;
    start_next_kind(rank, &peer);
  }
}

// A round without a socket would be none. A stranger makes room, as for a peer at the door.
bool TcpMeeting::has_descriptor() {
  do {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket || !is_shortage(errno)) return true;
    shortage_ = system_status("connect to a rank of another host", errno);
  } while (drop_oldest_stranger());
  return false;
}

// A peer of this job sends its greeting as soon as it is connected, and its proof as soon as it is
// answered. For the next connection that comes the longest silent one is closed, else one that has
// greeted, which anybody can, and has not proven itself in time: if it is a peer's after all, the
// peer connects again. No attempt is closed within its time, for it may be a peer's.
bool TcpMeeting::drop_oldest_stranger() {
  const auto is_silent = [](const Attempt& attempt) {
    return attempt.is_incoming && !is_readable(attempt.socket.get());
  };
  auto oldest = std::find_if(attempts_.begin(), attempts_.end(), [&](const Attempt& attempt) {
    return !attempt.greeted_at && is_silent(attempt);
  });
  if (oldest == attempts_.end()) {
    const TimePoint late = now() - kTimeToProve;
    oldest = std::find_if(attempts_.begin(), attempts_.end(), [&](const Attempt& attempt) {
      return attempt.greeted_at && *attempt.greeted_at < late && is_silent(attempt);
    });
  }
  if (oldest == attempts_.end()) return false;
  give_up(*oldest, oldest->greeted_at ? "it has greeted and proven nothing, and others wait"
                                      : "it has said nothing, and others wait");
  attempts_.erase(oldest);
  return true;
}

// Out of descriptors or memory: one stranger a turn makes room, so that who came just now is heard
// first; else whoever is at the door waits there. What else is wrong is wrong with one connection.
void TcpMeeting::accept_some() {
  const std::size_t expected = peers_.size() * static_cast<std::size_t>(settings_.streams);
  shortage_ = {};
  for (bool has_dropped = false;;) {
    if (attempts_.size() > 4 * expected + kMaxStrangers) {
      if (!is_readable(listener_.get())) return;
      if (!drop_oldest_stranger()) {
        shortage_ = {StatusCode::kSystem,
                     "take a connection of a rank of another host: too many have connected that "
                     "have not proven themselves"};
        return;
      }
    }
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      const int reason = errno;
      if (!is_shortage(reason) || !is_readable(listener_.get())) return;
      if (has_dropped) return;
      has_dropped = drop_oldest_stranger();
      if (has_dropped) continue;
      shortage_ = system_status("take a connection of a rank of another host", reason);
      return;
    }
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
    for (Candidate& candidate : peers_[attempt.peer].candidates)
      if (candidate.address.text() == attempt.address.text()) candidate.failure = why;
  }
  return false;
}

bool TcpMeeting::keep(Attempt* attempt) {
  tune(attempt->socket.get());
  Peer& peer = peers_[attempt->peer];
  peer.streams[static_cast<std::size_t>(attempt->stream)] =
      ForkGuardedFd(std::move(attempt->socket));
  if (!attempt->is_incoming && attempt->stream == 0) {
    peer.address = attempt->address;
    peer.rounds = 0;
    peer.next_step = {};
  }
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
  if (!attempt->is_incoming && peers_[attempt->peer].has(attempt->stream))
    return false;  // another address was faster
  if (now() >= attempt->deadline) return give_up(*attempt, "no answer in time");
  return attempt->is_incoming ? advance_incoming(attempt) : advance_outgoing(attempt);
}

bool TcpMeeting::advance_outgoing(Attempt* attempt) {
  if (attempt->is_connecting) {
    pollfd ready{attempt->socket.get(), POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1) return true;  // a signal may cut even this short
    const Status status = finish_connect(attempt->socket.get(), attempt->address);
    if (!status.ok()) return give_up(*attempt, reason_in(status, attempt->address));
    attempt->is_connecting = false;
    attempt->hello.from = static_cast<std::uint32_t>(topology_.rank);
    attempt->hello.to = static_cast<std::uint32_t>(attempt->peer);
    attempt->hello.epoch = static_cast<std::uint32_t>(terms_.epoch);
    attempt->hello.use = use_of_stream(attempt->stream);
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
  const auto peer = peers_.find(from);
  const int stream = stream_of_use(hello.use);
  return hello.has_mark() && hello.to == static_cast<std::uint32_t>(topology_.rank) &&
         hello.epoch == static_cast<std::uint32_t>(terms_.epoch) && from > topology_.rank &&
         peer != peers_.end() && stream >= 0 && stream < settings_.streams &&
         !peer->second.has(stream);
}

bool TcpMeeting::advance_incoming(Attempt* attempt) {
  bool is_whole = false;
  if (!attempt->greeted_at) {
    if (!receive(attempt, &attempt->hello, sizeof(Hello), &is_whole)) return false;
    if (!is_whole) return true;
    if (!is_expected(attempt->hello))
      return give_up(*attempt, "a stranger, or a connection meant for another rank");
    attempt->answer.nonce = random_nonce();
    attempt->answer.proof = server_proof(terms_.key, purpose_of(terms_.job_id, attempt->hello),
                                         attempt->hello.nonce, attempt->answer.nonce);
    if (!send_small(attempt->socket.get(), &attempt->answer, sizeof(ServerAnswer)))
      return give_up(*attempt, "it hung up");
    attempt->greeted_at = now();
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
  attempt->stream = stream_of_use(attempt->hello.use);
  return peers_[attempt->peer].has(attempt->stream) ? false : keep(attempt);
}

// Until a socket is ready, or it is time to try or to give up something. While a connection waits
// to be accepted for want of a descriptor or a place, the listener is always ready: it is not
// polled then.
bool TcpMeeting::wait_for_sockets(TimePoint deadline) {
  std::vector<pollfd> entries = {{shortage_.ok() ? listener_.get() : -1, POLLIN, 0}};
  for (const Attempt& attempt : attempts_)
    entries.push_back(
        {attempt.socket.get(), static_cast<short>(attempt.is_connecting ? POLLOUT : POLLIN), 0});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now());
  if (left.count() <= 0) return false;
  ::poll(entries.data(), entries.size(), static_cast<int>(std::min(left, kBetweenKinds).count()));
  return true;
}

// "10.0.0.1:4000: Connection refused, [fe80::1%eth0]:4000: no answer": each address with its
// reason.
std::string TcpMeeting::tried_addresses(int rank, const Peer& peer) const {
  if (rank > topology_.rank)
    return "it did not connect to this rank, which listens on port " + std::to_string(port_);
  std::vector<std::string> tried;
  for (const Candidate& candidate : peer.candidates)
    tried.push_back(candidate.address.text() + ": " +
                    (candidate.failure.empty() ? "no answer" : candidate.failure));
  if (tried.empty()) return "link-local addresses only, and this host has none";
  return join(tried, ", ");
}

// A peer to whom every address has failed as often as we try.
Status TcpMeeting::find_hopeless() const {
  for (const auto& [rank, peer] : peers_) {
    const bool is_through = peer.address || peer.is_through();
    if (peer.rounds < kRounds || !is_through || peer.is_whole() || is_tried(rank)) continue;
    return {StatusCode::kSystem, "connect to " + name_of(rank) + ": tried " +
                                     tried_addresses(rank, peer) + kFirewallHint};
  }
  return Status::success();
}

Status TcpMeeting::time_out() const {
  std::vector<std::string> missing;
  std::size_t more = 0;
  for (const auto& [rank, peer] : peers_) {
    if (peer.is_whole()) continue;
    if (missing.size() < kMostNamed) {
      missing.push_back(name_of(rank) + " (" + tried_addresses(rank, peer) + ")");
    } else {
      ++more;
    }
  }
  return {StatusCode::kSystem, "connect the hosts: no proven connection within " +
                                   format_duration(terms_.timeout) + " with " +
                                   join(missing, ", ") +
                                   (more > 0 ? " and " + std::to_string(more) + " more" : "") +
                                   (shortage_.ok() ? kFirewallHint : "; " + shortage_.message)};
}

Status TcpMeeting::connect_all(RemoteTransport* remote) {
  const TimePoint deadline = now() + terms_.timeout;
  while (!is_everybody_here()) {
    start_attempts();
    if (Status status = find_hopeless(); !status.ok()) return status;
    if (!wait_for_sockets(deadline)) return time_out();
    accept_some();
    attempts_.remove_if([this](Attempt& attempt) { return !advance(&attempt); });
  }
  attempts_.clear();
  std::map<int, std::vector<ForkGuardedFd>> sockets;
  for (auto& [rank, peer] : peers_) sockets[rank] = std::move(peer.streams);
  Status status;
  auto transport = TcpTransport::make(std::move(sockets), &status);
  if (!transport) return status;
  remote->poll_fd = transport->poll_fd();
  remote->pulse = transport.get();
  remote->transport = std::move(transport);
  return Status::success();
}

}  // namespace hv::runtime
