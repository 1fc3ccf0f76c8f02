// MeshFabric: the Fabric over shared memory inside the host and one transport between hosts.
// SPDX-License-Identifier: Apache-2.0
//
// Built by selection.cc from parts that are connected already. Who may be lost, and who is: a peer
// whose connection or process ended without a goodbye is a suspect; the agent's word (a store
// event) or suspect_grace makes it lost. A peer that gives no sign of life for peer_timeout
// (peer_watch.h) is lost, too. Ranks of one host tell each other through their shared
// memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/fabric.h"
#include "runtime/transport/io_thread.h"
#include "runtime/transport/message_router.h"
#include "runtime/transport/peer_watch.h"
#include "runtime/transport/selection.h"
#include "runtime/transport/shm/host_meeting.h"
#include "runtime/transport/shm/host_memory.h"
#include "runtime/transport/shm/shm_transport.h"
#include "runtime/transport/shm/slot_rings.h"
#include "runtime/transport/socket_bell.h"
#include "runtime/transport/transport.h"

namespace hv::runtime {

// CountedChannel: a channel that counts what is written to it.
class CountedChannel : public Channel {
 public:
  explicit CountedChannel(std::atomic<std::uint64_t>& bytes) : bytes_(bytes) {}
  // Before any use, and whenever the lane is asked for anew: the channel may be another.
  void stand_for(Channel& channel) { channel_ = &channel; }

  std::size_t writable() const override { return channel_->writable(); }
  void write(const void* bytes, std::size_t size) override {
    channel_->write(bytes, size);
    bytes_.fetch_add(size, std::memory_order_relaxed);
  }
  std::span<const std::byte> readable() const override { return channel_->readable(); }
  void consume(std::size_t size) override { channel_->consume(size); }
  std::size_t receive(std::byte* into, std::size_t size) override {
    return channel_->receive(into, size);
  }
  void withdraw() noexcept override { channel_->withdraw(); }
  void shrink() override { channel_->shrink(); }

 private:
  std::atomic<std::uint64_t>& bytes_;
  Channel* channel_ = nullptr;
};

// A transport between hosts, and what of it is watched.
struct RemoteTransport {
  std::unique_ptr<Transport> transport;
  Pulse* pulse = nullptr;  // the same object
  int poll_fd = -1;        // readable when progress() has something to do
};

class MeshFabric : public Fabric, public DataPlane {
 public:
  MeshFabric(Topology topology, std::unique_ptr<HostMemory> memory, const FabricConfig& config,
             Store& store, std::vector<WatchedPeer> watched, RemoteTransport remote);
  ~MeshFabric() override;

  const Topology& topology() const override { return topology_; }
  Doorbell& doorbell() override { return doorbell_; }
  Messenger& messenger() override { return router_; }
  void progress() override;
  void mark_lost(int rank, const Status& reason) override;
  Status health() const override;
  void close(std::chrono::milliseconds timeout) override;
  DataPlane* data_plane() override { return this; }

  SlotRings& host() override { return rings_; }
  Channel& channel(int rank, int lane) override;
  bool is_healthy() const override { return !is_lost_.load(std::memory_order_acquire); }

 private:
  struct Watch {
    WatchedPeer peer;
    std::atomic<bool> ended{false};
  };
  struct Suspect {
    int rank;
    TimePoint since;
    std::string words;
  };

  void take_store_events();
  void look_for_suspects();
  void suspect(int rank, const std::string& words);
  void judge_suspects();
  void look_for_silence();
  void look_whether_alone();
  void adopt_loss_of_host();
  bool has_left(int rank) const;
  bool is_everybody_gone() const;

  const Topology topology_;
  const std::unique_ptr<HostMemory> memory_;
  SlotRings rings_;
  const FabricConfig config_;
  const std::shared_ptr<MovedBytes> moved_;
  const std::shared_ptr<StepReport> step_report_;
  const std::shared_ptr<StallReport> stall_report_;
  Store& store_;
  std::unique_ptr<ShmTransport> local_;
  RemoteTransport remote_;
  MessageRouter router_;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::vector<Suspect> suspects_;
  std::vector<bool> is_suspect_;
  PeerWatch peer_watch_;
  bool is_closing_ = false;
  bool was_alone_ = false;                                  // at the last beat
  std::map<std::pair<int, int>, CountedChannel> channels_;  // that were asked for, by rank and lane

  mutable std::mutex loss_mutex_;  // guards loss_ and lost_ranks_
  Status loss_;
  std::vector<bool> lost_ranks_;
  std::atomic<bool> is_lost_{false};
  std::atomic<bool> has_store_event_{false};
  std::atomic<bool> is_beat_due_{false};

  SocketBell doorbell_;
  IoThread io_;  // last: stops before what it rings goes away
};

}  // namespace hv::runtime
