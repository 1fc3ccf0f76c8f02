// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rendezvous/rank_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {
namespace {

using rendezvous::Type;

constexpr std::size_t kMostClients = 4096;
constexpr std::size_t kMostUnsentToRank = 8u << 20;  // a client that does not read is dropped
constexpr auto kTimeToJoin = std::chrono::seconds(10);
constexpr std::size_t kLongestReason = 1000;
constexpr std::size_t kReadAtOnce = 16384;
// More than the kernel buffers of a process. A limit, because a forked child may go on sending.
constexpr std::size_t kMostLastBytes = 2 * rendezvous::kMaxPayload;

}  // namespace

RankSocket::RankSocket(EventLoop& loop, const JobKey& key, RankSocketCallbacks callbacks,
                       StallLimits stalls)
    : loop_(loop),
      key_(key),
      callbacks_(std::move(callbacks)),
      listener_(loop, [this](UniqueFd fd, std::int32_t pid) { add_client(std::move(fd), pid); }),
      stalls_(loop, stalls, callbacks_.on_stall) {}

RankSocket::~RankSocket() {
  for (const auto& [fd, client] : clients_) {
    loop_.unwatch(fd);
    loop_.cancel(client->deadline);
  }
}

void RankSocket::add_client(UniqueFd fd, std::int32_t pid) {
  if (clients_.size() >= kMostClients) return;
  auto client = std::make_shared<Client>();
  const int number = fd.get();
  client->fd = std::move(fd);
  client->pid = pid;
  clients_[number] = client;
  loop_.watch(number, EPOLLIN, [this, client](std::uint32_t events) { ready(client, events); });
  client->deadline = loop_.call_after(kTimeToJoin, [this, weak = std::weak_ptr(client)] {
    if (const auto late = weak.lock(); late && !late->has_joined) drop(*late);
  });
}

void RankSocket::ready(const ClientPointer& client, std::uint32_t events) {
  if (events & EPOLLOUT) flush(*client);
  if (!client->is_dropped && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) receive(*client);
}

bool RankSocket::receive(Client& client) {
  char bytes[kReadAtOnce];
  const ssize_t got = ::recv(client.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got <= 0 || !client.parser.feed({bytes, static_cast<std::size_t>(got)})) {
    drop(client);
    return false;
  }
  Frame frame;
  while (!client.is_dropped && client.parser.next(&frame)) {
    if (!handle(client, frame)) drop(client);
  }
  if (!client.is_dropped && client.parser.broken()) drop(client);
  check_fences();
  return !client.is_dropped;
}

bool RankSocket::handle(Client& client, const Frame& frame) {
  if (client.has_joined) return !client.has_left && handle_joined(client, frame);
  return handle_first(client, frame);
}

bool RankSocket::handle_first(Client& client, const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kJoin:
      return handle_message<rendezvous::Join>(
          frame, [&](const rendezvous::Join& request) { join(client, request); });
    case Type::kWaits:
      return handle_message<rendezvous::Waits>(frame, [&](const rendezvous::Waits& waits) {
        if (!rendezvous_.is_local(waits.rank) || !waits.stall.is_plausible()) return false;
        callbacks_.on_call_stall({waits.rank, waits.stall});
        return true;
      });
    default:
      return false;
  }
}

bool RankSocket::handle_joined(Client& client, const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kPut:
      return handle_message<rendezvous::Put>(frame, [&](rendezvous::Put put) {
        return put.key.size() <= rendezvous::kMaxKeyBytes &&
               put.value.size() <= rendezvous::kMaxValueBytes &&
               rendezvous_.put(client.rank, client.epoch, std::move(put.key), std::move(put.value));
      });
    case Type::kFence:
      return handle_message<rendezvous::Fence>(frame, [&](const rendezvous::Fence& fence) {
        rendezvous_.come_to_fence(client.rank, client.epoch, fence.number);
      });
    case Type::kGet:
      return handle_message<rendezvous::Get>(
          frame, [&](const rendezvous::Get& get) { answer(client, get); });
    case Type::kLost:
      return handle_message<rendezvous::Lost>(frame, [&](const rendezvous::Lost& lost) {
        callbacks_.on_lost({client.rank, lost.rank, printable(lost.reason, kLongestReason)});
      });
    case Type::kSteps:
      return handle_message<rendezvous::Steps>(frame, [&](const rendezvous::Steps& steps) {
        return reports_.keep_steps(client.rank, steps.times);
      });
    case Type::kStalled:
      return handle_message<rendezvous::Stalled>(frame, [&](const rendezvous::Stalled& stalled) {
        if (!stalled.stall.is_plausible()) return false;
        callbacks_.on_tensor_stall({client.rank, stalled.stall});
        return true;
      });
    case Type::kGoodbye:
      return handle_message<rendezvous::Goodbye>(
          frame, [&](const rendezvous::Goodbye&) { leave(client); });
    default:
      return false;
  }
}

std::string RankSocket::why_refused(const rendezvous::Join& request) const {
  if (request.protocol != rendezvous::kRankProtocol) {
    return "libhvrun speaks protocol " + std::to_string(request.protocol) + ", hvrun-agent " +
           std::to_string(rendezvous::kRankProtocol) + "; use those of one version";
  }
  if (request.epoch >= wire::kEpochsOfRanks) return "no rank has such an epoch";
  if (!rendezvous_.is_local(request.rank))
    return "rank " + std::to_string(request.rank) + " does not run on this host";
  for (const auto& [fd, other] : clients_) {
    // A rank that has joined anew is in a later epoch than a worker expects.
    if (!other->has_joined || other->has_left || other->rank != request.rank ||
        other->epoch < request.epoch)
      continue;
    // The socket of an ended process stays open in its forked children.
    if (::kill(other->pid, 0) == 0)
      return "this is a worker of rank " + std::to_string(request.rank) +
             ", which has joined already, as pid " + std::to_string(other->pid) +
             "; leave operations to that process";
  }
  return {};
}

void RankSocket::join(Client& client, const rendezvous::Join& request) {
  const std::string reason = why_refused(request);
  if (!reason.empty()) return send(client, rendezvous::Refused{reason});
  client.has_joined = true;
  client.rank = request.rank;
  client.epoch = request.epoch;
  loop_.cancel(client.deadline);
  reports_.note_joined(request.rank);
  rendezvous_.join(request.rank, request.epoch);
  send(client, rendezvous::Welcome{key_});
  for (const auto& [rank, why] : losses_) send(client, rendezvous::Event{rank, why});
  if (is_paused_) send(client, rendezvous::Silence{true});
}

void RankSocket::answer(Client& client, const rendezvous::Get& get) {
  const std::string* value = rendezvous_.get(client.epoch, get.rank, get.key);
  send(client, value ? rendezvous::Value{true, *value} : rendezvous::Value{});
}

void RankSocket::leave(Client& client) {
  client.has_left = true;
  reports_.note_left(client.rank, wall_clock_ns());
  rendezvous_.leave(client.rank, client.epoch);
}

void RankSocket::check_fences() {
  for (wire::FenceIn& fence : rendezvous_.complete()) callbacks_.on_fence(std::move(fence));
  stalls_.update(rendezvous_.has_waiting_rank());
}

void RankSocket::pass_fence(const wire::FenceOut& out) {
  const std::vector<std::uint32_t> ranks = rendezvous_.pass(out);
  const std::map<int, ClientPointer> clients = clients_;  // sending may drop one
  for (const auto& [fd, client] : clients) {
    const bool waits = std::find(ranks.begin(), ranks.end(), client->rank) != ranks.end();
    if (client->has_joined && !client->has_left && client->epoch == out.epoch && waits) {
      send(*client, rendezvous::FenceDone{out.number});
    }
  }
  check_fences();
}

// A rank's end may be seen before its last messages, such as its leave notice, have been read.
void RankSocket::read_last_messages(std::uint32_t rank) {
  const std::map<int, ClientPointer> clients = clients_;  // its end drops one
  for (const auto& [fd, client] : clients) {
    if (!client->has_joined || client->rank != rank) continue;
    for (std::size_t read = 0; read < kMostLastBytes && !client->is_dropped; read += kReadAtOnce)
      if (!receive(*client)) break;
  }
}

RankStanding RankSocket::rank_ended(std::uint32_t rank) {
  read_last_messages(rank);
  RankStanding standing = RankStanding::kLeft;
  if (!rendezvous_.has_ever_joined(rank)) standing = RankStanding::kNeverJoined;
  if (rendezvous_.is_joined(rank)) standing = RankStanding::kJoined;
  rendezvous_.note_end(rank);
  check_fences();
  return standing;
}

void RankSocket::report_loss(std::uint32_t rank, const std::string& reason) {
  if (!losses_.emplace(rank, reason).second) return;
  const std::map<int, ClientPointer> clients = clients_;
  for (const auto& [fd, client] : clients) {
    if (client->has_joined && !client->has_left && client->rank != rank)
      send(*client, rendezvous::Event{rank, reason});
  }
}

void RankSocket::pause_heartbeats(bool is_paused) {
  if (std::exchange(is_paused_, is_paused) == is_paused) return;
  stalls_.pause(is_paused);
  const std::map<int, ClientPointer> clients = clients_;
  for (const auto& [fd, client] : clients) {
    if (client->has_joined && !client->has_left) send(*client, rendezvous::Silence{is_paused});
  }
}

template <class Message>
void RankSocket::send(Client& client, const Message& message) {
  if (client.is_dropped) return;
  std::string frame = encode_frame_of(message);
  append_secret(&client.outgoing, frame);
  if constexpr (SecretMessage<Message>) wipe(&frame);
  flush(client);
}

void RankSocket::flush(Client& client) {
  while (!client.outgoing.empty()) {
    const ssize_t wrote = ::send(client.fd.get(), client.outgoing.data(), client.outgoing.size(),
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno != EAGAIN) return drop(client);
    if (wrote < 0) break;
    if (static_cast<std::size_t>(wrote) == client.outgoing.size()) {
      wipe(&client.outgoing);  // the job's key may have been in it
    } else {
      client.outgoing.erase(0, static_cast<std::size_t>(wrote));
    }
  }
  if (client.outgoing.size() > kMostUnsentToRank) return drop(client);
  const auto found = clients_.find(client.fd.get());
  const std::uint32_t events = client.outgoing.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
  loop_.watch(client.fd.get(), events, [this, pointer = found->second](std::uint32_t ready_for) {
    ready(pointer, ready_for);
  });
}

// Other holders of the client's pointer see is_dropped; the descriptor is closed at once.
void RankSocket::drop(Client& client) {
  if (std::exchange(client.is_dropped, true)) return;
  const int fd = client.fd.get();
  loop_.unwatch(fd);
  loop_.cancel(client.deadline);
  const auto found = clients_.find(fd);
  const ClientPointer alive = found->second;  // the caller may hold only a reference
  clients_.erase(found);
  client.fd.reset();
}

}  // namespace hv::launcher
