// Fabric: all connections of one rank to the others, made once when a context joins the job.
// SPDX-License-Identifier: Apache-2.0
//
// The engine uses it for control messages, for sleeping and waking, and to learn of losses; the
// native backend moves data over the same connections (see transport.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/contract/contract.h"
#include "src/rendezvous/store.h"

namespace hv::runtime {

// The futex word that a rank sleeps on; peers on the host, its own I/O thread and its callers ring
// it.
class Doorbell {
 public:
  virtual ~Doorbell() = default;
  // The value to hand to wait(); read it before looking for work.
  virtual std::uint32_t value() const = 0;
  // Sleeps until the value differs from seen, or until the deadline. May return early.
  virtual void wait(std::uint32_t seen, TimePoint deadline) = 0;
  virtual void ring() = 0;
};

// Small messages (control), ordered per sender, any rank to any rank. Never blocks.
class Messenger {
 public:
  virtual ~Messenger() = default;
  // Queues or sends; at most kMaxMessageBytes. Fails only when the peer is lost.
  virtual Status send(int rank, const void* bytes, std::size_t size) = 0;
  // Takes the next message from any rank; false when there is none.
  virtual bool receive(int* rank, std::string* message) = 0;
  // Nothing more will be sent, nor anybody else's memory touched: peers that leave need not wait
  // for this rank, and its end from here on is no loss to them. Goes out after what waits.
  virtual void say_goodbye() = 0;
  // Something that was sent lies here still, on lanes for data too, or a goodbye.
  virtual bool has_unsent() const = 0;
  static constexpr std::size_t kMaxMessageBytes = 64 << 20;
};

// Where the ranks lie: host_of[rank] is an index of the host, 0-based in order of first rank.
struct Topology {
  int rank = 0;
  int size = 1;
  std::vector<int> host_of;
  std::vector<int> local_ranks;  // ranks on this host, ascending
  std::vector<int> leaders;      // first rank of each host
  int usable_cores = 1;          // of this host, by any of its ranks
};

class DataPlane;

class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual const Topology& topology() const = 0;
  virtual Doorbell& doorbell() = 0;
  virtual Messenger& messenger() = 0;
  // Moves bytes that wait in sockets and queues; called by whoever drives the engine. Never blocks.
  virtual void progress() = 0;
  // A rank was found lost (by its agent, or silent): what is pending with it must fail.
  virtual void mark_lost(int rank, const Status& reason) = 0;
  // The first loss known, with words; kOk while everybody is there.
  virtual Status health() const = 0;
  // Says goodbye, if that is not done. Returns when every peer has, or the timeout has passed: this
  // rank's shared memory may go. Blocks.
  virtual void close(std::chrono::milliseconds timeout) = 0;
  // What collectives move data over; nullptr where there is none (stand-ins for tests of control).
  virtual DataPlane* data_plane() { return nullptr; }
};

}  // namespace hv::runtime
