// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/message_router.h"

#include <algorithm>
#include <cstring>

#include "src/base/check.h"

namespace hv::runtime {
namespace {

using Length = std::uint32_t;

std::string framed(const void* bytes, std::size_t size) {
  const auto length = static_cast<Length>(size);
  std::string frame(reinterpret_cast<const char*>(&length), sizeof length);
  frame.append(static_cast<const char*>(bytes), size);
  return frame;
}

}  // namespace

MessageRouter::MessageRouter(int rank, int size,
                             std::function<void(int, const std::string&)> on_garbage)
    : rank_(rank), on_garbage_(std::move(on_garbage)), peers_(static_cast<std::size_t>(size)) {}

void MessageRouter::add(Transport& transport) {
  transports_.push_back(&transport);
  for (const int peer : transport.peers())
    peers_[static_cast<std::size_t>(peer)].channel = &transport.channel(peer, kControlLane);
}

Status MessageRouter::send(int rank, const void* bytes, std::size_t size) {
  if (size > kMaxMessageBytes) {
    return {StatusCode::kSystem, "send rank " + std::to_string(rank) + " a control message of " +
                                     std::to_string(size) + " bytes: at most " +
                                     std::to_string(kMaxMessageBytes) +
                                     " go in one; enqueue fewer tensors at a time"};
  }
  HV_CHECK(rank >= 0 && rank < static_cast<int>(peers_.size()),
           "a message goes to a rank of the job");
  if (rank == rank_) {
    arrived_.emplace_back(rank, std::string(static_cast<const char*>(bytes), size));
    return Status::success();
  }
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.cut.ok()) return peer.cut;
  peer.outbox.push_back(framed(bytes, size));
  ++unsent_;
  const bool first = peer.outbox.size() == 1;
  flush(&peer);
  if (first && !peer.outbox.empty()) waiting_.push_back(rank);
  return Status::success();
}

void MessageRouter::flush(Peer* peer) {
  while (!peer->outbox.empty()) {
    const std::string& frame = peer->outbox.front();
    const std::size_t part =
        std::min(peer->channel->writable(), frame.size() - peer->sent_of_first);
    if (part == 0) return;
    peer->channel->write(frame.data() + peer->sent_of_first, part);
    peer->sent_of_first += part;
    if (peer->sent_of_first < frame.size()) continue;
    peer->outbox.pop_front();
    peer->sent_of_first = 0;
    --unsent_;
  }
}

bool MessageRouter::receive(int* rank, std::string* message) {
  if (arrived_.empty()) progress();
  if (arrived_.empty()) return false;
  *rank = arrived_.front().first;
  *message = std::move(arrived_.front().second);
  arrived_.pop_front();
  return true;
}

void MessageRouter::progress() {
  std::erase_if(waiting_, [this](int rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    flush(&peer);
    return peer.outbox.empty();
  });
  say_goodbye_if_sent();
  for (Transport* transport : transports_) {
    int rank;
    while (transport->next_arrival(&rank)) take_in(rank, &peers_[static_cast<std::size_t>(rank)]);
  }
}

void MessageRouter::say_goodbye() {
  is_leaving_ = true;
  say_goodbye_if_sent();
}

bool MessageRouter::has_unsent() const {
  return unsent_ > 0 || (is_leaving_ && !has_said_goodbye_) ||
         std::any_of(transports_.begin(), transports_.end(),
                     [](const Transport* transport) { return transport->has_unsent(); });
}

void MessageRouter::say_goodbye_if_sent() {
  if (!is_leaving_ || has_said_goodbye_ || unsent_ > 0) return;
  has_said_goodbye_ = true;
  for (Transport* transport : transports_) transport->say_goodbye();
}

void MessageRouter::take_in(int rank, Peer* peer) {
  for (auto bytes = peer->channel->readable(); !bytes.empty(); bytes = peer->channel->readable()) {
    if (peer->cut.ok())
      peer->incoming.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    peer->channel->consume(bytes.size());
    if (!split_messages(rank, peer))
      return on_garbage_(rank, "sent a control message of an impossible length");
  }
}

bool MessageRouter::split_messages(int rank, Peer* peer) {
  std::size_t at = 0;
  for (;;) {
    Length length;
    if (peer->incoming.size() - at < sizeof length) break;
    std::memcpy(&length, peer->incoming.data() + at, sizeof length);
    if (length > kMaxMessageBytes) return false;
    if (peer->incoming.size() - at - sizeof length < length) break;
    arrived_.emplace_back(rank, peer->incoming.substr(at + sizeof length, length));
    at += sizeof length + length;
  }
  peer->incoming.erase(0, at);
  return true;
}

void MessageRouter::cut_off(int rank, const Status& reason) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.cut.ok()) return;
  peer.cut = reason;
  drop_unsent(&peer);
}

void MessageRouter::drop_unsent() {
  for (Peer& peer : peers_) drop_unsent(&peer);
}

void MessageRouter::drop_unsent(Peer* peer) {
  unsent_ -= peer->outbox.size();
  peer->outbox.clear();
  peer->sent_of_first = 0;
}

}  // namespace hv::runtime
