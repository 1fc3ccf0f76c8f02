// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_transport.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hv::runtime {
namespace {
constexpr const char* kWatching = "watch the connections to ranks of other hosts";
}

std::unique_ptr<TcpTransport> TcpTransport::make(std::map<int, std::vector<ForkGuardedFd>> sockets,
                                                 Status* status) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) {
    *status = system_status(kWatching, errno);
    return nullptr;
  }
  std::unique_ptr<TcpTransport> made(new TcpTransport(std::move(epoll)));
  for (auto& [rank, streams] : sockets)
    if (*status = made->add(rank, std::move(streams)); !status->ok()) return nullptr;
  *status = Status::success();
  return made;
}

Status TcpTransport::add(int rank, std::vector<ForkGuardedFd> sockets) {
  const auto on_waiting = [this, rank](int stream) {
    watch(&by_rank_[static_cast<std::size_t>(rank)]->streams[static_cast<std::size_t>(stream)]);
  };
  links_.push_back(std::unique_ptr<Peer>(new Peer{rank, TcpLink(std::move(sockets), on_waiting)}));
  Peer* peer = links_.back().get();
  peers_.push_back(rank);
  if (by_rank_.size() <= static_cast<std::size_t>(rank))
    by_rank_.resize(static_cast<std::size_t>(rank) + 1);
  by_rank_[static_cast<std::size_t>(rank)] = peer;
  for (int number = 0; number < peer->link.streams(); ++number)
    peer->streams.push_back({peer, number});
  for (Stream& stream : peer->streams) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.ptr = &stream;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, peer->link.fd(stream.number), &event) != 0)
      return system_status(kWatching, errno);
  }
  return Status::success();
}

Channel& TcpTransport::channel(int peer, int lane) {
  return by_rank_[static_cast<std::size_t>(peer)]->link.channel(lane);
}

// EPOLLOUT only while something waits: a socket with room is always writable. From the moment it
// waits: whoever queued it may go to sleep next.
void TcpTransport::watch(Stream* stream) const {
  const TcpLink& link = stream->peer->link;
  if (link.fd(stream->number) < 0) return;
  const bool wants = link.has_unsent(stream->number);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (wants ? EPOLLOUT : 0u);
  event.data.ptr = stream;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.fd(stream->number), &event);
}

void TcpTransport::progress() {
  epoll_event events[64];
  const int count = ::epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < count; ++i) {
    Stream& stream = *static_cast<Stream*>(events[i].data.ptr);
    TcpLink& link = stream.peer->link;
    if (events[i].events & EPOLLOUT) {
      link.flush(stream.number);
      if (!link.has_unsent(stream.number)) watch(&stream);
    }
    if (events[i].events & ~static_cast<std::uint32_t>(EPOLLOUT)) link.receive(stream.number);
    if (link.has_unread_control()) arrivals_.push_back(stream.peer->rank);
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

void TcpTransport::send_beat(int peer) {
  by_rank_[static_cast<std::size_t>(peer)]->link.send_beat();
}

bool TcpTransport::take_heard(int peer) {
  return by_rank_[static_cast<std::size_t>(peer)]->link.take_heard();
}

void TcpTransport::say_goodbye() {
  for (const auto& peer : links_) peer->link.say_goodbye();
}

}  // namespace hv::runtime
