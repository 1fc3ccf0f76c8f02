// Channels between ranks of one thread that take and give bytes in pieces of random size, seeded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "runtime/transport/placement.h"
#include "runtime/transport/shm/host_memory.h"
#include "runtime/transport/transport.h"
#include "tests/fakes/landing_queue.h"

namespace hv::runtime {

class FlakyNet {
 public:
  FlakyNet(int ranks, std::uint64_t seed) : ranks_(ranks), random_(seed) {}
  int ranks() const { return ranks_; }

  // The bytes from one rank to another on a lane.
  LandingQueue& queue(int from, int to, int lane) { return queues_[{from, to, lane}]; }
  bool toss() { return random_() % 2 == 0; }
  // Whole words, often none.
  std::size_t some() { return random_() % 3 == 0 ? 0 : random_() % 400 / 8 * 8; }

 private:
  int ranks_;
  std::mt19937_64 random_;
  std::map<std::tuple<int, int, int>, LandingQueue> queues_;
};

class FlakyChannel : public Channel {
 public:
  FlakyChannel(FlakyNet& net, int me, int peer, int lane)
      : net_(net), me_(me), peer_(peer), lane_(lane) {}

  std::size_t writable() const override { return room_ = net_.some(); }
  void write(const void* bytes, std::size_t size) override {
    if (size > room_) throw std::logic_error("written beyond the room");
    net_.queue(me_, peer_, lane_).push(bytes, size);
  }
  std::span<const std::byte> readable() const override {
    const auto waiting = net_.queue(peer_, me_, lane_).waiting();
    return waiting.first(std::min(waiting.size(), net_.some()));
  }
  void consume(std::size_t size) override { net_.queue(peer_, me_, lane_).pop(size); }
  std::size_t receive(std::byte* into, std::size_t size) override {
    LandingQueue& in = net_.queue(peer_, me_, lane_);
    return in.has_landing() || net_.toss() ? in.receive(into, size) : Channel::receive(into, size);
  }
  void withdraw() noexcept override { net_.queue(peer_, me_, lane_).withdraw(); }
  void shrink() override {}

 private:
  FlakyNet& net_;
  int me_, peer_, lane_;
  mutable std::size_t room_ = 0;
};

// One rank on a host of its own.
class FlakyPlane : public DataPlane {
 public:
  FlakyPlane(FlakyNet& net, int rank) : net_(net) {
    std::vector<int> host_of;
    for (int r = 0; r < net.ranks(); ++r) host_of.push_back(r);
    topology_ = make_topology(rank, host_of);
  }
  const Topology& topology() const override { return topology_; }
  SlotRings& host() override { throw std::logic_error("no shared memory here"); }
  Channel& channel(int rank, int lane) override {
    auto& channel = channels_[{rank, lane}];
    if (!channel) channel = std::make_unique<FlakyChannel>(net_, topology_.rank, rank, lane);
    return *channel;
  }
  Status health() const override { return Status::success(); }
  bool is_healthy() const override { return true; }

 private:
  FlakyNet& net_;
  Topology topology_;
  std::map<std::pair<int, int>, std::unique_ptr<FlakyChannel>> channels_;
};

}  // namespace hv::runtime
