// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_transport.h"

#include <sys/epoll.h>

#include <algorithm>

#include "src/base/check.h"

namespace hv::runtime {

TcpTransport::TcpTransport(std::map<int, ForkGuardedFd> sockets)
    : epoll_(UniqueFd(::epoll_create1(EPOLL_CLOEXEC))) {
  HV_CHECK(static_cast<bool>(epoll_), "an epoll can be made");
  for (auto& [rank, socket] : sockets) {
    links_.push_back(std::unique_ptr<Peer>(new Peer{rank, TcpLink(std::move(socket))}));
    Peer* peer = links_.back().get();
    peers_.push_back(rank);
    if (by_rank_.size() <= static_cast<std::size_t>(rank))
      by_rank_.resize(static_cast<std::size_t>(rank) + 1);
    by_rank_[static_cast<std::size_t>(rank)] = peer;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.ptr = peer;
    HV_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, peer->link.fd(), &event) == 0,
             "a socket is watched");
  }
}

Channel& TcpTransport::channel(int peer, int lane) {
  return by_rank_[static_cast<std::size_t>(peer)]->link.channel(lane);
}

// EPOLLOUT only while something waits: a socket with room is always writable.
void TcpTransport::watch(Peer* peer) {
  const bool wants = peer->link.has_unsent();
  if (wants == peer->waits_for_room || peer->link.fd() < 0) return;
  peer->waits_for_room = wants;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (wants ? EPOLLOUT : 0u);
  event.data.ptr = peer;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer->link.fd(), &event);
}

void TcpTransport::progress() {
  for (const auto& peer : links_) watch(peer.get());
  epoll_event events[64];
  const int count = ::epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < count; ++i) {
    auto* peer = static_cast<Peer*>(events[i].data.ptr);
    if (events[i].events & EPOLLOUT) peer->link.flush();
    if (events[i].events & ~static_cast<std::uint32_t>(EPOLLOUT)) peer->link.receive();
    if (peer->link.has_unread_control()) arrivals_.push_back(peer->rank);
  }
}

bool TcpTransport::next_arrival(int* peer) {
  if (arrivals_.empty()) return false;
  *peer = arrivals_.front();
  arrivals_.pop_front();
  return true;
}

PeerState TcpTransport::state(int peer) const {
  return by_rank_[static_cast<std::size_t>(peer)]->link.state();
}

std::string TcpTransport::suspicion(int peer) const {
  return by_rank_[static_cast<std::size_t>(peer)]->link.words();
}

bool TcpTransport::has_unsent() const {
  return std::any_of(links_.begin(), links_.end(),
                     [](const auto& peer) { return peer->link.has_unsent(); });
}

void TcpTransport::say_goodbye() {
  for (const auto& peer : links_) peer->link.say_goodbye();
}

}  // namespace hv::runtime
