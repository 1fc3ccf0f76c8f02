// Transport: how bytes get from this rank to some of its peers. One folder per implementation
// below.
// SPDX-License-Identifier: Apache-2.0
//
// The nouns, from below: a Channel is an ordered pipe of bytes to one peer; a Transport owns the
// channels to all the peers that it reaches; a DataPlane is what a collective sees of the whole
// fabric: the memory that the ranks of this host share, and channels to the ranks of other hosts.
// Nothing here blocks. All calls come from whoever drives the runtime, one thread at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/fabric.h"

namespace hv::runtime {

// How many bytes of operations one rank has moved, by the route that they took.
// Written by whoever drives; read by any thread at any time, each number by itself.
struct MovedBytes {
  // Put into memory that this rank shares with others of its host, for them to read: of its own
  // tensors, and of what it has received for them.
  std::atomic<std::uint64_t> shared_memory{0};
  // Sent to ranks of other hosts, without headers of the connection.
  std::atomic<std::uint64_t> tcp{0};
};

// Heartbeats between this rank and some of its peers, besides their other messages.
// Implemented by transports, for the peers that they reach. Never blocks; whoever drives calls.
class Pulse {
 public:
  virtual ~Pulse() = default;
  virtual void send_beat(int peer) = 0;
  // Whether the peer has given a sign of life since the last call: a beat or any other bytes.
  virtual bool take_heard(int peer) = 0;
};

class SlotRings;

// Channels to one peer are numbered by lane; lanes are independent: a full one delays no other, but
// for the few bytes that each may queue while the connection itself is full.
constexpr int kControlLane = 0;

class Channel {
 public:
  virtual ~Channel() = default;
  // Bytes that write() takes now; the peer's reading makes room, and the connection's. None of data
  // once the peer is known to be gone: an operation that only sends waits, and hears of the loss.
  virtual std::size_t writable() const = 0;
  // size <= writable(). The bytes may still lie in a queue here when it returns; progress() moves
  // them on.
  virtual void write(const void* bytes, std::size_t size) = 0;
  // The next bytes that have arrived, as far as they lie in one piece; stays valid until consume().
  // A piece ends inside a word (8 bytes, counted from the channel's first) only where nothing more
  // has arrived.
  virtual std::span<const std::byte> readable() const = 0;
  virtual void consume(std::size_t size) = 0;
  // Takes up to `size` of the next bytes to `into` and returns how many. The others may be put
  // behind them as they arrive, without a copy in between: until the caller has taken all of them,
  // or withdraws, that memory is the channel's to write to, each further call goes on where the
  // last one ended, and readable() and consume() are not called.
  virtual std::size_t receive(std::byte* into, std::size_t size) {
    std::size_t taken = 0;
    while (taken < size) {
      const std::span<const std::byte> arrived = readable();
      const std::size_t part = std::min(size - taken, arrived.size());
      if (part == 0) break;
      std::memcpy(into + taken, arrived.data(), part);
      consume(part);
      taken += part;
    }
    return taken;
  }
  // The memory that receive() was given is the caller's again; what was not taken can be read.
  virtual void withdraw() noexcept {}
  // Nobody uses the channel for now: gives back memory that holds nothing. It goes on as before.
  virtual void shrink() = 0;
};

enum class PeerState {
  kPresent,
  kLeft,     // said goodbye: its end is no loss
  kSuspect,  // its connection ended without a goodbye; the agent or time will tell
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const std::vector<int>& peers() const = 0;
  // The first call opens the lane on this side: bytes that arrive before break the protocol, except
  // on the control lane and those of set 0, which are open from the start.
  virtual Channel& channel(int peer, int lane) = 0;
  // Moves bytes between queues and the medium.
  virtual void progress() = 0;
  // A peer whose control lane has something to read; each is told once per arrival. False: nobody.
  virtual bool next_arrival(int* peer) = 0;
  virtual PeerState state(int peer) const = 0;
  // Why that is kSuspect, to stand behind "rank N"; with the system's reason where there is one.
  virtual std::string suspicion(int peer) const = 0;
  // Something that was written has not reached the medium yet.
  virtual bool has_unsent() const = 0;
  // Tells every peer that this rank leaves in order.
  virtual void say_goodbye() = 0;
};

class DataPlane {
 public:
  virtual ~DataPlane() = default;
  virtual const Topology& topology() const = 0;
  // Of the members on this host.
  virtual SlotRings& host() = 0;
  // To a rank on another host; on kPairLane to any other rank.
  virtual Channel& channel(int rank, int lane) = 0;
  // kOk while an operation among all ranks can still complete.
  virtual Status health() const = 0;
  // Cheap enough for inner loops.
  virtual bool is_healthy() const = 0;
};

// Collectives of a process set that are under way at once use different lanes between hosts: two
// for each of the host's slot rings. Sets have their blocks of lanes one after the other, behind
// the control lane; a set's own plane (set_plane.h) counts from its block's beginning.
constexpr int kRings = 4;
constexpr int kLanesPerRing = 2;
constexpr int kLanesPerSet = kRings * kLanesPerRing;
constexpr int data_lane(int ring, int phase) { return 1 + ring * kLanesPerRing + phase; }
// At once in a job: what a frame's 16 bits for the lane have room for.
constexpr int kMostSets = 4096;
// What two ranks send each other outside of collectives, for all sets.
constexpr int kPairLane = kMostSets * kLanesPerSet + 1;

}  // namespace hv::runtime
