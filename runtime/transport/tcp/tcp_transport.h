// Channels to ranks of other hosts: one proven TCP connection to each.
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

class TcpTransport : public Transport {
 public:
  // sockets: connected, proven and non-blocking, by rank.
  explicit TcpTransport(std::map<int, ForkGuardedFd> sockets);

  const std::vector<int>& peers() const override { return peers_; }
  Channel& channel(int peer, int lane) override;
  void progress() override;
  bool next_arrival(int* peer) override;
  PeerState state(int peer) const override;
  std::string suspicion(int peer) const override;
  bool has_unsent() const override;
  void say_goodbye() override;
  // Readable when progress() has something to do.
  int poll_fd() const { return epoll_.get(); }

 private:
  struct Peer {
    int rank;
    TcpLink link;
    bool waits_for_room = false;  // registered for EPOLLOUT too
  };
  void watch(Peer* peer);

  ForkGuardedFd epoll_;
  std::vector<std::unique_ptr<Peer>> links_;
  std::vector<Peer*> by_rank_;
  std::vector<int> peers_;
  std::deque<int> arrivals_;
};

}  // namespace hv::runtime
