// Channels between ranks of one host: pipes in the memory that they share.
// SPDX-License-Identifier: Apache-2.0
//
// The control lane and that of pairs: collectives on one host use the slots and flags of HostMemory
// directly.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/shm/host_memory.h"
#include "runtime/transport/transport.h"

namespace hv::runtime {

class ShmTransport : public Transport, public Pulse {
 public:
  // memory outlives the transport.
  ShmTransport(HostMemory& memory, const std::vector<int>& local_ranks);
  ~ShmTransport() override;

  const std::vector<int>& peers() const override { return peers_; }
  Channel& channel(int peer, int lane) override;
  void progress() override {}
  bool next_arrival(int* peer) override;
  PeerState state(int peer) const override;
  std::string suspicion(int) const override { return {}; }  // pidfds and sockets tell, not memory
  bool has_unsent() const override { return false; }
  void say_goodbye() override;
  // One beat is for all peers.
  void send_beat(int) override { memory_.beat(); }
  bool take_heard(int peer) override;

 private:
  class Pipe;
  int local_index_of(int rank) const;

  HostMemory& memory_;
  std::vector<int> local_ranks_;
  std::vector<int> peers_;
  std::vector<std::uint32_t> beats_seen_;     // by local index
  std::vector<std::unique_ptr<Pipe>> pipes_;  // by local index; none for this rank itself
  std::vector<std::unique_ptr<Pipe>> pair_pipes_;
};

}  // namespace hv::runtime
