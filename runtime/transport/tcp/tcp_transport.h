// Channels to ranks of other hosts, over one or more proven TCP connections to each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/tcp/tcp_link.h"
#include "runtime/transport/transport.h"
#include "src/base/unique_fd.h"

namespace hv::runtime {

class TcpTransport : public Transport, public Pulse {
 public:
  // sockets: connected, proven and non-blocking, by rank. nullptr, and *status says why, when the
  // system gives no descriptor to watch them with.
  static std::unique_ptr<TcpTransport> make(std::map<int, std::vector<ForkGuardedFd>> sockets,
                                            Status* status);

  const std::vector<int>& peers() const override { return peers_; }
  Channel& channel(int peer, int lane) override;
  void progress() override;
  bool next_arrival(int* peer) override;
  PeerState state(int peer) const override;
  std::string suspicion(int peer) const override;
  bool has_unsent() const override;
  void say_goodbye() override;
  void send_beat(int peer) override;
  bool take_heard(int peer) override;
  // Readable when progress() has something to do.
  int poll_fd() const { return epoll_.get(); }

 private:
  struct Peer;
  struct Stream {
    Peer* peer;
    int number;
  };
  struct Peer {
    int rank;
    TcpLink link;
    std::vector<Stream> streams{};
  };
  explicit TcpTransport(UniqueFd epoll) : epoll_(std::move(epoll)) {}
  Status add(int rank, std::vector<ForkGuardedFd> sockets);
  void watch(Stream* stream) const;

  ForkGuardedFd epoll_;
  std::vector<std::unique_ptr<Peer>> links_;
  std::vector<Peer*> by_rank_;
  std::vector<int> peers_;
  std::deque<int> arrivals_;
};

}  // namespace hv::runtime
